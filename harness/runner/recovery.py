"""Takes a run up again: the evidence of a dead process is brought to an end, so that nothing it did or paid for is
lost, and the schedule is rebuilt from the run's own events."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from harness.adaptive.engine import AdaptiveEngine
from harness.records.event import Event
from harness.records.grade import TrialResult
from harness.records.run import RunConfig, RunRow, TrialRow
from harness.records.vocabulary import Outcome, Reason, StopReason
from harness.runner.journal import Journal, utc_now
from harness.runner.resume import abandoned, chosen_slots, open_slots, planned_slots
from harness.runner.schedule import CHOICE, UPDATE, AdaptiveSchedule, FixedSchedule, Schedule, Slot
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
        journal.note(*closing(row.slot, row.task, row.result, head.hash, head.seq + 1))
    return len(missed)


def new_schedule(config: RunConfig, engine: AdaptiveEngine | None) -> Schedule:
    """The schedule of a run that begins; `engine` is the run's own for an adaptive run."""
    if config.adaptive is None or engine is None:
        slots = planned_slots(config)
        return FixedSchedule(slots, len(slots))
    return AdaptiveSchedule(engine, min(config.adaptive.stop, len(config.tasks)))


def restored_schedule(row: RunRow, services: Services, engine: AdaptiveEngine | None) -> Schedule:
    """Close what a dead process left, then rebuild the schedule: what is still to do is exactly what was planned minus
    what passed or failed, and an adaptive run makes the same next choice. `engine` must be new."""
    store, run = services.store, row.run
    close_abandoned(store.trials(run), services)
    rows = store.trials(run)
    close_unwitnessed(run, rows, services)
    schedule = new_schedule(row.config, engine)
    if not isinstance(schedule, AdaptiveSchedule):
        slots = planned_slots(row.config)
        return FixedSchedule(open_slots(slots, rows), len(slots))
    choices = [event.payload for event in store.events(run, [CHOICE])]
    updates = [event.payload for event in store.events(run, [UPDATE])]
    schedule.restore(choices, updates)
    told = {update["item"] for update in updates}  # what these took is in their updates
    for trial in sorted(rows, key=lambda trial: trial.attempt):
        if trial.result is not None and trial.task not in told:
            schedule.attempted(trial.slot, trial.result)
    settle_missed(run, rows, schedule, services)
    # Chosen slots without a grade go first, as many as the stop has room for; withdrawn items come back for them.
    room = max(0, schedule.planned - schedule.engine.estimate().executed)
    waiting = open_slots(chosen_slots(choices), rows)[:room]
    journal = Journal(store, run, redactor=services.redactor)
    store.append([journal.draft(kind, payload) for kind, payload in schedule.reinstate(waiting)])
    schedule.waiting = deque(waiting)
    return schedule


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
            cost_at_least_usd=account.cost_at_least_usd,
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
