"""Lets a solver loose on a prepared sandbox, under its budget, and says why it stopped."""

from __future__ import annotations

import json
import traceback
from dataclasses import dataclass
from typing import Any

import anyio

from harness.protocols import ChatModel, Episode, Sandbox, Solver
from harness.records.trial import TrialPlan
from harness.records.vocabulary import Actor, Phase, Reason, StopReason
from harness.runner.handles import MeteredModel, Price, RecordedSandbox
from harness.runner.hosting import host
from harness.runner.interaction import Interaction
from harness.runner.journal import Journal


@dataclass(frozen=True)
class Cast:
    """Who takes part in one interaction."""

    plan: TrialPlan
    solver: Solver
    sandbox: Sandbox
    model: ChatModel | None
    price: Price
    journal: Journal


async def attempt(cast: Cast, interaction: Interaction) -> None:
    """Run the solver until it returns, raises, or its gate closes. The answer is in `interaction`."""
    cast.journal.phase = Phase.INTERACTION
    episode = _episode(cast, interaction)
    interaction.open()
    failure: BaseException | None = None
    with interaction.scope() as scope:
        if interaction.budget.wall_s is not None:
            scope.deadline = anyio.current_time() + interaction.budget.wall_s
        try:
            await host(cast.solver, episode)
        except anyio.get_cancelled_exc_class():
            raise
        except BaseException as error:  # noqa: BLE001  # whatever its class, it is the solver's own
            failure = error
    if scope.cancelled_caught and interaction.stop is None:
        interaction.close(StopReason.TIME, f"{interaction.budget.wall_s} s of wall time used")
    _conclude(interaction, failure)
    payload: dict[str, Any] = {
        "stop": interaction.stop.value if interaction.stop else None,
        "detail": interaction.detail,
        "seconds": round(interaction.elapsed_s, 6),
    }
    if failure is not None:
        payload["error"] = "".join(traceback.format_exception(failure))[-8000:]
    cast.journal.note("interaction.ended", payload)


def _conclude(interaction: Interaction, failure: BaseException | None) -> None:
    """Name the stop of an interaction whose solver has returned or raised by itself."""
    fault = interaction.provider_fault
    if fault is not None and (failure is not None or interaction.completed_calls == 0):
        # No answer was to be had (CASES F08): the last call failed at the service, not at the solver.
        interaction.close(StopReason.INFRASTRUCTURE, str(fault), Reason.PROVIDER)
    elif failure is not None:
        detail = f"{type(failure).__name__}: {failure}"
        interaction.close(StopReason.SOLVER_ERROR, detail[:2000], Reason.SOLVER_ERROR)
    else:
        interaction.close(StopReason.FINISHED)


def _episode(cast: Cast, interaction: Interaction) -> Episode:
    plan, task = cast.plan, cast.plan.task
    actor = Actor(plan.solver.actor)
    model = None
    if cast.model is not None:
        model = MeteredModel(cast.model, interaction, cast.journal, cast.price, seed=plan.seed)

    def note(kind: str, payload: Any) -> None:
        # A solver may hand in anything; what JSON cannot hold is kept as its repr.
        plain = json.loads(json.dumps(payload, default=repr, skipkeys=True))
        cast.journal.note("solver.note", {"kind": kind, "payload": plain}, actor=actor)

    return Episode(
        instruction=task.instruction,
        workdir=task.environment.workdir,
        seed=plan.seed,
        sandbox=RecordedSandbox(cast.sandbox, interaction, cast.journal, task, actor),
        remaining=interaction.remaining,
        budget=interaction.budget,
        model=model,
        options=plan.solver.options,
        note=note,
        solution=task.solution if plan.solver.uses_solution else None,
        mutations=task.mutations if plan.solver.uses_solution else (),
    )
