"""Better or worse than a baseline, from partial runs, with error rates that hold however often one looks.

decision = decide(engine.state.evidence, Baseline.of_outcomes(bank, outcomes), margin=0.02, alpha=0.05)
print(decision.sentence)
"""

from __future__ import annotations

from harness.adaptive.decision.baseline import Baseline, evidence_of
from harness.adaptive.decision.paired import Difference, Side, Truth, difference_of
from harness.adaptive.decision.sequential import Bounds, bounds_of
from harness.adaptive.decision.verdict import Decision, DecisionSettings, Verdict, decide, verdict_of

__all__ = [
    "Baseline",
    "Bounds",
    "Decision",
    "DecisionSettings",
    "Difference",
    "Side",
    "Truth",
    "Verdict",
    "bounds_of",
    "decide",
    "difference_of",
    "evidence_of",
    "verdict_of",
]
