"""A run's score on the achievable denominator: gold ∖ null ∖ unaccepted mutants, as a set (SOURCES S1).

The cycle is the one nearest in time of the run's own suite version. A pass on an unavailable task counts nowhere; what
was never audited is unavailable, never assumed to be achievable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from harness.audit.history import AuditHistory, read_history, read_table, seconds_between
from harness.audit.measure import settled
from harness.audit.table import Judging, availability
from harness.protocols import EvidenceStore
from harness.records.audit import Availability, Cause, Cycle, Policy, Table
from harness.records.base import digest_of
from harness.records.grade import TrialResult
from harness.records.run import RunRow, TrialRow
from harness.records.score import Score, TaskScore, TaskState
from harness.records.vocabulary import Outcome, Reason
from harness.store.flat import agent_name

# The estimated rate of an adaptive run over those of its tasks that are not left out: value, lower, upper, method.
Estimated = tuple[float, float, float, str]
Estimator = Callable[[RunRow, EvidenceStore, Collection[str]], Estimated]


@dataclass(frozen=True)
class Counted:
    """How a task's repeats ended, of `planned`."""

    passes: int
    graded: int
    planned: int
    version: str | None = None

    @property
    def rate(self) -> float | None:
        return self.passes / self.graded if self.graded else None

    @property
    def bounds(self) -> tuple[float, float]:
        """The rate with every repeat that has no grade a fail, and a pass."""
        return self.passes / self.planned, (self.passes + self.planned - self.graded) / self.planned


@dataclass(frozen=True)
class Standing:
    """What stands behind a run: the nearest cycle, its table, judged for the moment of the run."""

    cycle: Cycle
    table: Table
    tasks: Mapping[str, Availability]


def standing_of(row: RunRow, store: EvidenceStore, history: AuditHistory, policy: Policy) -> Standing | None:
    """The nearest finished cycle of the run's suite version whose audit says something about its tasks, or None."""
    near = sorted(history.finished, key=lambda cycle: abs(seconds_between(cycle.finished or "", row.created)))
    judging = Judging.by(row.created, policy, history.decisions)
    for cycle in near:
        if not _narrowed(row) and cycle.suite_version != row.config.suite_version:
            continue
        table = read_table(store, cycle)
        if cycle.suite_version != row.config.suite_version and not _covers(table, row):
            continue
        tasks = {task: found for task, found in availability(table, judging).items() if task in row.config.tasks}
        if any(found.cause not in (Cause.NEVER, Cause.STALE, Cause.RETIRED) for found in tasks.values()):
            return Standing(cycle, table, tasks)
    return None


def _narrowed(row: RunRow) -> bool:
    whole = row.config.extra.get("suite_tasks")
    return isinstance(whole, int) and len(row.config.tasks) < whole


def _covers(table: Table, row: RunRow) -> bool:
    """Whether a run of part of a suite ran the very tasks of the table: its suite version is that of the part."""
    versions = {one.task: one.fingerprint.version for one in table.rows}
    if not all(task in versions for task in row.config.tasks):
        return False
    return digest_of(sorted((task, versions[task]) for task in row.config.tasks)) == row.config.suite_version


def own_memory(tasks: Mapping[str, Availability]) -> frozenset[str]:
    """Tasks whose tests run out of memory by the agent's doing: gold passed under the same limit, not near it."""
    return frozenset(
        name
        for name, found in tasks.items()
        if found.available
        and any(use.name == "memory" for use in found.uses)
        and not any(use.name == "memory" for use in found.at_risk)
    )


def counted(row: RunRow, trials: tuple[TrialRow, ...], own: Collection[str] = ()) -> dict[str, Counted]:
    """Every planned task of a run, how its last attempts ended; of an adaptive run those that were started.

    On tasks of `own` (see :func:`own_memory`) an attempt whose tests ran out of memory counts as failed.
    """
    ended = settled(trials)
    found = {}
    for task in row.config.tasks:
        rows = ended.get(task, [])
        if row.config.adaptive is not None and not rows:
            continue
        ended_as = [one.result for one in rows if one.result is not None]
        results = [one for one in ended_as if one.outcome.graded or (task in own and _ran_out(one))]
        passes = sum(result.outcome is Outcome.PASSED for result in results)
        version = rows[-1].task_version if rows else None
        found[task] = Counted(passes, len(results), max(row.config.repeats, len(rows)), version)
    return found


def _ran_out(result: TrialResult) -> bool:
    return result.reason is Reason.GRADER_MEMORY


