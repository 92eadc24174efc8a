"""A run in one record: what scripts read with `--json`, and what tables are made from.

A pure function of the store: live, resumed and shown again later, it gives the same numbers (CASES F02).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime

from harness.adaptive.estimators import Estimate
from harness.protocols import EvidenceStore
from harness.records.base import Record
from harness.records.run import RunConfig, RunRow, TrialRow
from harness.records.vocabulary import Outcome, Reason, StopReason
from harness.runner.run import HALTED, RESUMED, STARTED
from harness.runner.schedule import STOP
from harness.store.flat import agent_name

Estimator = Callable[[RunRow, EvidenceStore], Estimate | None]


class TrialLine(Record):
    """One slot of a run: its last attempt. A key without a value is null, never absent."""

    task: str
    outcome: Outcome | None  # None: the attempt has not ended
    reason: Reason | None
    stop: StopReason | None
    trial: str
    attempt: int
    repeat: int
    detail: str
    flags: tuple[str, ...]
    cost_usd: float | None
    tokens: int | None
    steps: int | None
    seconds: float | None


class Summary(Record):
    """The headline and everything behind it.

    `score` is passes over graded trials in a fixed run, the engine's estimate of the full-suite rate in an adaptive
    one. `interval` is, in a fixed run, the identification interval: every planned slot without a grade counted as
    fail, then as pass (SOURCES S2); in an adaptive run the estimate's at `level`. `cost_usd` is null when the cost
    of any attempt is unknown; `cost_at_least_usd` is then a lower bound. `ceiling` says that no gold audit stands
    behind the score yet.
    """

    run: str
    suite: str
    suite_version: str
    solver: str
    model: str | None
    agent: str
    created: str
    planned: int
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
    halted: str | None  # why the run stopped scheduling: a fault that every further trial would meet
    ceiling: str
    warnings: tuple[str, ...]
    truth: float | None = None  # of a simulated agent
    trials: tuple[TrialLine, ...]


def summarise(store: EvidenceStore, run: str, estimator: Estimator | None = None) -> Summary:
    """The summary of a run. Raises StoreError for an unknown one."""
    row = store.run(run)
    config = row.config
    rows = store.trials(row.run)
    lines = tuple(_line(last) for last in last_attempts(rows))
    outcomes = {outcome: sum(line.outcome is outcome for line in lines) for outcome in Outcome}
    stops = Counter(line.stop for line in lines if line.stop is not None)
    estimate = estimator(row, store) if config.adaptive is not None and estimator is not None else None
    planned = _planned(row, store)
    score, interval, kind = _headline(outcomes, planned, estimate)
    results = [trial.result for trial in rows if trial.result is not None]
    costs = [result.cost_usd for result in results]
    graded = outcomes[Outcome.PASSED] + outcomes[Outcome.FAILED]
    tokens = [result.usage.total for result in results if result.usage is not None]
    truth = config.extra.get("truth")
    return Summary(
        run=row.run,
        suite=config.suite,
        suite_version=config.suite_version,
        solver=config.solver.name,
        model=config.model,
        agent=agent_name(config),
        created=row.created,
        planned=planned,
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
        seconds=sum(result.seconds for result in results),
        elapsed_s=_elapsed_s(row.created, [result.finished_at for result in results]),
        attempts=len(rows),
        complete=graded >= planned,
        halted=_halted(store, row.run) if graded < planned else None,
        ceiling="not measured",
        warnings=_warnings(config, rows),
        truth=truth if isinstance(truth, float) else None,
        trials=lines,
    )


def _elapsed_s(created: str, finished: list[str]) -> float:
    last = max((moment for moment in finished if moment), default=created)
    return max(0.0, (datetime.fromisoformat(last) - datetime.fromisoformat(created)).total_seconds())


def _halted(store: EvidenceStore, run: str) -> str | None:
    """Why the run halted the last time that it was carried out, or None."""
    why = None
    for event in store.events(run, [STARTED, RESUMED, HALTED]):
        why = str(event.payload["why"]) if event.kind == HALTED else None
    return why


def last_attempts(rows: Iterable[TrialRow]) -> tuple[TrialRow, ...]:
    """The attempt that counts for each slot: the last. A grade ends a slot, so nothing follows one."""
    latest: dict[int, TrialRow] = {}
    for row in rows:
        if row.slot not in latest or row.attempt > latest[row.slot].attempt:
            latest[row.slot] = row
    return tuple(latest[slot] for slot in sorted(latest))


def _planned(row: RunRow, store: EvidenceStore) -> int:
    """Slots that must have a grade. An adaptive run that met its standard error needs no more than it has."""
    config = row.config
    if config.adaptive is None:
        return len(config.tasks) * config.repeats
    planned = min(config.adaptive.stop, len(config.tasks))
    stops = [event.payload for event in store.events(row.run, [STOP])]
    if stops and stops[-1]["reason"] == "standard_error":
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


def _warnings(config: RunConfig, rows: tuple[TrialRow, ...]) -> tuple[str, ...]:
    found: list[str] = []
    if config.solver.uses_solution:
        found.append("the solver had the reference solution: this is an audit, not a score of an agent")
    overridden = {key: value for key, value in config.budget if value is not None}
    if overridden:
        found.append("budgets were overridden: " + ", ".join(f"{key}={value}" for key, value in overridden.items()))
    retried = sum(row.attempt > 1 for row in rows)
    if retried:
        found.append(f"{retried} attempt(s) followed an infrastructure fault")
    unknown = sum(row.result.calls_without_usage for row in rows if row.result is not None)
    if unknown:
        found.append(f"{unknown} model call(s) came without usage: tokens and cost are lower bounds")
    return tuple(found)


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
        flags=result.flags if result else (),
        cost_usd=result.cost_usd if result else None,
        tokens=result.usage.total if result and result.usage else None,
        steps=result.steps if result else None,
        seconds=result.seconds if result else None,
    )
