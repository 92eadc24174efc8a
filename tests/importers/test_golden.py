"""Real output of other harnesses (how it was made: data/README.md), and the flat table that it becomes."""

from __future__ import annotations

import pytest

from harness.api.archives import import_archive, lint_archive
from harness.records.vocabulary import Outcome
from harness.store.flat import csv_text, flat_rows
from harness.store.sqlite import SqliteStore
from harness.store.verify import verify_run
from tests.importers.reading import DATA, Read


@pytest.mark.parametrize("name", ["harbor-0.26.0", "terminal-bench-0.2.18", "swebench-5.0.2"])
def test_a_real_archive_becomes_its_golden_table(name: str, store: SqliteStore) -> None:
    (run,) = import_archive(DATA / f"{name}.zip", store).runs
    assert csv_text(flat_rows(store, run.run)) == (DATA / f"{name}.csv").read_text()
    assert verify_run(store, run.run).ok


def test_harbor_time_outs_are_stops_and_missing_rewards_no_verdicts(store: SqliteStore) -> None:
    (run,) = import_archive(DATA / "harbor-0.26.0.zip", store).runs
    counts = {outcome.value: count for outcome, count in run.outcomes.items() if count}
    assert counts == {"passed": 2, "failed": 1, "ungraded": 2}
    assert lint_archive(DATA / "harbor-0.26.0.zip").findings == ()


def test_terminal_bench_counts_ungraded_trials_as_failed_and_numbers_attempts_by_name() -> None:
    path = DATA / "terminal-bench-0.2.18.zip"
    assert [finding.rule for finding in lint_archive(path).findings] == ["usage.missing", "totals.zero_filled"]
    found = Read(path)
    for episode in found.episodes:
        assert f".{episode.repeat + 1}-of-2." in episode.stated["trial_name"]
    assert {e.task.id: e.stop.value for e in found.episodes} == {
        "hello": "finished", "wrong": "finished", "slow": "budget.time", "silent": "unknown", "endless": "unknown",
    }  # fmt: skip


def test_swe_bench_patches_that_do_not_apply_failed_and_time_outs_are_no_verdict(store: SqliteStore) -> None:
    (run,) = import_archive(DATA / "swebench-5.0.2.zip", store).runs
    assert (run.planned, run.written, run.first_gaps) == (6, 5, ("toys__toy-6/0",))
    assert (run.outcomes[Outcome.PASSED], run.outcomes[Outcome.FAILED], run.outcomes[Outcome.UNGRADED]) == (1, 2, 2)
    reasons = {row.task: row.result.reason for row in store.trials(run.run) if row.result is not None}
    assert (reasons["toys__toy-3"], reasons["toys__toy-5"]) == (None, "grader.timeout")
