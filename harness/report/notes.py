"""What a reader must know beside the score: each note is a sentence, made from the evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from harness.records.run import RunConfig, TrialRow
from harness.records.vocabulary import Reason, StopReason
from harness.report.words import first_line


def notes(config: RunConfig, rows: Sequence[TrialRow], latest: Sequence[TrialRow]) -> tuple[str, ...]:
    """The notes of a run from all its attempts, and from the last of each slot."""
    return (
        *_audit(config),
        *(str(note) for note in config.extra.get("notes", ())),  # what was odd about the run before it began
        *_solver_errors(latest),
        *_budgets(config),
        *_attempts(rows),
        *_usage(rows),
    )


def _audit(config: RunConfig) -> Iterator[str]:
    if config.solver.uses_solution:
        yield "the solver had the reference solution: this is an audit, not a score of an agent"


def _solver_errors(latest: Sequence[TrialRow]) -> Iterator[str]:
    """How many solvers crashed, and on what: a bug in the agent's own code must not pass for a lack of skill."""
    crashed = [row for row in latest if row.result is not None and row.result.stop is StopReason.SOLVER_ERROR]
    if not crashed:
        return
    said = [first_line(row.result.stop_detail) for row in crashed if row.result is not None]
    others = len(set(said)) - 1
    more = f" (and {others} other message(s))" if others else ""
    text = f": {said[0]}{more}" if said[0] else ""
    yield f"{len(crashed)} trial(s) ended in solver_error{text}; assay trial {crashed[0].trial} --log error"


def _budgets(config: RunConfig) -> Iterator[str]:
    changed = {key: value for key, value in config.budget if value is not None}
    if changed:
        yield "budgets were overridden: " + ", ".join(f"{key}={value}" for key, value in changed.items())


def _attempts(rows: Sequence[TrialRow]) -> Iterator[str]:
    """Why there were further attempts: each follows one without a grade, and the reasons are not alike."""
    before = {(row.slot, row.attempt): row for row in rows}
    causes = Counter(_cause(before.get((row.slot, row.attempt - 1))) for row in rows if row.attempt > 1)
    for cause, count in causes.items():
        yield f"{count} attempt(s) followed {cause}"


def _cause(previous: TrialRow | None) -> str:
    result = previous.result if previous is not None else None
    if result is None:
        return "one that has not ended"
    if result.reason is Reason.CANCELLED:
        return "a cancellation"
    if result.reason is not None and result.reason.infrastructure:
        return "an infrastructure fault"
    return f"one without a grade ({result.reason.value if result.reason else result.outcome.value})"


def _usage(rows: Sequence[TrialRow]) -> Iterator[str]:
    unknown = sum(row.result.calls_without_usage for row in rows if row.result is not None)
    if unknown:
        yield f"{unknown} model call(s) came without usage: tokens and cost are lower bounds"
