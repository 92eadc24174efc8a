"""Stop once the candidate is known to be worse, no worse or better than a baseline (`harness.adaptive.decision`).

The error rates hold although the rule looks after every outcome. Items in flight do not count until they are back; if
they take the verdict away again, the run goes on. A run that can no longer decide is given up: with `truth` "agent" the
noise of even a full run may be larger than what is left to learn.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from harness.adaptive.arrays import BoolArray
from harness.adaptive.decision import Baseline, Decision, DecisionSettings, Verdict, decide
from harness.adaptive.decision.verdict import require_rule
from harness.adaptive.state import AbilityState, Withdrawal
from harness.adaptive.stops.protocol import EndReason, StopView


@dataclass(frozen=True)
class DecisionStop:
    """`margin` and `alpha` as in `decide`; `give_up`: stop undecided once the chance that running everything leads to a
    verdict is at most this (0 never gives up). Raises EngineError as `decide` does.
    """

    baseline: Baseline
    margin: float = 0.02
    alpha: float = 0.05
    settings: DecisionSettings = field(default_factory=DecisionSettings)
    give_up: float = 0.05

    def __post_init__(self) -> None:
        require_rule(self.margin, self.alpha)

    def decision(self, state: AbilityState) -> Decision:
        """The verdict on a run in this state."""
        return decide(state.evidence, self.baseline, self.margin, self.alpha, self.settings, ungraded(state))

    def check(self, view: StopView) -> tuple[EndReason, str] | None:
        """DECISION once there is a verdict, or none is in reach."""
        if len(view.state.items) < self.settings.minimum_tasks and view.state.open.any():
            return None
        found = self.decision(view.state)
        if found.verdict is not Verdict.UNDECIDED:
            return EndReason.DECISION, found.sentence
        if found.within_reach <= self.give_up:
            chance = f"the rest would decide with a chance of at most {100 * found.within_reach:.0f} %"
            return EndReason.DECISION, f"{found.sentence} Given up: {chance}."
        return None


def ungraded(state: AbilityState) -> BoolArray:
    """(N,) items that ran without a grade."""
    mask = np.zeros(len(state.bank), dtype=np.bool_)
    mask[[at for at, (kind, _) in state.withdrawn.items() if kind is Withdrawal.UNGRADED]] = True
    return mask
