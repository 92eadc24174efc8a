"""Trials: the plan of one, and the one table of legal moves.

    planned → preparing → interacting → sealed → grading → done

A move goes forward by one step, or straight to `done` when the trial cannot go on (the reason is in the
result). Every move is an event that is durable before it is acted on (DESIGN, "A trial").
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import Field

from harness.records.base import Record
from harness.records.task import Budget, Task


class TrialState(StrEnum):
    PLANNED = "planned"
    PREPARING = "preparing"
    INTERACTING = "interacting"
    SEALED = "sealed"
    GRADING = "grading"
    DONE = "done"


LEGAL_MOVES: dict[TrialState, frozenset[TrialState]] = {
    TrialState.PLANNED: frozenset({TrialState.PREPARING, TrialState.DONE}),
    TrialState.PREPARING: frozenset({TrialState.INTERACTING, TrialState.DONE}),
    TrialState.INTERACTING: frozenset({TrialState.SEALED, TrialState.DONE}),
    TrialState.SEALED: frozenset({TrialState.GRADING, TrialState.DONE}),
    TrialState.GRADING: frozenset({TrialState.DONE}),
    TrialState.DONE: frozenset(),
}


class IllegalMove(ValueError):
    """A trial was asked to make a move that the table does not have."""


def move(current: TrialState, following: TrialState) -> TrialState:
    """`following`, if the table allows it. Raises IllegalMove."""
    if following not in LEGAL_MOVES[current]:
        raise IllegalMove(f"a trial cannot go from {current.value} to {following.value}")
    return following


class SolverSpec(Record):
    """Which solver, as asked for, and as resolved. `actor` says in whose name its actions are recorded."""

    name: str  # entry point, or path/to/file.py:name
    version: str = "0"
    options: dict[str, Any] = {}
    actor: str = "agent"
    uses_solution: bool = False
    code_digest: str | None = None  # of the one file that defines it
    metered: bool = True  # False: it may call models by itself, unseen by the harness


class TrialPlan(Record):
    """Everything a worker needs to carry out one trial, plain and serialisable.

    `slot` numbers the planned (task, repeat) pairs of a run; an attempt is a trial of its own, so that
    retries keep their evidence and their cost. `budget` is the effective one, `override` what was changed.
    """

    run: str
    trial: str
    slot: int = Field(ge=0)
    repeat: int = Field(default=0, ge=0)
    attempt: int = Field(default=1, ge=1)
    task: Task
    solver: SolverSpec
    model: str | None = None
    budget: Budget
    override: Budget = Budget()
    seed: int = 0


def trial_id(run: str, slot: int, attempt: int) -> str:
    """The id of an attempt at a slot: stable, sortable, unique across runs."""
    return f"{run}.{slot:04d}.{attempt}"
