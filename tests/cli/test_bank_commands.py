"""assay calibrate, assay bank: from a CSV of past runs to a bank and its report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.adaptive import load_bank, save_bank, simulate_population
from harness.cli.calibrate import days
from harness.records.errors import ConfigError
from tests.cli.inside import assay

ITEMS = tuple(f"task-{number}" for number in range(30))


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty simulated agents, ten a month; one task that nobody passes, one that everybody does."""
    responses = simulate_population(3, 40, ITEMS, d=1).responses()
    rows = ["agent,date,task,outcome"]
    for number, agent in enumerate(responses.run_ids):
        day = f"2025-{1 + number // 10:02}-15"
        outcomes = dict(zip(ITEMS, responses.passes[number].astype(int).tolist(), strict=True))
        rows += [f"{agent},{day},{item},{outcome}" for item, outcome in {**outcomes, "hard": 0, "easy": 1}.items()]
    path = tmp_path_factory.mktemp("history") / "runs.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture(scope="module")
def bank(history: Path) -> Path:
    out = history.parent / "bank.npz"
    ended = assay("calibrate", history, "--out", out, "--dims", 1, "--no-backtest")
    assert ended.code == 0, ended.err
    return out


def test_calibrate_writes_a_bank_and_says_what_it_holds(history: Path, tmp_path: Path) -> None:
    out = tmp_path / "bank.npz"
    ended = assay(
        *("calibrate", history, "--out", out, "--dims", "rasch", "--method", "map", "--prior", "difficulty_sd=1"),
        "--no-backtest",
    )
    assert ended.code == 0, ended.err
    assert load_bank(out).provenance.method == "rasch"
    assert "32, 30 of them calibrated" in ended.out
    assert "rasch; map" in ended.out
    assert "40 runs, 2025-01-15 to 2025-04-15" in ended.out
    assert "every graded outcome is a failure: hard" in ended.out
    assert f"--bank {out}" in ended.err


def test_calibrate_tells_the_same_as_json(history: Path, tmp_path: Path) -> None:
    out = tmp_path / "bank.npz"
    told = assay("calibrate", history, "--out", out, "--dims", 2, "--no-backtest", "--json").json
    bank = load_bank(out)
    assert (told["bank"], told["digest"], told["items"], told["provenance"]["d"]) == (str(out), bank.digest, 32, 2)
    assert told == {"bank": str(out), **assay("bank", "show", out, "--json").json}


def test_every_option_reaches_the_fit(history: Path, bank: Path, tmp_path: Path) -> None:
    out = tmp_path / "bank.npz"
    ended = assay(
        "calibrate", history, "--out", out, "--window", "5w", "--half-life", "31d", "--start", bank, "--no-backtest"
    )
    assert ended.code == 0, ended.err
    assert "20 runs that weigh 15.0, 2025-03-15 to 2025-04-15" in ended.out
    assert "20 runs more than 35 days before the latest left out" in ended.out


def test_items_may_move_as_far_as_the_history_says(history: Path, tmp_path: Path) -> None:
    out = tmp_path / "bank.npz"
    asked = assay("calibrate", history, "--out", out, "--dims", 1, "--drift", "auto", "--no-backtest")
    assert asked.code == 0, asked.err
    assert "items that move predict hidden outcomes no better beyond chance: they are held still" in asked.out
    given = assay("calibrate", history, "--out", out, "--dims", 1, "--drift", "0.5", "--no-backtest")
    assert load_bank(out).provenance.drift_sd == 0.5
    assert "difficulties move by 0.5 logits (sd) in 30 days" in given.out
    assert "items are as of 2025-04-15" in given.out


