"""How the tasks of a run ended: passes of graded repeats, or why there is no grade."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from harness.adaptive.state import Withdrawal
from harness.records.run import TrialRow
from harness.records.vocabulary import UNAVAILABLE_REASONS, Outcome
from harness.report.summary import last_attempts


@dataclass(frozen=True)
class Ending:
    """How a task's repeats ended: `passes` of `graded`; where there is no grade, `without` says of what kind."""

    passes: int
    graded: int
    version: str
    without: Withdrawal | None = None
    why: str = ""


def endings(trials: Iterable[TrialRow]) -> dict[str, Ending]:
    """By task, for every task with an ended trial: what its last attempts came to."""
    by_task: dict[str, list[TrialRow]] = {}
    for trial in last_attempts(trials):
        if trial.result is not None:
            by_task.setdefault(trial.task, []).append(trial)
    return {task: _ending(ended) for task, ended in by_task.items()}


def _ending(trials: list[TrialRow]) -> Ending:
    results = [trial.result for trial in trials if trial.result is not None]
    graded = [result.outcome is Outcome.PASSED for result in results if result.outcome.graded]
    version = trials[-1].task_version
    if graded:
        return Ending(sum(graded), len(graded), version)
    broken = any(result.reason in UNAVAILABLE_REASONS for result in results)
    reason = results[-1].reason
    kind = Withdrawal.UNAVAILABLE if broken else Withdrawal.UNGRADED
    return Ending(0, 0, version, kind, reason.value if reason else "")
