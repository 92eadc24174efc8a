"""When to choose no more: the reasons there are, and what a rule is (CASES S14)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any, Protocol

from harness.adaptive.estimators.protocol import Estimate
from harness.adaptive.state import AbilityState


class EndReason(Enum):
    """Why no further item is chosen. `BUDGET` is for rules of the caller that watch its own cost or clock."""

    TASKS = "tasks"
    STANDARD_ERROR = "standard_error"
    COST = "cost"
    TIME = "time"
    DECISION = "decision"
    BUDGET = "budget"
    BANK_EXHAUSTED = "bank_exhausted"
    NONE_AVAILABLE = "none_available"


@dataclass(frozen=True)
class Stop:
    """No further item for now.

    `final` is False while items are in flight: let them finish, tell the engine, and ask again, because an
    item that comes back without an outcome may be replaced. `detail` is one line for people.
    """

    reason: EndReason
    detail: str
    executed: int
    pending: int
    withdrawn: int

    @property
    def final(self) -> bool:
        """Whether nothing in flight can change it."""
        return self.pending == 0

    def as_event(self) -> dict[str, Any]:
        """Plain, JSON-able values."""
        return {**asdict(self), "reason": self.reason.value, "final": self.final}


@dataclass(frozen=True, eq=False)
class StopView:
    """What a rule may know: the state, how many items are in flight, and the estimate, computed if asked for."""

    state: AbilityState
    n_pending: int
    estimate: Callable[[], Estimate]


class StopRule(Protocol):
    """`check` returns the reason and a line for people, or None to go on. It must be a pure function of the
    view, or replay breaks.
    """

    def check(self, view: StopView) -> tuple[EndReason, str] | None: ...
