"""Stop rules, one file each. That the pool is empty is no rule: the engine always stops then, and says which
way it is empty.
"""

from __future__ import annotations

from harness.adaptive.stops.decision import DecisionStop
from harness.adaptive.stops.protocol import EndReason, Stop, StopRule, StopView
from harness.adaptive.stops.spending import CostStop, TimeStop
from harness.adaptive.stops.standard_error import StandardErrorStop
from harness.adaptive.stops.tasks import TasksStop

__all__ = [
    "CostStop",
    "DecisionStop",
    "EndReason",
    "StandardErrorStop",
    "Stop",
    "StopRule",
    "StopView",
    "TasksStop",
    "TimeStop",
]
