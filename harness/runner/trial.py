"""One trial: planned → preparing → interacting → sealed → grading → done, every move durable before it is acted on."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import anyio

from harness.records.errors import AssayError, SandboxFault, StoreError
from harness.records.grade import Grade, TrialResult
from harness.records.task import Budget
from harness.records.trial import TrialPlan, TrialState, move
from harness.records.usage import Account
from harness.records.vocabulary import Actor, Network, Outcome, Phase, Reason, StopReason
from harness.runner.conversation_stage import ConversationStage
from harness.runner.interact import Cast, described, interact
from harness.runner.interaction import Interaction
from harness.runner.journal import Journal, utc_now
from harness.runner.preparing import with_host_variables
from harness.runner.sealing import Sealed, interaction_digest
from harness.runner.services import Services
from harness.runner.stage import SandboxStage, Stage

CLOSED = "trial.closed"
INTERRUPTED_SEAL_S = 20.0
MOST_DETAIL = 4000  # characters
TEARDOWN_S = 120.0  # what a trial may take beyond its own limits before the watchdog ends it


@dataclass
class Ending:
    """How a trial ends, filled in as it goes; the result is made from it whatever happens."""

    outcome: Outcome = Outcome.UNGRADED
    stop: StopReason = StopReason.INFRASTRUCTURE
    reason: Reason | None = Reason.HARNESS_ERROR
    detail: str = "the trial did not end"
    stop_detail: str = ""
    reward: float | None = None
    flags: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def ungraded(self, reason: Reason, detail: str) -> None:
        self.outcome, self.reason, self.detail = Outcome.UNGRADED, reason, detail

    def graded(self, grade: Grade, sealed: Sealed) -> None:
        self.outcome, self.reward = grade.outcome, grade.reward
        self.reason, self.detail = grade.reason, grade.detail
        self.flags += [*sealed.flags, *grade.flags]
        if grade.outcome is Outcome.FAILED and grade.reason is None:
            self.reason = sealed.reason


class Trial:
    """Carries out one plan. `interrupt` may be called at any time from the same event loop."""

    def __init__(
        self, plan: TrialPlan, services: Services, on_move: Callable[[TrialPlan, TrialState], None] | None = None
    ) -> None:
        self.plan = plan
        self.services = services
        self.journal = Journal(services.store, plan.trial, plan.attempt, services.redactor)
        self.interaction = Interaction(plan.budget)
        self.state = TrialState.PLANNED
        self.ending = Ending()
        self.interrupted = False
        self.closing: tuple[str, dict[str, object]] | None = None
        self._on_move = on_move
        self._scope = anyio.CancelScope()

    def interrupt(self, *, now: bool = False) -> None:
        """Cancel: an interaction ends with stop `cancelled`; grading is let finish unless `now`."""
        self.interrupted = True
        if self.state is TrialState.INTERACTING:
            self.interaction.close(StopReason.CANCELLED, "the run was interrupted", Reason.CANCELLED)
        elif now or self.state in (TrialState.PLANNED, TrialState.PREPARING):
            self._scope.cancel()

    async def run(self) -> TrialResult:
        """Run to `done`.

        What happens inside a trial is its result, never an exception. Raises StoreError.
        """
        async with AsyncExitStack() as stack:
            with self._scope as scope:
                scope.deadline = anyio.current_time() + self._longest_s()
                try:
                    await self._stages(stack)
                except SandboxFault as fault:
                    self.ending.ungraded(Reason(fault.reason), str(fault))
                except StoreError:
                    raise  # nothing can be written down any more
                except Exception as error:  # noqa: BLE001  # one bad trial never ends a run of good ones
                    self.ending.ungraded(Reason.HARNESS_ERROR, f"{type(error).__name__}: {error}")
                    self.journal.note("harness.error", {"error": traceback.format_exc()[-8000:]})
            if scope.cancelled_caught:
                self._cut_short()
            return self._finish()  # durable before the teardown that follows (CASES C09)

    def _longest_s(self) -> float:
        task = self.plan.task
        solver_s = self.plan.budget.wall_s if self.plan.budget.wall_s is not None else float("inf")
        return task.environment.setup_s + solver_s + task.grading.timeout_s + TEARDOWN_S

    def _cut_short(self) -> None:
        self.ending.seconds = self.interaction.elapsed_s if self.interaction.started_s else 0.0
        self.ending.stop_detail = self.interaction.detail
        if self.interrupted:
            self.ending.stop = self.interaction.stop or StopReason.CANCELLED
            self.ending.ungraded(Reason.CANCELLED, "the run was interrupted")
        else:
            self.ending.stop = self.interaction.stop or StopReason.INFRASTRUCTURE
            self.ending.ungraded(Reason.WATCHDOG, f"not over after {self._longest_s():.0f} s in state {self.state}")

    def _move(self, state: TrialState) -> None:
        self.state = move(self.state, state)
        self.journal.note("trial.state", {"to": state.value})
        if self._on_move is not None:
            self._on_move(self.plan, state)

    async def _stages(self, stack: AsyncExitStack) -> None:
        task = self.plan.task
        if task.unsupported:
            self.ending.ungraded(Reason.UNSUPPORTED, "; ".join(task.unsupported))
            return
        self._move(TrialState.PREPARING)
        self.journal.phase = Phase.SETUP
        self.plan = self.plan.model_copy(update={"task": with_host_variables(task, self.services.host_env)})
        stage = make_stage(self.plan, self.services, self.journal, stack)
        await stage.open()
        await self._interact(stage)
        if self.ending.stop is StopReason.INFRASTRUCTURE:
            return
        sealed = await self._seal(stage)
        if sealed is None or self.ending.reason is not None:
            return
        if sealed.ungraded is not None:
            self.ending.ungraded(*sealed.ungraded)
            return
        await self._grade(stage, sealed)

    async def _interact(self, stage: Stage) -> None:
        self._move(TrialState.INTERACTING)
        model = self.services.model if self.plan.model is not None else None
        try:
            solver = self.services.solver(self.plan.solver)
        except (Exception, SystemExit) as error:  # noqa: BLE001  # a user's class may raise anything
            self.interaction.open()
            said = str(error) if isinstance(error, AssayError) else described(error)
            self.interaction.close(StopReason.SOLVER_ERROR, said, Reason.SOLVER_ERROR)
            self.journal.note("solver.unmade", {"error": traceback.format_exc()[-8000:]})
        else:
            cast = Cast(self.plan, solver, stage, model, self.services.price, self.journal)
            await interact(cast, self.interaction)
        stop = self.interaction.stop or StopReason.FINISHED
        self.ending.stop, self.ending.seconds = stop, self.interaction.elapsed_s
        self.ending.reason, self.ending.detail = self.interaction.reason, self.interaction.detail
        self.ending.stop_detail = self.interaction.detail
        self._move(TrialState.SEALED)

    async def _seal(self, stage: Stage) -> Sealed | None:
        """Seal whatever ended the interaction; after an interrupt within a bounded time, or not at all (None)."""
        limit_s = INTERRUPTED_SEAL_S if self.interrupted else math.inf
        with anyio.move_on_after(limit_s):
            return await stage.seal()
        return None

    async def _grade(self, stage: Stage, sealed: Sealed) -> None:
        self._move(TrialState.GRADING)
        self.journal.phase = Phase.GRADING
        grade = await stage.grade(sealed)
        self.journal.note("grade", grade.plain(), actor=Actor.GRADER, blobs=grade.blobs)
        after = interaction_digest(self.services.store.events(self.plan.trial))
        if after != sealed.interaction:
            what = f"the sealed stream changed while it was graded: {sealed.interaction} became {after}"
            self.ending.ungraded(Reason.HARNESS_ERROR, what)
            return
        self.ending.graded(grade, sealed)

    def _account(self) -> Account:
        account = self.services.account(self.services.store.events(self.plan.trial))
        unseen = not self.plan.solver.metered and self.plan.task.limits.network is not Network.NONE
        # A solver with a network of its own may have called anyone: unknown is not nothing.
        return account.model_copy(update={"cost_usd": None}) if unseen else account

    def _finish(self) -> TrialResult:
        account = self._account()
        ending = self.ending
        result = TrialResult(
            trial=self.plan.trial,
            outcome=ending.outcome,
            reason=ending.reason,
            detail=self.services.redactor.text(ending.detail)[:MOST_DETAIL],
            stop=ending.stop,
            stop_detail=self.services.redactor.text(ending.stop_detail)[:MOST_DETAIL],
            reward=ending.reward,
            flags=(*overridden(self.plan.override), *ending.flags),
            usage=account.usage,
            calls=account.calls,
            calls_without_usage=account.calls_without_usage,
            provider_status=self.interaction.provider_fault.status if self.interaction.provider_fault else None,
            steps=account.steps,
            cost_usd=account.cost_usd,
            cost_at_least_usd=account.cost_at_least_usd,
            seconds=round(ending.seconds, 6),
            finished_at=utc_now(),
        )
        self.journal.phase = None
        if self.state is not TrialState.DONE:
            self.state = move(self.state, TrialState.DONE)
        drafts = [
            self.journal.draft("trial.state", {"to": TrialState.DONE.value}),
            self.journal.draft("trial.result", result.plain()),
        ]
        head = self.journal.finish(result, drafts)[-1]
        self.closing = closing(self.plan.slot, self.plan.task.id, result, head.hash, head.seq + 1)
        if self._on_move is not None:
            self._on_move(self.plan, TrialState.DONE)
        return result


def make_stage(plan: TrialPlan, services: Services, journal: Journal, stack: AsyncExitStack) -> Stage:
    """What the trial happens in."""
    if plan.task.conversation is not None:
        return ConversationStage(plan, services, journal, stack)
    return SandboxStage(plan, services, journal, stack)


def overridden(override: Budget) -> tuple[str, ...]:
    """The stamp of a trial whose budget was not the task's own."""
    changed = ", ".join(f"{name}={value}" for name, value in override if value is not None)
    return (f"budget overridden: {changed}",) if changed else ()


def closing(slot: int, task: str, result: TrialResult, head: str, events: int) -> tuple[str, dict[str, object]]:
    """The event by which the run's own stream commits to the head of an ended trial's chain."""
    payload = {
        "trial": result.trial,
        "slot": slot,
        "task": task,
        "outcome": result.outcome.value,
        "head": head,
        "events": events,
    }
    return CLOSED, payload
