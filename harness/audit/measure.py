"""From a sentinel's trials to evidence: what passed, what gold used of its allowances, and why it failed.

Decided by outcomes, reasons and measured use only, never by the text of an output.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.audit.amounts import MEBIBYTE, amount
from harness.protocols import EvidenceStore
from harness.records.audit import Cause, Evidence, Sentinel, Use
from harness.records.grade import TrialResult
from harness.records.run import TrialRow
from harness.records.task import Task
from harness.records.vocabulary import Outcome, Reason, StopReason
from harness.stats import clopper_pearson

SPENT = 0.995  # of an allowance: the kernel kills a page before the limit, and a clock is stopped a little early
_BY_REASON = {
    Reason.IMAGE_MISSING: Cause.IMAGE_MISSING,
    Reason.IMAGE_MISMATCH: Cause.IMAGE_CHANGED,
    Reason.IMAGE_PLATFORM: Cause.WRONG_PLATFORM,
    Reason.SETUP_FAILED: Cause.BUILD_FAILED,
    Reason.UNSUPPORTED: Cause.UNSUPPORTED,
}
_BY_STOP = {
    StopReason.TIME: "wall",
    StopReason.STEPS: "steps",
    StopReason.TOKENS: "tokens",
    StopReason.COST: "cost",
}
_BY_LIMIT = {
    Reason.GRADER_TIMEOUT: "grading",
    Reason.GRADER_MEMORY: "memory",
    Reason.MEMORY_LIMIT: "memory",
    Reason.DISK_LIMIT: "disk",
}


@dataclass(frozen=True)
class Measured:
    """What identifies the evidence of one sentinel in one cycle."""

    sentinel: Sentinel
    cycle: str
    at: str


@dataclass
class _Told:
    """What a trial's events say beside its result."""

    uses: dict[str, float] = field(default_factory=dict)
    setup_timed_out: bool = False

    def most(self, name: str, used: float | None) -> None:
        if used is not None:
            self.uses[name] = max(used, self.uses.get(name, 0.0))

    def take(self, kind: str, payload: Mapping[str, Any]) -> None:
        if kind == "setup":
            self.most("setup", payload.get("duration_s"))
            self.setup_timed_out |= bool(payload.get("timed_out"))
        elif kind == "exec":
            for stream in ("stdout", "stderr"):
                self.most("output", (payload.get(stream) or {}).get("seen_bytes"))
        elif kind == "seal":
            self.most("memory", payload.get("peak_memory_bytes"))
            self.most("disk", (payload.get("health") or {}).get("disk_bytes"))
        elif kind == "grade":
            self.most("memory", payload.get("peak_memory_bytes"))
            self.most("grading", payload.get("duration_s"))


def settled(trials: Iterable[TrialRow]) -> dict[str, list[TrialRow]]:
    """The last attempt of every slot, by task."""
    last: dict[int, TrialRow] = {}
    for trial in trials:
        if trial.slot not in last or trial.attempt > last[trial.slot].attempt:
            last[trial.slot] = trial
    by_task: dict[str, list[TrialRow]] = {}
    for slot in sorted(last):
        by_task.setdefault(last[slot].task, []).append(last[slot])
    return by_task


def measure(
    store: EvidenceStore, run: str, tasks: Mapping[str, Task], fingerprints: Mapping[str, str], which: Measured
) -> dict[str, Evidence]:
    """Evidence by task from one run of gold or null. A task on which nothing could be seen has none."""
    found = {}
    for name, trials in settled(store.trials(run)).items():
        seen = [trial for trial in trials if trial.result is not None and not spoiled(trial.result)]
        if seen:
            found[name] = _evidence(store, tasks[name], seen, fingerprints[name], which)
    return found


def spoiled(result: TrialResult) -> bool:
    """Whether the machine, a service or a person ended it: nothing is learnt about the task."""
    if result.outcome.graded or result.reason is None:
        return False
    return result.reason.infrastructure or result.reason is Reason.CANCELLED


