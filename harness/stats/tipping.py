"""The tipping point: which pass rate among A's unresolved episodes makes the two sides equal.

    (P_A + q_A U_A)/n_A = (P_B + q_B U_B)/n_B     ⇒     q_A = [ (n_A/n_B)(P_B + q_B U_B) − P_A ] / U_A

for a given pass rate q_B among B's unresolved. Outside [0, 1] no tie is feasible under that q_B.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from harness.stats.errors import StatsError
from harness.stats.identification import Counts


@dataclass(frozen=True)
class TippingPoint:
    """`rate` among A's `unresolved` ties the two; None when A has nothing unresolved.

    `passes` is the same in episodes (need not be whole). `feasible`: it lies in [0, 1]. `ahead` says who leads
    under q_B where it is not, "a" or "b"; "" where a tie is feasible, "tie" when both are equal and nothing is open.
    """

    rate: float | None
    passes: float
    unresolved: int
    feasible: bool
    ahead: str

    @property
    def passes_to_lead(self) -> int | None:
        """The least number of A's unresolved that must pass for A to be ahead of B; None when none suffices."""
        least = max(0, math.floor(self.passes + 1e-9) + 1)
        return least if least <= self.unresolved else None


def tipping_point(a: Counts, b: Counts, b_rate: float) -> TippingPoint:
    """The tipping point of A against B, with `b_rate` the pass rate among B's unresolved.

    Example: A 30 passed and 50 unresolved of 100, B 43 and 2 of 100, `b_rate` 0.5: 14 of A's 50, rate 0.28.
    Raises StatsError for a rate outside [0, 1].
    """
    if not 0.0 <= b_rate <= 1.0:
        raise StatsError(f"the pass rate {b_rate} among B's unresolved is not in [0, 1]")
    passes = a.planned / b.planned * (b.passed + b_rate * b.unresolved) - a.passed
    slack = 1e-9 * a.planned
    feasible = -slack <= passes <= a.unresolved + slack
    if a.unresolved == 0:
        tie = abs(passes) <= slack
        return TippingPoint(None, passes, 0, tie, "tie" if tie else "a" if passes < 0 else "b")
    ahead = "" if feasible else "a" if passes < 0 else "b"
    return TippingPoint(passes / a.unresolved, passes, a.unresolved, feasible, ahead)
