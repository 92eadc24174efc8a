"""Brings the evidence of a dead process to an end, so that nothing it did or paid for is lost."""

from __future__ import annotations

from collections.abc import Iterable

from harness.records.event import Event
from harness.records.grade import TrialResult
from harness.records.run import TrialRow
from harness.records.vocabulary import Outcome, Reason, StopReason
from harness.runner.journal import Journal, utc_now
from harness.runner.resume import abandoned
from harness.runner.schedule import UPDATE, Schedule, Slot
from harness.runner.services import Services
from harness.runner.trial import CLOSED, closing


def close_unwitnessed(run: str, rows: Iterable[TrialRow], services: Services) -> int:
    """Commit the run's stream to every ended trial that it does not know yet: a process may die in between.

    Returns how many there were.
    """
    journal = Journal(services.store, run, redactor=services.redactor)
    known = {event.payload["trial"] for event in services.store.events(run, [CLOSED])}
    missed = [row for row in rows if row.result is not None and row.trial not in known]
    for row in missed:
        assert row.result is not None
        head = list(services.store.events(row.trial))[-1]
        journal.note(*closing(row.slot, row.task, row.result, head))
    return len(missed)


def close_abandoned(rows: Iterable[TrialRow], services: Services) -> int:
    """Give every begun attempt without a result its result: ungraded, with the spend that its events show.

    Returns how many there were.
    """
    found = abandoned(rows)
    for row in found:
        events = list(services.store.events(row.trial))
        account = services.account(events)
        journal = Journal(services.store, row.trial, row.attempt, services.redactor)
        result = TrialResult(
            trial=row.trial,
            outcome=Outcome.UNGRADED,
            reason=Reason.HARNESS_ERROR,
            detail=f"the harness died while the trial was {row.state.value}",
            stop=StopReason.INFRASTRUCTURE,
            usage=account.usage,
            calls=account.calls,
            calls_without_usage=account.calls_without_usage,
            steps=account.steps,
            cost_usd=account.cost_usd,
            seconds=_solver_seconds(events),
            finished_at=utc_now(),
        )
        drafts = [
            journal.draft("trial.state", {"to": "done", "recovered": True}),
            journal.draft("trial.result", result.plain()),
        ]
        journal.finish(result, drafts)
    return len(found)


def settle_missed(run: str, rows: Iterable[TrialRow], schedule: Schedule, services: Services) -> int:
    """Tell an adaptive schedule of grades that its process stored but did not live to act on, in order of time.

    Returns how many there were.
    """
    journal = Journal(services.store, run, redactor=services.redactor)
    updates = services.store.events(run, [UPDATE])
    known = {event.payload["item"] for event in updates if event.payload["kind"] == "observe"}
    missed = [row for row in rows if row.result is not None and row.result.outcome.graded and row.task not in known]
    for row in sorted(missed, key=lambda row: row.result.finished_at if row.result else ""):
        assert row.result is not None
        slot = Slot(row.slot, row.task, row.repeat, row.attempt)
        settled = schedule.settle(slot, row.result.outcome, row.result.reason)
        services.store.append([journal.draft(kind, payload) for kind, payload in settled])
    return len(missed)


def _solver_seconds(events: list[Event]) -> float:
    """Seconds on the solver's clock as far as the events show: from `interacting` to the last event of that phase."""
    started = next((e for e in events if e.kind == "trial.state" and e.payload.get("to") == "interacting"), None)
    if started is None:
        return 0.0
    during = [e.monotonic_s for e in events if e.seq > started.seq and e.phase == "interaction"]
    return max(0.0, max(during, default=started.monotonic_s) - started.monotonic_s)
