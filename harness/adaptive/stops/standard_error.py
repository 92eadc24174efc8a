"""Stop at a precision: the standard error of the estimated pass rate is at most `limit`, after
`minimum_tasks` outcomes.

Items in flight do not count until they are back. This is a rule about one score; it does not decide between two agents.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.adaptive.errors import EngineError
from harness.adaptive.stops.protocol import EndReason, StopView


@dataclass(frozen=True)
class StandardErrorStop:
    """`limit` > 0 in fractions of 1 (0.01 is one percentage point); raises EngineError otherwise."""

    limit: float
    minimum_tasks: int = 20

    def __post_init__(self) -> None:
        if not self.limit > 0 or self.minimum_tasks < 0:
            raise EngineError(
                f"standard error {self.limit} after {self.minimum_tasks} tasks",
                place="StandardErrorStop",
                remedy="Give a limit above 0, as a fraction, and a count of at least 0",
            )

    def check(self, view: StopView) -> tuple[EndReason, str] | None:
        """STANDARD_ERROR once the estimate is precise enough."""
        if len(view.state.items) < self.minimum_tasks:
            return None
        error = view.estimate().standard_error
        if not error <= self.limit:
            return None
        return EndReason.STANDARD_ERROR, f"standard error {error:.4f}, at most {self.limit:.4f} was asked for"
