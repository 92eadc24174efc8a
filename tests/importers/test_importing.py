"""Archives into a store: verifiable, restartable, idempotent, and out again."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.api.archives import import_archive, lint_archive
from harness.api.export_atif import trajectory
from harness.api.export_lines import export_lines
from harness.api.exports import ExportFormat, export_run
from harness.api.runs import resume
from harness.api.stores import summary
from harness.cli import export as export_command
from harness.cli import import_ as import_command
from harness.cli import lint_archive as lint_command
from harness.records.archive import ArchiveError, ImportOptions
from harness.records.errors import ConfigError, StoreError
from harness.records.vocabulary import Outcome
from harness.report.summary import RunState
from harness.store.ended import EndedRows
from harness.store.flat import csv_text, flat_rows
from harness.store.sqlite import SqliteStore
from harness.store.verify import verify_run
from tests.importers.reading import DATA, tau_episode, write_json


def _archive(folder: Path, count: int = 6) -> Path:
    episodes = [tau_episode(n // 2, n % 2, reward=float(n % 3 == 0)) for n in range(count)]
    episodes[1]["info"]["reward_info"] = None
    episodes[1]["reward"] = 0.0
    return write_json(folder / "archive.json", episodes)


def test_an_import_is_a_run_that_verifies_and_is_shown(tmp_path: Path, store: SqliteStore) -> None:
    report = import_archive(_archive(tmp_path), store, options=ImportOptions(model="m"))
    (run,) = report.runs
    assert (run.planned, run.written, run.outcomes[Outcome.UNGRADED]) == (6, 6, 1)
    assert not report.whole
    found = verify_run(store, run.run)
    assert (found.problems, found.notices, len(found.trials)) == ((), (), 6)
    shown = summary(run.run, store.folder)
    assert (shown.state, shown.graded, shown.planned, shown.model) == (RunState.INCOMPLETE, 5, 6, "m")
    assert shown.cost_usd is None  # unknown, not 0
    assert any("does not say" in warning for warning in shown.warnings)
    row = flat_rows(store, run.run)[1]
    assert (row.outcome, row.cost_usd, row.tokens, row.seconds, row.date) == ("ungraded", None, None, None, "")


def test_every_episode_points_to_its_bytes_and_says_why(tmp_path: Path, store: SqliteStore) -> None:
    path = _archive(tmp_path)
    (run,) = import_archive(path, store).runs
    data = path.read_bytes()
    for trial, episode in zip(store.trials(run.run), json.loads(data), strict=True):
        (event,) = store.events(trial.trial, ["import.source"])
        source = event.payload["source"]
        piece = data[source["offset"] : source["offset"] + source["length"]]
        assert json.loads(piece) == episode
        assert all(claim["evidence"] for claim in event.payload["claims"].values() if claim["value"] is not None)


def test_importing_again_adds_nothing(tmp_path: Path, store: SqliteStore) -> None:
    path = _archive(tmp_path)
    (first,) = import_archive(path, store).runs
    lines = list(export_lines(store, first.run))
    (again,) = import_archive(path, store).runs
    assert (again.run, again.written, again.already) == (first.run, 0, 6)
    assert list(export_lines(store, first.run)) == lines


def test_an_import_that_was_cut_off_goes_on(
    tmp_path: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _archive(tmp_path)
    monkeypatch.setattr("harness.store.ended._BATCH_TRIALS", 2)
    whole, calls = store.add_ended, 0

    def dies(rows: EndedRows) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise StoreError("killed here")
        whole(rows)

    monkeypatch.setattr(store, "add_ended", dies)
    with pytest.raises(StoreError, match="killed here"):
        import_archive(path, store)
    assert calls == 2  # the third batch would have stood on the second
    monkeypatch.setattr(store, "add_ended", whole)
    (run,) = import_archive(path, store).runs
    assert (run.written, run.already) == (4, 2)
    with SqliteStore(tmp_path / "other") as other:
        (straight,) = import_archive(path, other).runs
        assert csv_text(flat_rows(store, run.run)) == csv_text(flat_rows(other, straight.run))
    assert verify_run(store, run.run).ok


def test_another_archive_does_not_take_a_runs_id(tmp_path: Path, store: SqliteStore) -> None:
    import_archive(_archive(tmp_path), store, run="mine")
    other = write_json(tmp_path / "other.json", [tau_episode()])
    with pytest.raises(StoreError, match="--as"):
        import_archive(other, store, run="mine")


def test_what_waits_on_disk_gives_the_same_as_what_waits_in_memory(
    tmp_path: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _archive(tmp_path)
    (small,) = import_archive(path, store).runs
    monkeypatch.setattr("harness.api.archive_spool._IN_MEMORY_BYTES", 1)
    monkeypatch.setattr("harness.api.archive_spool._MOST_TASKS", 1)
    with SqliteStore(tmp_path / "other") as other:
        (large,) = import_archive(path, other).runs
        _, *lines = export_lines(other, large.run)  # the first says when the run was made
        assert lines == list(export_lines(store, small.run))[1:]
    assert {path.name.split("-")[0] for path in store.folder.iterdir()} == {"evidence.db", "blobs", "leases"}


def test_records_of_one_trial_that_disagree_are_no_verdict(tmp_path: Path, store: SqliteStore) -> None:
    episodes = [tau_episode(0), tau_episode(0, reward=0.0), tau_episode(1), tau_episode(1)]
    path = write_json(tmp_path / "a.json", episodes)
    report = import_archive(path, store)
    (run,) = report.runs
    assert (run.written, run.outcomes[Outcome.INVALID], run.outcomes[Outcome.PASSED]) == (2, 1, 1)
    assert [finding.rule for finding in report.findings] == ["trial.conflict", "trial.repeated"]


def test_gaps_of_a_stated_plan_are_named_and_lower_the_coverage(tmp_path: Path, store: SqliteStore) -> None:
    simulation = {"id": "s", "task_id": "1", "trial": 0, "messages": [], "reward_info": {"reward": 1.0}}
    value = {"timestamp": "", "info": {"environment_info": {}, "num_trials": 2}, "tasks": [{"id": "1"}, {"id": "2"}]}
    report = import_archive(write_json(tmp_path / "a.json", value | {"simulations": [simulation]}), store)
    assert report.runs[0].first_gaps == ("1/1", "2/0", "2/1")
    shown = summary(report.runs[0].run, store.folder)
    assert (shown.planned, shown.coverage, shown.interval) == (4, 0.25, (0.25, 1.0))


def test_task_ids_of_any_form_stay_apart(tmp_path: Path, store: SqliteStore) -> None:
    rows = ["agent,task,outcome", "a,[x|y],1", "a,[x?y],0", "a,plain/1,1"]
    (tmp_path / "m.csv").write_text("\n".join(rows) + "\n")
    (run,) = import_archive(tmp_path / "m.csv", store).runs
    ids = [row.task for row in flat_rows(store, run.run)]
    assert len(set(ids)) == 3
    assert ids[2] == "plain/1"


# --- consistency ----------------------------------------------------------------------------------------


def _rules(path: Path) -> set[str]:
    return {finding.rule for finding in lint_archive(path).findings}


def test_lint_finds_rewards_times_costs_and_totals_that_cannot_be(tmp_path: Path) -> None:
    times = {"start_time": "2026-01-01T00:00:10", "end_time": "2026-01-01T00:00:00", "duration": 60.0}
    said = {"role": "assistant", "content": "x", "turn_idx": 1, "cost": 0.5, "timestamp": "2027-01-01T00:00:00"}
    base = {"messages": [said], "agent_cost": 0.1, "reward_info": {"reward": 2.0, "reward_breakdown": {"DB": 1.0}}}
    simulations = [{"id": str(n), "task_id": "1", "trial": n} | base | times for n in range(3)]
    value = {"timestamp": "", "info": {"environment_info": {}}, "tasks": [{"id": "1"}], "simulations": simulations}
    assert _rules(write_json(tmp_path / "a.json", value)) == {
        "reward.range", "reward.parts", "time.order", "time.events", "time.placeholder", "totals.cost", "usage.missing",
        "record.trace",
    }  # fmt: skip


def test_lint_says_when_an_accuracy_counts_the_ungraded_as_failed(tmp_path: Path) -> None:
    records = [
        {"task_id": str(n), "trial_name": str(n), "is_resolved": [True, False, None][n], "parser_results": {"t": "x"}}
        for n in range(3)
    ]
    path = tmp_path / "results.json"
    write_json(path, {"results": records, "accuracy": 1 / 3})
    assert "totals.zero_filled" in _rules(path)
    write_json(path, {"results": records, "accuracy": 0.5})
    assert not _rules(path) & {"totals.zero_filled", "totals.accuracy"}
    write_json(path, {"results": records, "accuracy": 0.9})
    assert "totals.accuracy" in _rules(path)


def test_lint_of_the_leaderboard_submission(airline: Path) -> None:
    report = lint_archive(airline / "tau2/results/airline_toolorchestra_50x1.json.gz")
    rules = [finding.rule for finding in report.findings]
    assert (rules.count("label.task"), rules.count("time.placeholder"), rules.count("usage.missing")) == (49, 1, 1)


@pytest.mark.parametrize("name", ["v1/gpt-4o-airline.json.gz", "tau2/results/airline_gpt-4.1_20x1.json.gz"])
def test_lint_is_silent_on_sound_archives(airline: Path, name: str) -> None:
    assert lint_archive(airline / name).findings == ()


# --- out again ------------------------------------------------------------------------------------------


def test_flat_and_parquet_come_back_byte_for_byte(tmp_path: Path, store: SqliteStore) -> None:
    (run,) = import_archive(_archive(tmp_path), store).runs
    export_run(store, run.run, ExportFormat.FLAT, tmp_path / "a.csv")
    files = [tmp_path / "a.csv"]
    if importlib.util.find_spec("pyarrow") is not None:
        export_run(store, run.run, ExportFormat.PARQUET, tmp_path / "a.parquet")
        files.append(tmp_path / "a.parquet")
    for number, file in enumerate(files):
        with SqliteStore(tmp_path / f"store{number}") as other:
            (back,) = import_archive(file, other).runs
            assert back.run == run.run
            assert csv_text(flat_rows(other, back.run)) == (tmp_path / "a.csv").read_text()
            assert verify_run(other, back.run).ok


def test_json_lines_come_back_to_the_last_hash(tmp_path: Path, store: SqliteStore) -> None:
    (run,) = import_archive(_archive(tmp_path), store).runs
    export_run(store, run.run, ExportFormat.JSONL, tmp_path / "a.jsonl")
    with SqliteStore(tmp_path / "other") as other:
        (back,) = import_archive(tmp_path / "a.jsonl", other).runs
        assert (back.run, back.written) == (run.run, 6)
        (again,) = import_archive(tmp_path / "a.jsonl", other).runs
        assert (again.written, again.already) == (0, 6)
        assert b"".join(export_lines(other, run.run)) == (tmp_path / "a.jsonl").read_bytes()
        assert verify_run(other, run.run).ok
        with pytest.raises(ConfigError, match="keeps its id"):
            import_archive(tmp_path / "a.jsonl", other, run="x")


@pytest.mark.parametrize(("old", "new"), [("Good day 1.0", "Good day 9.9"), ('"assay-run/1"', '"assay-run/99"')])
def test_json_lines_that_were_changed_are_refused(tmp_path: Path, store: SqliteStore, old: str, new: str) -> None:
    (run,) = import_archive(_archive(tmp_path), store).runs
    text = b"".join(export_lines(store, run.run)).decode()
    assert old in text
    (tmp_path / "a.jsonl").write_text(text.replace(old, new))
    with (
        SqliteStore(tmp_path / "other") as other,
        pytest.raises(ArchiveError, match=r"a\.jsonl:[0-9]+: .*(hash|schema)"),
    ):
        import_archive(tmp_path / "a.jsonl", other)


def test_atif_comes_back_as_it_was(tmp_path: Path, store: SqliteStore) -> None:
    value = json.loads((DATA / "harbor_job/hello__aaa/agent/trajectory.json").read_text())
    value["subagent_trajectories"] = [value | {"trajectory_id": "below", "notes": "of a sub-agent"}]
    value["steps"][1]["observation"]["results"].append({"content": [{"type": "text", "text": "x"}]})
    value["steps"].append({"step_id": 4, "source": "agent", "message": "", "tool_calls": [], "llm_call_count": 0})
    (run,) = import_archive(write_json(tmp_path / "t.json", value), store).runs
    (trial,) = store.trials(run.run)
    assert trajectory(store.run(run.run), trial, store) == value


def test_other_formats_become_atif_with_steps_in_order(tmp_path: Path, store: SqliteStore) -> None:
    pytest.importorskip("zstandard")
    (run,) = import_archive(DATA / "tiny.eval", store).runs
    trial = next(row for row in store.trials(run.run) if row.task == "sum")
    value = trajectory(store.run(run.run), trial, store)
    assert (value["schema_version"], [step["step_id"] for step in value["steps"]]) == (
        "ATIF-v1.8",
        list(range(1, len(value["steps"]) + 1)),
    )
    (calls,) = [step for step in value["steps"] if step.get("tool_calls")]
    assert calls["observation"]["results"][0]["content"] == "2"
    assert value["final_metrics"]["total_prompt_tokens"] == 220


def test_an_imported_run_cannot_be_resumed(tmp_path: Path, store: SqliteStore) -> None:
    (run,) = import_archive(_archive(tmp_path), store).runs
    with pytest.raises(ConfigError, match="was imported"):
        resume(run.run, str(store.folder))


# --- the commands ---------------------------------------------------------------------------------------


def test_commands_say_what_happened_with_their_exit_codes(tmp_path: Path) -> None:
    runner, folder = CliRunner(), str(tmp_path / "store")
    path = _archive(tmp_path)
    found = runner.invoke(import_command.app, [str(path), "--store", folder, "--model", "m"])
    assert found.exit_code == 3  # a planned trial has no verdict
    assert "6 of 6 planned (6 new)" in found.stdout
    assert "1 without a verdict" in found.stdout
    good = write_json(tmp_path / "good.json", [tau_episode()])
    assert runner.invoke(import_command.app, [str(good), "--store", folder]).exit_code == 0
    report = json.loads(runner.invoke(import_command.app, [str(good), "--store", folder, "--json"]).stdout)
    assert (report["format"], report["runs"][0]["already"]) == ("tau-bench", 1)
    assert runner.invoke(lint_command.app, [str(good)]).exit_code == 0
    twice = write_json(tmp_path / "twice.json", [tau_episode(), tau_episode(reward=0.0)])
    linted = runner.invoke(lint_command.app, [str(twice)])
    assert (linted.exit_code, "trial.conflict" in linted.stdout) == (3, True)
    out = tmp_path / "out.jsonl"
    assert (
        runner.invoke(export_command.app, ["latest", "--to", "jsonl", "--out", str(out), "--store", folder]).exit_code
        == 0
    )
    assert out.read_bytes().startswith(b'{"run":')
    refused = runner.invoke(export_command.app, ["latest", "--to", "atif", "--store", folder])
    assert isinstance(refused.exception, ConfigError)


def test_an_episode_that_cannot_be_stored_is_listed_and_the_rest_imported(tmp_path: Path, store: SqliteStore) -> None:
    path = _archive(tmp_path)
    episodes = json.loads(path.read_text())
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "[" * 600 + "NaN" + "]" * 600}}
    episodes[2]["traj"].append({"role": "assistant", "content": None, "tool_calls": [call]})
    report = import_archive(write_json(path, episodes), store)
    (refused,) = report.unread
    assert "task 1, trial 0" in refused.place
    assert "nested too deeply to store" in refused.what
    assert (report.runs[0].written, report.whole) == (5, False)
    assert verify_run(store, report.runs[0].run).ok
