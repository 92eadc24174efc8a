"""Small evidence for the store's tests."""

from __future__ import annotations

from typing import Any

from harness.protocols import EvidenceStore
from harness.records.base import digest_of
from harness.records.event import EventDraft
from harness.records.grade import TrialResult
from harness.records.run import RunConfig, RunRow
from harness.records.task import Budget, Environment, FileTree, ImagePin, Task, TreeFile
from harness.records.trial import SolverSpec, TrialPlan, trial_id
from harness.records.usage import Usage
from harness.records.vocabulary import Actor, Outcome, Reason, StopReason

TASK = Task(
    id="csv-join/07",
    family="csv-join",
    instruction="join – höchstens 3 Zeilen\u2028 \udcff",  # a byte that is no UTF-8, as the loader reads it
    image=ImagePin(reference="base:1"),
    environment=Environment(
        files=FileTree(files=(TreeFile(path="in-\udcfe.bin", content=b"\x00\xff\xfe" * 50, mode=0o755),)),
        env={"path": "x", "content": "y", "mode": "z"},  # looks like a file, and is none
    ),
    metadata={"example": {"path": "x", "content": "no base64", "mode": 420}},
)


def run_row(run: str = "run-a", **changes: Any) -> RunRow:
    config = RunConfig(
        suite="s", suite_version="v1", tasks=(TASK.id,), solver=SolverSpec(name="agent"), model="m/1"
    ).model_copy(update=changes)
    return RunRow(run=run, created="2025-03-01T23:59:00+00:00", config=config, config_digest=digest_of(config))


def trial_plan(run: str = "run-a", slot: int = 0, attempt: int = 1, **changes: Any) -> TrialPlan:
    plan = TrialPlan(
        run=run,
        trial=trial_id(run, slot, attempt),
        slot=slot,
        attempt=attempt,
        task=TASK,
        solver=SolverSpec(name="agent", options={"depth": 2}),
        model="m/1",
        budget=Budget(wall_s=60.0),
        seed=7,
    )
    return plan.model_copy(update=changes)


def draft(stream: str, kind: str = "exec", payload: dict[str, Any] | None = None, **fields: Any) -> EventDraft:
    values: dict[str, Any] = {"actor": Actor.AGENT, "wall": "2025-03-01T23:59:01+00:00", "monotonic_s": 1.25, **fields}
    return EventDraft(stream=stream, kind=kind, payload=payload or {}, **values)


def move(stream: str, to: str) -> EventDraft:
    return draft(stream, "trial.state", {"to": to}, actor=Actor.HARNESS)


def result_of(trial: str, outcome: Outcome = Outcome.PASSED, **changes: Any) -> TrialResult:
    result = TrialResult(
        trial=trial,
        outcome=outcome,
        reason=Reason.VERDICT_MISSING if outcome is Outcome.UNGRADED else None,
        stop=StopReason.FINISHED,
        usage=Usage(input=100, output=20),
        calls=2,
        steps=3,
        cost_usd=0.125,
        seconds=4.5,
        finished_at="2025-03-02T00:01:00+00:00",
    )
    return result.model_copy(update=changes)


def carry_out(store: EvidenceStore, trial: str, result: TrialResult | None = None, *, close: bool = True) -> None:
    """A whole trial's events, result, and its note in the run's stream."""
    run = store.trial(trial).run
    for state in ("preparing", "interacting", "sealed", "grading"):
        store.append([move(trial, state)])
        if state == "interacting":
            digest = store.put_blob(b"output of " + trial.encode())
            store.append([draft(trial, "exec", {"argv": ["ls"], "n": n}, blobs={"stdout": digest}) for n in range(3)])
    result = result or result_of(trial)
    last = store.finish(result, [move(trial, "done"), draft(trial, "trial.result", result.plain())])[-1]
    if close:
        store.append([draft(run, "trial.closed", {"trial": trial, "head": last.hash, "events": last.seq + 1})])