def test_a_file_with_a_fault_is_exit_2_with_its_line(tmp_path: Path) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text("agent,task,outcome\na,t,1\na,u,maybe\n")
    ended = assay("calibrate", bad, "--out", tmp_path / "bank.npz")
    assert (ended.code, ended.out) == (2, "")
    assert f"{bad}:3: outcome 'maybe'" in ended.err
    assert not (tmp_path / "bank.npz").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--dims", "0"), "--dims '0'"),
        (("--dims", "many"), "--dims 'many'"),
        (("--method", "least-squares"), "--method 'least-squares'"),
        (("--prior", "sd"), "--prior 'sd' is not NAME=SD"),
        (("--drift", "much"), "--drift 'much' is not how far items move"),
        (("--window", "soon"), "'soon' is not a span of time"),
        (("--out", "/nowhere/bank.npz"), "/nowhere: there is no such folder"),
    ],
)
def test_what_cannot_be_meant_is_exit_2_with_a_remedy(
    history: Path, tmp_path: Path, arguments: tuple[str, str], words: str
) -> None:
    ended = assay("calibrate", history, "--out", tmp_path / "bank.npz", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert words in ended.err


def test_a_back_test_is_in_the_bank_and_shown(history: Path, tmp_path: Path) -> None:
    out = tmp_path / "bank.npz"
    ended = assay("calibrate", history, "--out", out, "--dims", "rasch")
    assert ended.code == 0, ended.err
    table = load_bank(out).backtest
    assert table is not None
    assert table.agents == 40
    assert "back-tested on 40 runs of 40 agents" in ended.out
    assert f"--policy auto is {table.chosen[0].plan.policy} at" in ended.out
    shown = assay("bank", "show", out, "--curve")
    assert ended.out.partition("back-tested")[2].strip() in shown.out
    assert shown.out.splitlines()[-1].split()[-1].isdigit()
    assert assay("bank", "show", out, "--json").json["backtest"]["agents"] == 40


def test_show_lists_items_by_what_they_tell(bank: Path) -> None:
    ended = assay("bank", "show", bank, "--items")
    assert ended.code == 0, ended.err
    lines = ended.out.splitlines()
    items = lines[lines.index("") + 2 :]
    assert len(items) == 32
    information = [float(line.split()[0]) for line in items]
    assert information == sorted(information, reverse=True)
    assert items[-1].split()[-1] in ("hard", "easy")


def runs_of(path: Path, n_runs: int, broken: frozenset[str]) -> Path:
    """Later runs of agents like those of the history; tasks in `broken` fail always."""
    responses = simulate_population(3, 40, ITEMS, d=1).responses(range(n_runs), attempt=1)
    rows = ["agent,date,task,outcome"]
    for number, agent in enumerate(responses.run_ids):
        for item, passed in zip(ITEMS, responses.passes[number].astype(int).tolist(), strict=True):
            rows.append(f"{agent},2025-05-{number + 1:02},{item},{0 if item in broken else passed}")
    path.write_text("\n".join(rows) + "\n")
    return path


def test_drift_names_the_tasks_that_changed_and_nothing_else(bank: Path, tmp_path: Path) -> None:
    calm = assay("bank", "drift", bank, runs_of(tmp_path / "calm.csv", 30, frozenset()))
    assert (calm.code, calm.out.strip()) == (0, "no item of 30 has drifted over 30 runs")
    easiest = load_bank(bank).restrict(ITEMS).beta.argmin()
    changed = runs_of(tmp_path / "changed.csv", 30, frozenset({ITEMS[easiest]}))
    ended = assay("bank", "drift", bank, changed)
    assert ended.code == 0, ended.err
    assert ended.out.startswith(f"warning  {ITEMS[easiest]} has become harder than the bank says")
    told = assay("bank", "drift", bank, changed, "--json").json
    assert [finding["subject"] for finding in told["findings"]] == [ITEMS[easiest]]
    assert told["findings"][0]["since"].startswith("agent-")


def test_a_bank_that_no_longer_holds_is_an_alarm_and_exit_3(bank: Path, tmp_path: Path) -> None:
    order = load_bank(bank).restrict(ITEMS).beta.argsort()
    gone = frozenset(ITEMS[at] for at in order[:6])
    ended = assay("bank", "drift", bank, runs_of(tmp_path / "runs.csv", 30, gone))
    assert ended.code == 3
    assert ended.out.startswith("alarm ")


def test_drift_says_what_it_could_not_use(history: Path, bank: Path, tmp_path: Path) -> None:
    assert "40 of 40 runs are no later than the bank's last (2025-04-15)" in assay("bank", "drift", bank, history).out
    other = tmp_path / "other.csv"
    other.write_text("agent,task,outcome\na,x,1\na,task-1,1\n")
    assert "1 tasks of these runs are not in the bank" in assay("bank", "drift", bank, other).out
    other.write_text("agent,task,outcome\na,x,1\n")
    ended = assay("bank", "drift", bank, other)
    assert (ended.code, ended.out) == (2, "")
    assert "no task of these runs is in the bank" in ended.err


def test_two_banks_are_compared_item_by_item(bank: Path, tmp_path: Path) -> None:
    first = load_bank(bank)
    at = int(first.beta[:30].argmin())
    beta = first.beta.copy()
    beta[at] += 6.0
    items = [*first.item_ids[1:], "new"]
    save_bank(replace(first, beta=beta).align(items), tmp_path / "newer.npz")
    ended = assay("bank", "compare", bank, tmp_path / "newer.npz")
    assert ended.code == 0, ended.err
    assert "1 have drifted beyond chance" in ended.out
    assert f"1 are in the first bank only: {first.item_ids[0]}" in ended.out
    assert "1 are in the second bank only: new" in ended.out
    assert ended.out.splitlines()[-1].endswith(f" {first.item_ids[at]}")
    assert assay("bank", "drift", bank, tmp_path / "newer.npz").out == ended.out
    told = assay("bank", "compare", bank, tmp_path / "newer.npz", "--json").json
    assert told["drifted"] == [first.item_ids[at]]
    assert len(assay("bank", "compare", bank, tmp_path / "newer.npz", "--items").out.splitlines()) > told["common"]
    assert assay("bank", "drift", bank, bank, bank).code == 2


def test_what_is_no_bank_is_exit_2(history: Path, tmp_path: Path) -> None:
    for path in (history, tmp_path / "missing.npz"):
        ended = assay("bank", "show", path)
        assert ended.code == 2
        assert str(path) in ended.err


@pytest.mark.parametrize(("text", "expected"), [("28d", 28.0), ("4w", 28.0), ("28", 28.0), ("0.5d", 0.5)])
def test_spans_of_time(text: str, expected: float) -> None:
    assert days(text, "--window") == expected


@pytest.mark.parametrize("text", ["", "d", "-3d", "0d", "1m", "nan", "1e3", "²d"])
def test_what_is_no_span_of_time(text: str) -> None:
    with pytest.raises(ConfigError, match="--window"):
        days(text, "--window")


def test_a_bank_that_cannot_be_written_is_named_as_the_user_named_it(history: Path) -> None:
    ended = assay("calibrate", history, "--out", "/proc/bank.npz", "--dims", "rasch", "--no-backtest")
    assert ended.code == 2
    assert "/proc/bank.npz: the bank cannot be written" in ended.err
    assert "partial" not in ended.err


def test_a_file_that_is_no_bank_gets_no_advice_to_load_it_unsafely() -> None:
    ended = assay("bank", "show", "/bin/ls")
    assert ended.code == 2
    assert "not a bank file" in ended.err
    assert "pickle" not in ended.err
