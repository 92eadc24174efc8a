"""Grades a sealed trial again: what the seal kept, in a new container of the recorded digest, by any grader.

The agent does not run, and nothing is written into the trial's own stream: what happens here goes to a stream of its
own, phase grading. The grade is of what was sealed or there is none: what was not kept, or is not what it was, is a
reason, never a guess.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from harness.protocols import EvidenceStore
from harness.records.base import digest_of
from harness.records.errors import SandboxFault, StoreError
from harness.records.event import Event
from harness.records.grade import Grade
from harness.records.task import Task
from harness.records.trial import TrialPlan
from harness.records.vocabulary import Actor, GradingEnvironment, Outcome, Phase, Reason
from harness.runner.carrying import carry
from harness.runner.journal import Journal
from harness.runner.judging import judge_sandbox
from harness.runner.keeping import Kept, bring_back
from harness.runner.preparing import sandbox_spec, with_host_variables
from harness.runner.sealing import ARTIFACT, CHANGE, SEAL
from harness.runner.services import Services


@dataclass(frozen=True)
class SealedEvidence:
    """What a trial's stream has of its seal. `problem`: why it cannot be graded again, with the reason's kind."""

    payload: dict[str, Any] = field(default_factory=dict)
    blobs: dict[str, str] = field(default_factory=dict)
    problem: str = ""
    reason: Reason = Reason.EVIDENCE_MISSING

    @property
    def digest(self) -> str:
        """Of everything that a grader will read."""
        return digest_of({"blobs": self.blobs, "kept": self.payload.get("kept"), "secret": self.payload.get("secret")})

    def named(self, prefix: str) -> dict[str, str]:
        """Digests of the blobs of one kind, by path."""
        return {name.removeprefix(prefix): digest for name, digest in self.blobs.items() if name.startswith(prefix)}


def read_seal(events: Iterable[Event]) -> SealedEvidence:
    """The seal in a trial's stream. A trial that was not to be graded then is not to be graded now."""
    sealed: Event | None = None
    to_grade = False
    for event in events:
        if event.kind == SEAL:
            sealed = event
        to_grade |= event.kind == "trial.state" and event.payload.get("to") == "grading"
    if sealed is None:
        return SealedEvidence(problem="the trial was never sealed: nothing that the agent did was kept")
    if not to_grade:
        problem = "the trial was not to be graded: its solver could not act, or its spend could not be kept"
        return SealedEvidence(sealed.payload, sealed.blobs, problem)
    return SealedEvidence(sealed.payload, sealed.blobs)


def with_grading(recorded: Task, current: Task, grader: str | None = None) -> Task:
    """The recorded task, judged as another version of it is: its tests, grader and rule, nothing else."""
    grading = current.grading if grader is None else current.grading.model_copy(update={"grader": grader})
    return recorded.model_copy(update={"grading": grading})


def missing_evidence(sealed: SealedEvidence, task: Task) -> str:
    """Why the seal does not hold what this grading needs; empty when it does."""
    if sealed.problem:
        return sealed.problem
    if task.grading.keep_services:
        return "the solver's services are part of what is graded, and processes cannot be kept"
    secret = sealed.payload.get("secret", [])
    if task.grading.environment is GradingEnvironment.SAME:
        kept = sealed.payload.get("kept")
        if kept is None:
            return "the seal kept nothing of the container: it was made by an older version"
        if kept["problem"]:
            return f"the container was not kept: {kept['problem']}"
        hidden = [name.removeprefix(CHANGE) for name in secret if name.startswith(CHANGE)]
        return f"{', '.join(hidden)} held a secret and was not kept" if hidden else ""
    known = sealed.payload.get("artifacts", {}).keys() | sealed.payload.get("artifacts_missing", {}).keys()
    lost = [path for path in task.grading.artifacts if path in known and f"{ARTIFACT}{path}" in secret]
    if lost:
        return f"{', '.join(lost)} held a secret and was not kept"
    unknown = [path for path in task.grading.artifacts if path not in known]
    return f"{', '.join(unknown)} was not among the artifacts that were sealed" if unknown else ""


async def regrade_sealed(plan: TrialPlan, sealed: SealedEvidence, services: Services, journal: Journal) -> Grade:
    """The grade of a sealed trial by the grading of `plan.task`. `journal` is a stream of its own.

    Raises StoreError only where nothing can be written down.
    """
    journal.phase = Phase.GRADING
    problem = missing_evidence(sealed, plan.task)
    if problem:
        damaged = sealed.reason is Reason.EVIDENCE_DAMAGED
        grade = _ungraded(plan, sealed.reason, problem, Outcome.INVALID if damaged else Outcome.UNGRADED)
    else:
        try:
            archives = _read_blobs(services.store, sealed, plan.task)
        except StoreError as damage:
            grade = _ungraded(plan, Reason.EVIDENCE_DAMAGED, str(damage), Outcome.INVALID)
        else:
            grade = await _graded(plan, sealed, archives, services, journal)
    journal.note("grade", grade.plain(), actor=Actor.GRADER, blobs=grade.blobs)
    return grade


async def _graded(
    plan: TrialPlan, sealed: SealedEvidence, archives: dict[str, bytes], services: Services, journal: Journal
) -> Grade:
    try:
        async with AsyncExitStack() as stack:
            plan = plan.model_copy(update={"task": with_host_variables(plan.task, services.host_env)})
            sandbox = await stack.enter_async_context(services.provider.open(sandbox_spec(plan, "regrading")))
            journal.note("sandbox.opened", sandbox.facts.plain())
            if plan.task.grading.environment is GradingEnvironment.FRESH:
                for path, archive in archives.items():
                    await sandbox.restore(archive, str(PurePosixPath(path).parent))
            else:
                kept = Kept(archives, tuple(sealed.payload["kept"]["deleted"]))
                await bring_back(sandbox, kept, sealed.payload["changes"], sealed.payload["changes_count"])
            return await judge_sandbox(sandbox, plan, services, journal)
    except SandboxFault as fault:
        return _ungraded(plan, Reason(fault.reason), str(fault))


def _read_blobs(store: EvidenceStore, sealed: SealedEvidence, task: Task) -> dict[str, bytes]:
    """The kept archives by path, each checked against its digest. Raises StoreError."""
    if task.grading.environment is GradingEnvironment.SAME:
        return {path: store.blob(digest) for path, digest in sealed.named(CHANGE).items()}
    found = sealed.named(ARTIFACT)
    return carry({path: store.blob(found[path]) for path in task.grading.artifacts if path in found}).archives


def _ungraded(plan: TrialPlan, reason: Reason, detail: str, outcome: Outcome = Outcome.UNGRADED) -> Grade:
    return Grade(grader=plan.task.grading.grader, outcome=outcome, reason=reason, detail=detail)
