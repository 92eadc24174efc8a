"""Stop at k tasks: outcomes known plus items in flight reach `limit`. A task without a grade does not count;
it is replaced.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.adaptive.errors import EngineError
from harness.adaptive.stops.protocol import EndReason, StopView


@dataclass(frozen=True)
class TasksStop:
    """`limit` ≥ 1 tasks; raises EngineError otherwise."""

    limit: int

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise EngineError(f"{self.limit} tasks", place="TasksStop.limit", remedy="Give at least 1")

    def check(self, view: StopView) -> tuple[EndReason, str] | None:
        """TASKS once the limit is reached."""
        if len(view.state.items) + view.n_pending < self.limit:
            return None
        return EndReason.TASKS, f"{self.limit} tasks"
