"""A run in one record: what scripts read with `--json`, and what tables are made from.

A pure function of the store: live, resumed and shown again later, it gives the same numbers (CASES F02).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime
from enum import StrEnum

from harness.adaptive.estimators import Estimate
from harness.protocols import EvidenceStore
from harness.records.base import Record
from harness.records.run import RunRow, TrialRow
from harness.records.score import UNMEASURED
from harness.records.vocabulary import Outcome, Reason, StopReason
from harness.report.notes import notes
from harness.report.survivors import Survivor, survivors
from harness.runner.run import HALTED, RESUMED, STARTED
from harness.runner.schedule import STOP
from harness.store.flat import agent_name

ENOUGH = frozenset({"standard_error", "cost", "time", "decision"})  # why a run may stop before its number of tasks
Estimator = Callable[[RunRow, EvidenceStore], Estimate | None]
Ceiling = Callable[[str, EvidenceStore], str]


class RunState(StrEnum):
    """How far a run is."""

    RUNNING = "running"  # a live process owns it
    COMPLETE = "complete"  # every planned trial has a grade
    HALTED = "halted"  # it stopped by itself: every further trial would have met the same fault
    INTERRUPTED = "interrupted"  # somebody or something cut it short: some planned trial was not carried out
    INCOMPLETE = "incomplete"  # all was carried out, but some planned trial has no grade


class TrialLine(Record):
    """One slot of a run: its last attempt. A key without a value is null, never absent."""

    task: str
    outcome: Outcome | None  # None: the attempt has not ended
    reason: Reason | None
    stop: StopReason | None
    trial: str
    attempt: int
    repeat: int
    detail: str  # of the grade, or why there is none
    stop_detail: str  # the solver's exception, or the limit it met
    flags: tuple[str, ...]
    cost_usd: float | None
    tokens: int | None
    steps: int | None
    seconds: float | None


class Summary(Record):
    """The headline and everything behind it.

    `score` is passes over graded trials in a fixed run (of a mutated run: the share of mutants that the grader
    passed), in an adaptive one the engine's estimate of the rate over all `selected` tasks, which are fewer than the
    suite's `suite_tasks` when the run was narrowed. `interval` is, in a fixed run, the identification interval: every
    planned slot without a grade counted as fail, then as pass (SOURCES S2); in an adaptive run the estimate's at
    `level`. `cost_usd` is null when the cost of any attempt is unknown; `cost_at_least_usd` is then a lower bound.
    `ceiling` says what gold and null audits found achievable, and what the run scores on that, or "not measured".
    """

    run: str
    suite: str
    suite_version: str
    solver: str
    model: str | None
    agent: str
    created: str
    selected: int  # tasks that the run was to be about
    suite_tasks: int | None  # tasks of the whole suite; None: not recorded
    state: RunState
    planned: int
    done: int  # slots carried out to an end, with a grade or without
    outcomes: dict[Outcome, int]
    stops: dict[StopReason, int]
    score: float | None
    score_kind: str
    interval: tuple[float, float] | None
    level: float | None
    coverage: float
    cost_usd: float | None
    cost_at_least_usd: float
    tokens: int | None
    tokens_are_known: bool  # False: some call came without usage, and `tokens` is a lower bound
    seconds: float  # on the solvers' clocks, added up
    elapsed_s: float  # from the run's creation to its last result, pauses included
    attempts: int
    complete: bool
    survivors: tuple[Survivor, ...] | None  # mutants that the grader passed; None: not a mutated run
    ended: str | None  # why an adaptive run chose no further task; None: a fixed one, or one that has not ended
    halted: str | None  # why the run stopped scheduling: a fault that every further trial would meet
    ceiling: str
    warnings: tuple[str, ...]
    truth: float | None = None  # of a simulated agent
    trials: tuple[TrialLine, ...]

    @property
    def graded(self) -> int:
        return self.outcomes[Outcome.PASSED] + self.outcomes[Outcome.FAILED]


def summarise(
    store: EvidenceStore, run: str, estimator: Estimator | None = None, ceiling: Ceiling | None = None
) -> Summary:
    """The summary of a run. Raises StoreError for an unknown one."""
    row = store.run(run)
    config = row.config
    rows = store.trials(row.run)
    latest = last_attempts(rows)
    lines = tuple(_line(last) for last in latest)
    outcomes = {outcome: sum(line.outcome is outcome for line in lines) for outcome in Outcome}
    stops = Counter(line.stop for line in lines if line.stop is not None)
    estimate = estimator(row, store) if config.adaptive is not None and estimator is not None else None
    planned = _planned(row, store)
    survived = survivors(config, latest, store)
    score, interval, kind = _headline(outcomes, planned, estimate)
    if survived is not None:
        kind = "mutants that the grader passed, over graded ones"
    results = [trial.result for trial in rows if trial.result is not None]
    costs = [result.cost_usd for result in results]
    graded = outcomes[Outcome.PASSED] + outcomes[Outcome.FAILED]
    counts = [result.usage.total if result.usage is not None else result.tokens for result in results]
    tokens = [count for count in counts if count is not None]
    truth, suite_tasks = config.extra.get("truth"), config.extra.get("suite_tasks")
    done = sum(line.outcome is not None and line.reason is not Reason.CANCELLED for line in lines)
    halted = _halted(store, row.run) if graded < planned else None
    return Summary(
        run=row.run,
        suite=config.suite,
        suite_version=config.suite_version,
        solver=config.solver.name,
        model=config.model,
        agent=agent_name(config),
        created=row.created,
        selected=len(config.tasks),
        suite_tasks=suite_tasks if isinstance(suite_tasks, int) else None,
        state=_state(row, store, graded >= planned, halted, done),
        planned=planned,
        done=done,
        outcomes=outcomes,
        stops=dict(stops),
        score=score,
        score_kind=kind,
        interval=interval,
        level=estimate.level if estimate is not None else None,
        coverage=graded / planned if planned else 0.0,
        cost_usd=_sum_known(costs),
        cost_at_least_usd=sum(r.cost_at_least_usd if r.cost_usd is None else r.cost_usd for r in results),
        tokens=None if any(result.calls_without_usage for result in results) and not tokens else sum(tokens),
        tokens_are_known=not any(result.calls_without_usage for result in results),
        seconds=sum(result.seconds or 0.0 for result in results),
        elapsed_s=_elapsed_s(row.created, [result.finished_at for result in results]),
        attempts=len(rows),
        complete=graded >= planned,
        survivors=survived,
        ended=_ended(store, row.run),
        halted=halted,
        ceiling=UNMEASURED if ceiling is None else ceiling(row.run, store),
        warnings=notes(config, rows, latest),
        truth=truth if isinstance(truth, float) else None,
        trials=lines,
    )


def _elapsed_s(created: str, finished: list[str]) -> float:
    last = max((moment for moment in finished if moment), default=created)
    return max(0.0, (datetime.fromisoformat(last) - datetime.fromisoformat(created)).total_seconds())


def _ended(store: EvidenceStore, run: str) -> str | None:
    """Why choosing stopped the last time, in the engine's words."""
    stops = list(store.events(run, [STOP]))
    return str(stops[-1].payload["detail"]) if stops else None