def score_run(
    run: str, store: EvidenceStore, policy: Policy | None = None, estimator: Estimator | None = None
) -> Score:
    """The score of a run, complete or not. Raises StoreError for an unknown run or damaged evidence."""
    row = store.run(run)
    trials = store.trials(row.run)
    tasks = counted(row, trials)
    history = read_history(store, row.config.suite)
    standing = standing_of(row, store, history, policy or Policy())
    whole = _over(row, store, tasks, (), estimator)
    base = Score(
        run=row.run,
        agent=agent_name(row.config),
        suite=row.config.suite,
        suite_version=row.config.suite_version,
        created=row.created,
        measured=standing is not None,
        tasks=len(row.config.tasks),
        raw_passed=sum(one.rate or 0.0 for one in tasks.values()),
        raw_score=whole.value,
        raw_interval=whole.interval,
        states=tuple(_state(task, tasks.get(task), None) for task in row.config.tasks),
        notes=_notes(row, standing, history),
    )
    if standing is None:
        return base
    own = own_memory(standing.tasks)
    blamed = sum(one.task in own and one.result is not None and _ran_out(one.result) for one in trials)
    if blamed:
        said = f"the tests of {blamed} attempt(s) ran out of memory where gold was not near the limit: failed"
        base = base.model_copy(update={"notes": (*base.notes, said)})
    return _measured(base, row, store, counted(row, trials, own), standing, estimator)


def _measured(
    base: Score,
    row: RunRow,
    store: EvidenceStore,
    tasks: Mapping[str, Counted],
    standing: Standing,
    estimator: Estimator | None,
) -> Score:
    causes = Counter(found.cause for found in standing.tasks.values() if found.cause is not None)
    retired = causes.pop(Cause.RETIRED, 0)
    out = [task for task, found in standing.tasks.items() if not found.available]
    achievable = {task: one for task, one in tasks.items() if task not in set(out)}
    over = _over(row, store, tasks, out, estimator)
    states = tuple(_state(task, tasks.get(task), standing.tasks.get(task)) for task in row.config.tasks)
    n_tasks = len(row.config.tasks) - retired
    n_out = len(out) - retired
    return base.model_copy(
        update={
            "cycle": standing.cycle.cycle,
            "cycle_at": standing.cycle.finished,
            "tasks": n_tasks,
            "achievable": n_tasks - n_out,
            "unavailable": n_out,
            "unavailable_rate": n_out / n_tasks if n_tasks else 0.0,
            "causes": dict(causes),
            "retired": retired,
            "passed": sum(one.rate or 0.0 for one in achievable.values()),
            "failed": sum(1.0 - one.rate for one in achievable.values() if one.rate is not None),
            "ungraded": sum(one.rate is None for one in achievable.values()),
            "unexecuted": sum(state.state is TaskState.UNEXECUTED for state in states),
            "passes_elsewhere": sum(tasks[task].rate or 0.0 for task in out if task in tasks),
            "score": over.value,
            "score_kind": over.kind,
            "interval": over.interval,
            "states": states,
        }
    )


@dataclass(frozen=True)
class _Over:
    value: float | None
    interval: tuple[float, float] | None
    kind: str


def _over(
    row: RunRow,
    store: EvidenceStore,
    tasks: Mapping[str, Counted],
    out: Collection[str],
    estimator: Estimator | None,
) -> _Over:
    """The rate over a run's tasks without those that are left `out`."""
    left_out = set(out)
    kept = [one for task, one in tasks.items() if task not in left_out]
    if row.config.adaptive is not None and estimator is not None:
        if len(left_out) == len(row.config.tasks):
            return _Over(None, None, "")
        value, lower, upper, method = estimator(row, store, left_out)
        return _Over(value, (lower, upper), f"estimate ({method})")
    rates = [one.rate for one in kept if one.rate is not None]
    if not kept:
        return _Over(None, None, "")
    bounds = [sum(one.bounds[side] for one in kept) / len(kept) for side in (0, 1)]
    mean: float | None = sum(rates) / len(rates) if rates else None
    return _Over(mean, (bounds[0], bounds[1]), "passes over graded tasks")


def _state(task: str, one: Counted | None, found: Availability | None) -> TaskScore:
    if found is not None and not found.available:
        return TaskScore(
            task=task,
            state=TaskState.UNAVAILABLE,
            rate=one.rate if one else None,
            cause=found.cause,
            detail=found.detail,
            since=found.since,
        )
    if one is None:
        return TaskScore(task=task, state=TaskState.UNEXECUTED)
    if one.rate is None:
        return TaskScore(task=task, state=TaskState.UNGRADED)
    state = TaskState.PASSED if one.passes == one.graded else TaskState.FAILED
    return TaskScore(task=task, state=state, rate=one.rate)


def _notes(row: RunRow, standing: Standing | None, history: AuditHistory) -> tuple[str, ...]:
    if standing is None:
        versions = {cycle.suite_version for cycle in history.finished}
        if not versions:
            return (f"suite {row.config.suite!r} was never audited: assay audit all --suite {row.config.suite}",)
        if row.config.suite_version not in versions and not _narrowed(row):
            return ("no audit cycle is of the run's suite version: audit that version, or run again on this one",)
        return ("the audits of the run's suite version are too far from the run, or lack gold or null",)
    days = abs(seconds_between(standing.cycle.finished or "", row.created)) / 86400
    return (f"the nearest audit cycle is {days:.1f} days from the run",) if days >= 1 else ()