def _evidence(store: EvidenceStore, task: Task, trials: list[TrialRow], fingerprint: str, which: Measured) -> Evidence:
    results = [trial.result for trial in trials if trial.result is not None]
    passed = sum(result.outcome is Outcome.PASSED for result in results)
    cause: Cause | None = None
    detail = ""
    uses: tuple[Use, ...] = ()
    if which.sentinel is Sentinel.GOLD:
        told = [_told(store, trial) for trial in trials]
        uses = uses_of(task, results, told)
        if passed < len(results):
            bad = next(at for at, result in enumerate(results) if result.outcome is not Outcome.PASSED)
            own = uses_of(task, [results[bad]], [told[bad]])
            cause, detail = cause_of(task, results[bad], own, setup_timed_out=told[bad].setup_timed_out)
            if passed:
                lower, upper = (100 * float(bound) for bound in clopper_pearson(passed, len(results)))
                detail = (
                    f"gold passed {passed} of {len(results)} (95 % interval {lower:.0f} to {upper:.0f} %); {detail}"
                )
                cause = Cause.FLAKY
    elif passed:
        cause = Cause.NULL_PASSED
        detail = f"passed {passed} of {len(results)} with nothing done"
    return Evidence(
        sentinel=which.sentinel,
        cycle=which.cycle,
        at=which.at,
        fingerprint=fingerprint,
        passed=passed,
        graded=sum(result.outcome.graded for result in results),
        attempts=len(results),
        cause=cause,
        detail=detail[:500],
        uses=uses,
        trials=tuple(trial.trial for trial in trials),
    )


def _told(store: EvidenceStore, trial: TrialRow) -> _Told:
    told = _Told()
    for event in store.events(trial.trial, ("setup", "exec", "seal", "grade")):
        told.take(event.kind, event.payload)
    return told


def uses_of(task: Task, results: Iterable[TrialResult], told: Iterable[_Told]) -> tuple[Use, ...]:
    """The most that any of the trials used of each allowance of the task, as far as it was measured."""
    most = _Told()
    for result in results:
        most.most("wall", result.seconds)
        most.most("steps", result.steps)
    for one in told:
        for name, used in one.uses.items():
            most.most(name, used)
    limits: dict[str, tuple[float | None, str]] = {
        "wall": (task.budget.wall_s, "s"),
        "setup": (task.environment.setup_s if task.environment.setup else None, "s"),
        "grading": (task.grading.timeout_s, "s"),
        "memory": (task.limits.memory_mb * MEBIBYTE, "bytes"),
        "disk": (None if task.limits.disk_mb is None else task.limits.disk_mb * MEBIBYTE, "bytes"),
        "output": (task.limits.output_bytes, "bytes"),
        "steps": (task.budget.steps, "steps"),
    }
    return tuple(
        Use(name=name, used=round(most.uses[name], 3), limit=limit, unit=unit)
        for name, (limit, unit) in limits.items()
        if limit is not None and name in most.uses
    )


def cause_of(
    task: Task, result: TrialResult, uses: tuple[Use, ...], *, setup_timed_out: bool = False
) -> tuple[Cause, str]:
    """Why gold did not pass, and the words for it."""
    said = result.detail or result.stop_detail
    if not task.solution.files:
        return Cause.NO_SOLUTION, "the task ships no reference solution"
    if setup_timed_out:
        return Cause.ALLOWANCE, _exhausted("setup", uses, said)
    if result.reason in _BY_REASON:
        return _BY_REASON[result.reason], said
    if result.stop in _BY_STOP:
        return Cause.ALLOWANCE, _exhausted(_BY_STOP[result.stop], uses, said)
    if result.reason in _BY_LIMIT:
        return Cause.ALLOWANCE, _exhausted(_BY_LIMIT[result.reason], uses, said)
    spent = next((use for use in uses if use.name in ("memory", "disk") and use.share >= SPENT), None)
    if spent is not None:
        return Cause.ALLOWANCE, _exhausted(spent.name, uses, said)
    if result.outcome is Outcome.FAILED:
        return Cause.TESTS_FAILED, said or f"reward {result.reward}"
    return Cause.NO_VERDICT, said or (result.reason.value if result.reason else result.outcome.value)


def _exhausted(name: str, uses: tuple[Use, ...], said: str) -> str:
    use = next((use for use in uses if use.name == name), None)
    measured = f"{name}: used {amount(use.used, use.unit)} of {amount(use.limit, use.unit)}" if use else name
    return f"{measured}; {said}" if said else measured