def _halted(store: EvidenceStore, run: str) -> str | None:
    """Why the run halted the last time that it was carried out, or None."""
    why = None
    for event in store.events(run, [STARTED, RESUMED, HALTED]):
        why = str(event.payload["why"]) if event.kind == HALTED else None
    return why


def _state(row: RunRow, store: EvidenceStore, complete: bool, halted: str | None, done: int) -> RunState:
    if store.owned(row.run):
        return RunState.RUNNING
    if complete:
        return RunState.COMPLETE
    if halted is not None:
        return RunState.HALTED
    return RunState.INCOMPLETE if _carried_out(row, store, done) else RunState.INTERRUPTED


def _carried_out(row: RunRow, store: EvidenceStore, done: int) -> bool:
    """Whether nothing was left to start the last time that the run was carried out."""
    if row.config.adaptive is None:
        return done >= len(row.config.tasks) * row.config.repeats
    last = [event.kind for event in store.events(row.run, [STARTED, RESUMED, STOP])][-1:]
    return last == [STOP]


def last_attempts(rows: Iterable[TrialRow]) -> tuple[TrialRow, ...]:
    """The attempt that counts for each slot: the last. A grade ends a slot, so nothing follows one."""
    latest: dict[int, TrialRow] = {}
    for row in rows:
        if row.slot not in latest or row.attempt > latest[row.slot].attempt:
            latest[row.slot] = row
    return tuple(latest[slot] for slot in sorted(latest))


def _planned(row: RunRow, store: EvidenceStore) -> int:
    """Slots that must have a grade. An adaptive run that stopped for a reason of its own needs no more than it has."""
    config = row.config
    if config.adaptive is None:
        return len(config.tasks) * config.repeats
    planned = min(config.adaptive.stop, len(config.tasks))
    stops = [event.payload for event in store.events(row.run, [STOP])]
    if stops and stops[-1]["reason"] in ENOUGH:
        return min(planned, int(stops[-1]["executed"]))
    return planned


def _headline(
    outcomes: dict[Outcome, int], planned: int, estimate: Estimate | None
) -> tuple[float | None, tuple[float, float] | None, str]:
    if estimate is not None:
        return estimate.value, (estimate.lower, estimate.upper), f"estimate ({estimate.method})"
    passed, failed = outcomes[Outcome.PASSED], outcomes[Outcome.FAILED]
    score = passed / (passed + failed) if passed + failed else None
    bounds = (passed / planned, (planned - failed) / planned) if planned else None
    return score, bounds, "passes over graded trials"


def _sum_known(costs: list[float | None]) -> float | None:
    if any(cost is None for cost in costs):
        return None
    return sum(cost for cost in costs if cost is not None)


def _line(row: TrialRow) -> TrialLine:
    result = row.result
    return TrialLine(
        task=row.task,
        outcome=result.outcome if result else None,
        reason=result.reason if result else None,
        stop=result.stop if result else None,
        trial=row.trial,
        attempt=row.attempt,
        repeat=row.repeat,
        detail=result.detail if result else "",
        stop_detail=result.stop_detail if result else "",
        flags=result.flags if result else (),
        cost_usd=result.cost_usd if result else None,
        tokens=(result.usage.total if result.usage else result.tokens) if result else None,
        steps=result.steps if result else None,
        seconds=result.seconds if result else None,
    )
