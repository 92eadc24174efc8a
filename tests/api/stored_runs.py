"""Stores with runs as the runner leaves them, without a container engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.adaptive import AdaptiveEngine, Bank
from harness.api.adaptive import keep_bank, settings_for
from harness.records.grade import TrialResult
from harness.records.run import AdaptiveConfig
from harness.records.trial import TrialPlan, trial_id
from harness.records.vocabulary import Outcome, Reason
from harness.runner.journal import Journal
from harness.runner.schedule import CHOICE, STOP, UPDATE, AdaptiveSchedule
from harness.store.sqlite import SqliteStore
from tests.store.samples import TASK, move, result_of, run_row, trial_plan

Outcomes = Mapping[str, Outcome | Reason]


def adaptive_run(
    folder: Path,
    bank: Bank,
    outcomes: Outcomes,
    run: str = "run-a",
    policy: str = "d_optimal",
    stop: int = 10,
    **changes: Any,
) -> AdaptiveEngine:
    """Store an adaptive run to its stop; returns the engine that ran it. A reason stands for a trial without grade.

    `changes` are further fields of its `AdaptiveConfig`.
    """
    with SqliteStore(folder) as store:
        config = AdaptiveConfig(stop=stop, policy=policy, bank=keep_bank(bank, store), seed=5, **changes)
        store.create_run(run_row(run, tasks=bank.item_ids, adaptive=config))
        engine, journal = AdaptiveEngine(bank, settings_for(config, bank, store)), Journal(store, run)
        schedule = AdaptiveSchedule(engine, stop)
        while True:
            slot, events = schedule.next(())
            for kind, payload in events:
                journal.note(kind, payload)
            if slot is None:
                assert events[-1][0] == STOP
                return engine
            assert events[-1][0] == CHOICE
            outcome = outcomes[slot.task]
            ended = (outcome, None) if isinstance(outcome, Outcome) else (Outcome.UNGRADED, outcome)
            store.plan([_plan(run, slot.number, slot.task)])
            schedule.attempted(slot.number, _end(store, trial_id(run, slot.number, 1), *ended))
            for kind, payload in schedule.settle(slot, *ended):
                assert kind == UPDATE
                journal.note(kind, payload)


def fixed_run(
    folder: Path,
    tasks: Sequence[str],
    outcomes: Mapping[str, Sequence[Outcome]],
    run: str = "run-f",
    version: str = "v1",
) -> None:
    """Store a fixed run of `tasks`; `outcomes` are those of the repeats that have ended."""
    repeats = max((len(ended) for ended in outcomes.values()), default=1)
    with SqliteStore(folder) as store:
        store.create_run(run_row(run, tasks=tuple(tasks), repeats=repeats, suite_version=version))
        slots = [(task, repeat) for task in tasks for repeat in range(repeats)]
        store.plan([_plan(run, slot, task, repeat) for slot, (task, repeat) in enumerate(slots)])
        for slot, (task, repeat) in enumerate(slots):
            if repeat < len(outcomes.get(task, ())):
                _end(store, trial_id(run, slot, 1), outcomes[task][repeat])


def _plan(run: str, slot: int, task: str, repeat: int = 0) -> TrialPlan:
    return trial_plan(run, slot, repeat=repeat, task=TASK.model_copy(update={"id": task}))


def _end(store: SqliteStore, trial: str, outcome: Outcome, reason: Reason | None = None) -> TrialResult:
    result = result_of(trial, outcome)
    if reason is not None:
        result = result.model_copy(update={"reason": reason})
    store.finish(result, [move(trial, "done")])
    return result
