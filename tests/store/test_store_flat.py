"""The flat export and reading outcomes back."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.records.errors import ConfigError, StoreError
from harness.records.usage import Usage
from harness.records.vocabulary import Outcome
from harness.store.flat import COLUMNS, FlatRow, agent_name, csv_text, flat_frame, flat_rows, write_csv
from harness.store.history import History, read_history
from harness.store.memory import MemoryStore
from tests.store.samples import carry_out, move, result_of, run_row, trial_plan

MATRICES = Path(__file__).parents[3] / "shared" / "data" / "matrices"


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    store.create_run(run_row(agent='a/b c, "d"\n../x', repeats=2))
    store.plan([trial_plan(slot=0), trial_plan(slot=1, repeat=1), trial_plan(slot=1, attempt=2, repeat=1)])
    store.plan([trial_plan(slot=2, repeat=2)])
    carry_out(store, "run-a.0000.1")
    ungraded = result_of("run-a.0001.1", Outcome.UNGRADED, usage=None, calls=0, cost_usd=None)
    carry_out(store, "run-a.0001.1", ungraded)
    carry_out(store, "run-a.0001.2", result_of("run-a.0001.2", Outcome.FAILED, calls_without_usage=1, cost_usd=0.0))
    store.append([move("run-a.0002.1", "preparing")])
    return store


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_one_row_per_attempt_with_blanks_where_nothing_is_known(store: MemoryStore) -> None:
    rows = read(csv_text(flat_rows(store, "latest")))
    assert tuple(rows[0]) == COLUMNS
    assert COLUMNS[:15] == (
        *("agent", "scaffold", "model", "task", "suite_version", "trial", "attempt", "outcome"),
        *("reason", "stop", "date", "cost_usd", "tokens", "steps", "seconds"),
    )
    assert [(row["trial_id"], row["trial"], row["attempt"], row["outcome"], row["reason"]) for row in rows] == [
        ("run-a.0000.1", "1", "1", "passed", ""),
        ("run-a.0001.1", "2", "1", "ungraded", "verdict.missing"),
        ("run-a.0001.2", "2", "2", "failed", ""),
        ("run-a.0002.1", "3", "1", "", ""),
    ]
    assert [(row["cost_usd"], row["tokens"], row["steps"]) for row in rows] == [
        ("0.125", "120", "3"),
        ("", "", "3"),
        ("0.0", "", "3"),  # a known cost of nothing is 0; a lower bound of tokens is no count
        ("", "", ""),
    ]
    assert {row["agent"] for row in rows} == {'a/b c, "d"\n../x'}
    assert {(row["date"], row["run"], row["model"]) for row in rows} == {("2025-03-01", "run-a", "m/1")}
    with pytest.raises(StoreError, match="did you mean run-a"):
        flat_rows(store, "run-b")


def test_an_agent_without_a_name_is_called_after_scaffold_and_model() -> None:
    assert agent_name(run_row().config) == "agent/m/1"
    assert agent_name(run_row(model=None, scaffold="sc").config) == "sc"
    assert agent_name(run_row(agent="x").config) == "x"


def test_the_frame_keeps_missing_values_missing(store: MemoryStore) -> None:
    frame = flat_frame(flat_rows(store, "run-a"))
    assert list(frame["tokens"].isna()) == [False, True, True, True]
    assert str(frame["tokens"].dtype) == "Int64"
    assert frame["cost_usd"].sum() == 0.125
    assert frame["outcome"].isna().sum() == 1


def test_writing_is_whole_or_not_at_all(store: MemoryStore, tmp_path: Path) -> None:
    rows = flat_rows(store, "run-a")
    for name in ("out.csv", "out.csv.gz"):
        write_csv(rows, tmp_path / name)
        data = (tmp_path / name).read_bytes()
        assert (gzip.decompress(data) if name.endswith("gz") else data).decode() == csv_text(rows)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(StoreError, match=r"folder\.csv"):
        write_csv(rows, tmp_path / "folder.csv")
    with pytest.raises(StoreError, match="nowhere"):
        write_csv(rows, tmp_path / "nowhere" / "out.csv")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder.csv", "out.csv", "out.csv.gz"]


def test_a_place_that_cannot_be_written_is_named_and_not_the_temporary_beside_it(store: MemoryStore) -> None:
    with pytest.raises(StoreError) as refused:
        write_csv(flat_rows(store, "run-a"), "/proc/x.csv")
    assert refused.value.place == "/proc/x.csv"


def test_our_export_reads_back_as_history(store: MemoryStore, tmp_path: Path) -> None:
    write_csv(flat_rows(store, "run-a"), tmp_path / "runs.csv")
    history = read_history(tmp_path / "runs.csv")
    assert history.tasks == ("csv-join/07",)
    assert history.suite_versions == ("v1",)
    # Repeat 1 holds a pass, repeat 2 a fail after an ungraded attempt, repeat 3 a trial that is not done.
    assert (history.trials.tolist(), history.passes.tolist()) == ([[1], [1], [0]], [[1], [0], [0]])
    merged = history.by_agent()
    assert (merged.trials.tolist(), merged.passes.tolist(), merged.dates) == ([[2]], [[1]], ("2025-03-01",))


def test_amounts_are_those_of_the_attempt_that_counts_and_unknown_is_not_zero(tmp_path: Path) -> None:
    header = "agent,task,attempt,outcome,cost_usd"
    rows = ["a,t1,1,ungraded,9", "a,t1,2,1,0.25", "a,t2,1,0,", "b,t1,1,1,0"]
    history = read_history(write(tmp_path / "m.csv", header, *rows))
    assert history.cost_usd is not None
    assert history.seconds is None
    np.testing.assert_array_equal(history.cost_usd, [[0.25, np.nan], [0.0, np.nan]])


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


HEADER = "agent,scaffold,model,date,task,trial,outcome,cost_usd,steps,tokens"


def test_public_matrices_read_as_agents_by_tasks(tmp_path: Path) -> None:
    text = "\n".join(
        [
            HEADER,
            "a,s,m,2024-01-01,t1,1,1,,,",
            "a,s,m,2024-01-01,t2,1,0,,,",
            "a,s,m,2024-01-02,t1,1,0,,,",
            "b,s,m,2024-01-01,t2,1,,,,",
            "b,s,m,2024-01-01,t3,1,invalid,,,",
        ]
    )
    path = tmp_path / "m.csv.gz"
    path.write_bytes(gzip.compress(("\ufeff" + text).encode()))
    history = read_history(path)
    assert history.run_ids == ("a 2024-01-01 #1", "a 2024-01-02 #1", "b 2024-01-01 #1")
    assert history.tasks == ("t1", "t2", "t3")
    assert history.trials.tolist() == [[1, 1, 0], [1, 0, 0], [0, 0, 0]]
    assert history.passes.tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert history.coverage == pytest.approx(3 / 9)
    merged = history.by_agent()
    assert merged.run_ids == ("a", "b")
    assert merged.trials.tolist() == [[2, 1, 0], [0, 0, 0]]
    assert merged.passes.tolist() == [[1, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([HEADER, "a,s,m,,t,1,2,,,"], r"m\.csv:2: outcome '2' is none of"),
        ([HEADER, "a,s,m,,t,1,0.5,,,"], r"m\.csv:2: outcome '0\.5'"),
        ([HEADER, "a,s,m,,t,1,nan,,,"], r"m\.csv:2: outcome 'nan'"),
        ([HEADER, "a,s,m,,t,1,1,-1,,"], r"m\.csv:2: cost_usd '-1' is not a number of at least 0"),
        ([HEADER, "a,s,m,,t,1,1,free,,"], r"m\.csv:2: cost_usd 'free'"),
        ([HEADER, "a,s,m,,t,1,1,inf,,"], r"m\.csv:2: cost_usd 'inf'"),
        ([HEADER, ",s,m,,t,1,1,,,"], r"m\.csv:2: the agent is blank"),
        ([HEADER, "a,s,m,,,1,1,,,"], r"m\.csv:2: the task is blank"),
        (
            [HEADER, "a,s,m,,t,1,1,,,", "", "a,s,m,,t,1,1,,,"],
            r"m\.csv:4: agent 'a', task 't'.* already in .*m\.csv:2",
        ),
        ([HEADER, "a,s,m,,t,1"], r"m\.csv:2: 6 fields where the header has 10"),
        ([HEADER, '"a\nb",s,m,,t,1,1,,,', "a,s,m,,t,1,x,,,"], r"m\.csv:4: outcome 'x'"),
        ([HEADER + ",attempt", "a,s,m,,t,1,1,,,,-1"], r"m\.csv:2: attempt '-1'"),
        (["agent,outcome", "a,1"], r"m\.csv:1: the header lacks task"),
        (["agent,task,task,outcome", "a,t,t,1"], r"m\.csv:1: the header has task twice"),
        ([HEADER], "no outcomes"),
        ([""], "the header lacks agent"),
    ],
)
def test_bad_values_are_named_with_file_and_line(tmp_path: Path, lines: list[str], message: str) -> None:
    path = write(tmp_path / "m.csv", *lines)
    with pytest.raises(ConfigError, match=message):
        read_history(path)


def test_all_bad_values_are_reported_at_once_up_to_twenty(tmp_path: Path) -> None:
    rows = [f"a,s,m,,t{n},1,{n + 2},,," for n in range(30)]
    with pytest.raises(ConfigError) as caught:
        read_history(write(tmp_path / "m.csv", HEADER, *rows))
    assert str(caught.value).count("is none of") == 20


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"missing\.csv"):
        read_history(tmp_path / "missing.csv")
    torn = tmp_path / "torn.gz"
    torn.write_bytes(gzip.compress(b"agent,task,outcome\n" * 100)[:-20])
    with pytest.raises(ConfigError, match=r"torn\.gz"):
        read_history(torn)
    latin = tmp_path / "latin.csv"
    latin.write_bytes(b"agent,task,outcome\na,t,1\nb\xfc,t,1\n")
    with pytest.raises(ConfigError, match=r"latin\.csv:3: not UTF-8"):
        read_history(latin)


names = st.text(min_size=1, max_size=6, alphabet=st.characters(exclude_categories=["Cs"])).filter(str.strip)
cells = st.dictionaries(
    st.tuples(names, names, st.integers(1, 2), st.integers(1, 3)),
    st.sampled_from(["passed", "failed", "ungraded", "invalid", None]),
    min_size=1,
    max_size=20,
)


@settings(deadline=None, max_examples=60)
@given(cells)
def test_missing_is_never_a_zero(cells: dict[tuple[str, str, int, int], str | None]) -> None:
    """Counts of the history against counts made from the cells by hand, for names of any characters."""
    import tempfile

    rows = [
        FlatRow(
            *(agent, "s", None, task, "v", trial, attempt, outcome, None, None, "2025-01-01"),
            *(None, None, None, None, "r", "x"),
        )
        for (agent, task, trial, attempt), outcome in cells.items()
    ]
    with tempfile.TemporaryDirectory() as folder:
        write_csv(rows, Path(folder) / "rows.csv")
        history = read_history(Path(folder) / "rows.csv").by_agent()
    last: dict[tuple[str, str, int], str] = {}
    for (agent, task, trial, _), outcome in sorted(cells.items(), key=lambda item: item[0]):
        if outcome in ("passed", "failed"):
            last[agent, task, trial] = outcome
    for row, agent in enumerate(history.run_ids):
        for column, task in enumerate(history.tasks):
            graded = [outcome for (a, t, _), outcome in last.items() if (a, t) == (agent, task)]
            assert history.trials[row, column] == len(graded)
            assert history.passes[row, column] == graded.count("passed")


@pytest.mark.skipif(not MATRICES.is_dir(), reason="the public matrices are not beside this checkout")
def test_known_counts_of_public_matrices() -> None:
    def counts(name: str) -> tuple[History, int]:
        history = read_history(MATRICES / f"{name}.csv.gz")
        return history, int(history.passes.sum())

    bash, passed = counts("swebench_verified_bash_only")
    assert (bash.passes.shape, int(bash.trials.sum()), passed) == ((19, 500), 9500, 5178)
    _, passed = counts("swebench_verified_bash_only_inconsistent")
    assert passed == 51
    terminal, _ = counts("terminal_bench_core_0_1_1")
    assert terminal.by_agent().passes.shape == (10, 80)
    assert int(terminal.trials.sum()) < 4000  # trials without a verdict are missing, not failed
    assert np.all(terminal.passes <= terminal.trials)


def test_usage_that_is_half_known_is_not_a_count() -> None:
    store = MemoryStore()
    store.create_run(run_row())
    store.plan([trial_plan()])
    carry_out(store, "run-a.0000.1", result_of("run-a.0000.1", usage=Usage(input=5)))
    assert flat_rows(store, "run-a")[0].tokens is None


def test_a_date_that_is_not_iso_is_refused_by_line(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("agent,task,outcome,date\na,t,1,2026-01-31\nb,t,1,2026-01-31T10:00:00Z\nc,t,1,\nd,t,0,01/02/2026\n")
    with pytest.raises(ConfigError, match=r"runs\.csv:5: date '01/02/2026' is not ISO"):
        read_history(path)
