"""What an episode happens in: a container, or an environment with tools and a user. The one seam between the two."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Protocol

from harness.protocols import Sandbox, SolverConversation, SolverSandbox
from harness.records.grade import Grade
from harness.records.trial import TrialPlan
from harness.records.vocabulary import Actor, GradingEnvironment, Reason
from harness.runner.handles import RecordedSandbox
from harness.runner.interaction import Interaction
from harness.runner.journal import Journal
from harness.runner.judging import judge_sandbox
from harness.runner.preparing import prepare, sandbox_spec
from harness.runner.sealing import Sealed, seal
from harness.runner.services import Services


@dataclass(frozen=True)
class Handles:
    """What a solver gets to act with."""

    sandbox: SolverSandbox
    conversation: SolverConversation | None = None


class Stage(Protocol):
    """One trial's own place, used in this order. Every method may raise SandboxFault."""

    async def open(self) -> None:
        """Bring it to the state in which the solver's clock may start; it closes with the trial."""
        ...

    def handles(self, interaction: Interaction) -> Handles: ...

    async def seal(self) -> Sealed: ...

    async def grade(self, sealed: Sealed) -> Grade: ...


class SandboxStage:
    """A container of the task's image."""

    def __init__(self, plan: TrialPlan, services: Services, journal: Journal, stack: AsyncExitStack) -> None:
        self.plan, self.services, self.journal, self._stack = plan, services, journal, stack

    async def open(self) -> None:
        self._sandbox = await self._opened("trial")
        await prepare(self._sandbox, self.plan, self.journal)

    def handles(self, interaction: Interaction) -> Handles:
        actor = Actor(self.plan.solver.actor)
        return Handles(RecordedSandbox(self._sandbox, interaction, self.journal, self.plan.task, actor))

    async def seal(self) -> Sealed:
        sealed = await seal(self._sandbox, self.plan.task, self.journal, self.services.keep_bytes)
        too_large = [path for path, problem in sealed.missing.items() if problem == "too large"]
        if too_large:
            return sealed.ungradable(Reason.ARTIFACT_TOO_LARGE, f"{', '.join(too_large)}: too large to carry")
        return sealed

    async def grade(self, sealed: Sealed) -> Grade:
        sandbox = self._sandbox
        if self.plan.task.grading.environment is GradingEnvironment.FRESH:
            sandbox = await self._opened("grading")
            for path, archive in sealed.artifacts.items():
                await sandbox.restore(archive, str(PurePosixPath(path).parent))
        return await judge_sandbox(sandbox, self.plan, self.services, self.journal)

    async def _opened(self, purpose: str) -> Sandbox:
        opened = self.services.provider.open(sandbox_spec(self.plan, purpose))
        sandbox = await self._stack.enter_async_context(opened)
        self.journal.note("sandbox.opened", sandbox.facts.plain())
        return sandbox
