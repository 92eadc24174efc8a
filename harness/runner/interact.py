"""Lets a solver loose on a prepared stage, under its budget, and says why it stopped."""

from __future__ import annotations

import json
import math
import traceback
from dataclasses import dataclass
from typing import Any

import anyio

from harness.billing.account import PriceOf
from harness.protocols import ChatModel, Episode, Solver
from harness.records.trial import TrialPlan
from harness.records.vocabulary import Actor, Phase, Reason, StopReason
from harness.runner.handles import MeteredModel
from harness.runner.hosting import host, raised_by
from harness.runner.interaction import Interaction
from harness.runner.journal import Journal
from harness.runner.stage import Stage

OUTPUT_GRACE_S = 2.0


@dataclass(frozen=True)
class Cast:
    """Who takes part in one interaction."""

    plan: TrialPlan
    solver: Solver
    stage: Stage
    model: ChatModel | None
    price: PriceOf
    journal: Journal


async def interact(cast: Cast, interaction: Interaction) -> None:
    """Run the solver until it returns, raises, or its gate closes. The answer is in `interaction`.

    Raises StoreError when an action could not be written down, whatever the solver made of it.
    """
    cast.journal.phase = Phase.INTERACTION
    episode = _episode(cast, interaction)
    interaction.open()
    failure: BaseException | None = None
    with interaction.scope() as scope:
        if interaction.budget.wall_s is not None:
            # No action begins after the budget. One under way has the budget as its own limit, and the grace is for
            # its output to be kept (CASES E09).
            scope.deadline = anyio.current_time() + interaction.budget.wall_s + OUTPUT_GRACE_S
        try:
            await host(cast.solver, episode)
        except BaseException as error:  # whatever its class, it is the solver's own, unless we cancelled
            if isinstance(error, anyio.get_cancelled_exc_class()) and _cancelled_by_us():
                raise
            failure = raised_by(error)
    if interaction.store_fault is not None:
        raise interaction.store_fault
    if interaction.out_of_time or (scope.cancelled_caught and interaction.stop is None):
        interaction.close_for_time()
    _conclude(interaction, failure)
    payload: dict[str, Any] = {
        "stop": interaction.stop.value if interaction.stop else None,
        "detail": interaction.detail,
        "seconds": round(interaction.elapsed_s, 6),
    }
    if failure is not None:
        payload["error"] = "".join(traceback.format_exception(failure))[-8000:]
    cast.journal.note("interaction.ended", payload)


def described(error: BaseException) -> str:
    """An exception in words: its class and what it says, which may be nothing, or itself raise."""
    try:
        said = str(error)
    except Exception as worse:  # noqa: BLE001  # a user's class may raise anything
        said = f"(its text cannot be had: {type(worse).__name__})"
    name = type(error).__name__
    return f"{name}: {said}"[:2000] if said else name


def _cancelled_by_us() -> bool:
    """Whether a scope around this task was cancelled: a solver may raise a cancellation of its own making."""
    return anyio.current_effective_deadline() == -math.inf


def _conclude(interaction: Interaction, failure: BaseException | None) -> None:
    """Name the stop of an interaction whose solver has returned or raised by itself."""
    fault = interaction.provider_fault
    if interaction.refused and interaction.completed_calls == 0:
        interaction.close_for_refusal()
    elif fault is not None and not interaction.refused and (failure is not None or interaction.completed_calls == 0):
        # No answer was to be had (CASES F08): the last call failed at the service, not at the solver.
        interaction.close(StopReason.INFRASTRUCTURE, str(fault), Reason.PROVIDER)
    elif failure is not None:
        detail = described(failure)
        # A solver that acted and then crashed is graded like one that gave up: were it not, crashing would pay. One
        # that never acted could not be started.
        never_acted = interaction.completed_calls == 0 and interaction.spent.commands == 0
        interaction.close(StopReason.SOLVER_ERROR, detail, Reason.SOLVER_ERROR if never_acted else None)
    else:
        interaction.close(StopReason.FINISHED)


def _episode(cast: Cast, interaction: Interaction) -> Episode:
    plan, task = cast.plan, cast.plan.task
    actor = Actor(plan.solver.actor)
    model = None
    if cast.model is not None:
        model = MeteredModel(cast.model, interaction, cast.journal, cast.price, seed=plan.seed)

    def note(kind: str, payload: Any) -> None:
        with interaction.passage():
            # A solver may hand in anything; what JSON cannot hold is kept as its repr.
            blobs: dict[str, str] = {}
            body = json.dumps(payload, default=repr, skipkeys=True).encode()
            text = cast.journal.body(body, "note", blobs)
            cast.journal.note("solver.note", {"kind": str(kind)[:200], "body": text}, actor=actor, blobs=blobs)

    handles = cast.stage.handles(interaction)
    return Episode(
        instruction=task.instruction,
        workdir=task.environment.workdir,
        seed=plan.seed,
        sandbox=handles.sandbox,
        conversation=handles.conversation,
        remaining=interaction.remaining,
        budget=interaction.budget,
        model=model,
        options=plan.solver.options,
        note=note,
        solution=task.solution if plan.solver.uses_solution else None,
        mutations=task.mutations if plan.solver.uses_solution else (),
    )
