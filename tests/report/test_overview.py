"""All runs in a table: newest first, none hidden by another's fault."""

from __future__ import annotations

import pytest

from harness.protocols import EvidenceStore
from harness.records.errors import StoreError
from harness.records.grade import TrialResult
from harness.records.run import RunRow, TrialRow
from harness.records.trial import SolverSpec
from harness.records.vocabulary import Outcome, StopReason
from harness.report.overview import overview, overview_text
from harness.report.summary import RunState
from harness.store.memory import MemoryStore
from tests.runner.scenes import adaptive_config, make_plan, make_row, make_task


def carried_out(store: MemoryStore, run: str, outcomes: list[Outcome | None], **config: object) -> None:
    tasks = [make_task(f"t{number}") for number in range(len(outcomes))]
    store.create_run(make_row(tasks, run, **config))
    for slot, outcome in enumerate(outcomes):
        if outcome is not None:
            plan = make_plan(tasks[slot], run, slot=slot, trial=f"{run}.{slot:04}.1")
            store.plan([plan])
            store.finish(TrialResult(trial=plan.trial, outcome=outcome, stop=StopReason.FINISHED), [])


def test_runs_stand_newest_first_with_state_counts_and_score() -> None:
    store = MemoryStore()
    carried_out(store, "r1", [Outcome.PASSED, Outcome.FAILED])
    carried_out(store, "r2", [Outcome.PASSED, None, None])
    carried_out(store, "r3", [Outcome.PASSED], solver=SolverSpec(name="mutated"))
    carried_out(store, "r4", [])
    with store.own("r4"):
        lines = overview(store)
    assert [(line.run, line.state, line.done, line.graded, line.planned, line.score) for line in lines] == [
        ("r4", RunState.RUNNING, 0, 0, 0, None),
        ("r3", RunState.COMPLETE, 1, 1, 1, 1.0),
        ("r2", RunState.INTERRUPTED, 1, 1, 3, 1.0),
        ("r1", RunState.COMPLETE, 2, 2, 2, 0.5),
    ]
    assert [line.running for line in lines] == [True, False, False, False]
    text = overview_text(lines).splitlines()
    assert [line.split()[0] for line in text] == ["run", "r4", "r3", "r2", "r1"]
    assert "1 survived" in text[2]
    assert "100.0 %" not in text[2]
    assert "50.0 %" in text[4]
    assert "2/2" in text[4]


def test_a_run_that_cannot_be_read_says_so_and_hides_no_other() -> None:
    store = MemoryStore()
    carried_out(store, "r1", [Outcome.PASSED])
    carried_out(store, "r2", [Outcome.PASSED], adaptive=adaptive_config(1))

    def no_bank(row: RunRow, store: EvidenceStore) -> None:
        raise StoreError("the bank is gone")

    damaged, sound = overview(store, no_bank)
    assert (damaged.run, damaged.score, damaged.interval, damaged.problem) == ("r2", None, None, "the bank is gone")
    assert (damaged.state, damaged.graded) == (RunState.COMPLETE, 1)  # known without the bank
    assert (sound.run, sound.score, sound.problem) == ("r1", 1.0, None)
    assert "(the bank is gone)" in overview_text((damaged, sound))


def test_a_run_whose_trials_cannot_be_read_is_unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    carried_out(store, "r1", [Outcome.PASSED])

    def torn(run: str) -> tuple[TrialRow, ...]:
        raise StoreError("a row is torn")

    monkeypatch.setattr(store, "trials", torn)
    (line,) = overview(store)
    assert (line.run, line.state, line.planned, line.problem) == ("r1", None, None, "a row is torn")
    assert "unreadable" in overview_text((line,))


def test_an_empty_store_has_a_heading_only() -> None:
    assert overview_text(overview(MemoryStore())).split() == ["run", "created", "(UTC)", *HEADINGS]


HEADINGS = ("state", "graded", "score", "suite", "agent")
