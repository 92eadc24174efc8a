"""The mid-range filter: items that about half of the past agents passed, in random order.

The pool is the items with a historical pass rate in [.30, .70]; if under a tenth of the bank is there, [.25, .75],
and if still fewer, [.15, .85] (p(1−p) at least half its maximum). Within the band every item is worth the same, so the
seed orders them. Once the band is used up, the items nearest to it follow. Source: "Efficient Benchmarking of Agents"
(SOURCES S4), the filter and its operating protocol. That source aims at ranking; a band says nothing of the items that
everybody passes or fails, so its sample mean is no estimate of the pass rate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.adaptive.arrays import FloatArray, sigmoid
from harness.adaptive.bank import Bank
from harness.adaptive.policies.protocol import View
from harness.adaptive.policies.traits import require_per_item
from harness.adaptive.strata import difficulty

BANDS = ((0.30, 0.70), (0.25, 0.75), (0.15, 0.85))
LEAST_SHARE = 0.10
_ROUNDING = 1e-12  # 0.3 as 3/10 and as 1 − 0.7 are the same rate


@dataclass(frozen=True, eq=False)
class MidRange:
    """`pass_rate` (N,) are the historical rates, NaN where an item has none; None has none at all. A missing rate is
    what the bank implies for an agent not yet seen (`strata.difficulty`).

    Raises EngineError if a rate is outside [0, 1], and at use if there is not one per item.
    """

    pass_rate: FloatArray | None = None
    name: str = "mid_range"
    random_share: float = 0.0

    def __post_init__(self) -> None:
        if self.pass_rate is not None:
            require_per_item("pass_rate", self.pass_rate, lambda rate: (rate >= 0) & (rate <= 1), "a rate in [0, 1]")

    def rates(self, bank: Bank) -> FloatArray:
        """The rates it goes by, (N,)."""
        implied = sigmoid(-difficulty(bank))
        if self.pass_rate is None:
            return implied
        known = np.asarray(self.pass_rate, dtype=np.float64)
        require_per_item("pass_rate", known, length=len(bank))
        return np.where(np.isnan(known), implied, known)

    def values(self, view: View) -> FloatArray:
        """0 within the band, minus the distance to it outside, (..., N)."""
        rates = self.rates(view.bank)
        low, high = band_of(rates)
        distance = np.maximum(np.maximum(low - rates, rates - high), 0.0)
        distance = np.where(distance <= _ROUNDING, 0.0, distance)
        return np.asarray(np.broadcast_to(-distance, view.pool.shape))


def band_of(rates: FloatArray) -> tuple[float, float]:
    """The narrowest of `BANDS` that holds at least `LEAST_SHARE` of the items, or else the widest."""
    for low, high in BANDS:
        inside = (rates >= low - _ROUNDING) & (rates <= high + _ROUNDING)
        if inside.sum() >= LEAST_SHARE * len(rates):
            return low, high
    return BANDS[-1]
