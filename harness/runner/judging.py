"""Asks the grader about what is sealed: in the live trial, and whenever a sealed trial is graded again."""

from __future__ import annotations

import secrets
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio

from harness.protocols import Grader, GradingCase, Sandbox
from harness.records.errors import SandboxFault, StoreError
from harness.records.event import Event
from harness.records.grade import Grade
from harness.records.task import Task
from harness.records.trial import TrialPlan
from harness.records.vocabulary import Actor, Outcome, Phase, Reason
from harness.runner.journal import Journal
from harness.runner.preparing import prepare, sandbox_spec
from harness.runner.services import Services

GRADER_GRACE_S = 30.0  # for carrying tests in and the verdict out, beside the tests' own time


async def judge_sandbox(sandbox: Sandbox, plan: TrialPlan, services: Services, journal: Journal) -> Grade:
    """The grade of what lies in a sandbox, by the task's grader. Raises SandboxFault and StoreError."""
    task = plan.task
    grader: Grader = services.grader(task.grading.grader)

    @asynccontextmanager
    async def pristine() -> AsyncIterator[Sandbox]:
        """A sandbox as the solver found its own, for a grader that asks who broke what."""
        async with services.provider.open(sandbox_spec(plan, "pristine")) as other:
            journal.note("sandbox.opened", other.facts.plain())
            try:
                await prepare(other, plan, journal)
            finally:
                journal.phase = Phase.GRADING
            yield other

    case = GradingCase(
        task=task,
        sandbox=sandbox,
        nonce=secrets.token_hex(16),
        keep=journal.keep,
        note=lambda kind, payload: _discard(journal.note(kind, payload, actor=Actor.GRADER)),
        pristine=pristine,
    )
    grade = await judge(lambda: grader.grade(case), task, journal)
    return grade.model_copy(update={"peak_memory_bytes": await sandbox.peak_memory()})


async def judge(ask: Callable[[], Awaitable[Grade]], task: Task, journal: Journal) -> Grade:
    """Ask a grader. One that raises or hangs is ungraded by its own fault: the agent is not asked again for it."""
    setup_s = task.environment.setup_s if task.environment.setup else 0.0  # of a pristine sandbox
    allowed_s = task.grading.timeout_s + setup_s + GRADER_GRACE_S
    reason, detail = Reason.GRADER_TIMEOUT, f"no answer after {allowed_s:.0f} s"
    with anyio.move_on_after(allowed_s):
        try:
            return await ask()
        except (SandboxFault, StoreError):
            raise
        except Exception as error:  # noqa: BLE001  # a plug-in may raise anything
            reason, detail = Reason.GRADER_CRASHED, f"{type(error).__name__}: {error}"
            journal.note("grader.error", {"error": traceback.format_exc()[-8000:]}, actor=Actor.GRADER)
    return Grade(grader=task.grading.grader, outcome=Outcome.UNGRADED, reason=reason, detail=detail)


def _discard(event: Event) -> None:
    """A grader's note needs no answer."""
