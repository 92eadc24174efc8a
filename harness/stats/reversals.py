"""Rank reversals between two scores of the same units.

For units i < j let d = s_i − s_j under the old scores and d' under the new. A pair is strictly reversed when
d·d' < 0. Ties entered (d ≠ 0, d' = 0) and left (d = 0, d' ≠ 0) are counted apart; the denominator is C(n, 2).
Each unit is in n − 1 pairs: the pairs are no independent sample, and a share of them carries no standard error.
Examples: 48 of C(27, 2) = 351 (13.7 %); 4 of C(17, 2) = 136 (2.9 %).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from harness.stats.arrays import FloatArray
from harness.stats.errors import StatsError


@dataclass(frozen=True)
class Reversals:
    """Counts over all pairs of `units`; `left_out` units lack one score or both."""

    units: int
    pairs: int
    reversed: int
    ties_entered: int
    ties_left: int
    ties_kept: int
    left_out: int = 0

    @property
    def share(self) -> float | None:
        """Strict reversals over all pairs; None for fewer than two units."""
        return self.reversed / self.pairs if self.pairs else None


def reversals(old: ArrayLike, new: ArrayLike, decimals: int | None = None) -> Reversals:
    """Compare two scores, shape (n,), NaN where there is none.

    `decimals` rounds both first: a board that shows fewer digits than it sorts by has ties that its order hides.
    Raises StatsError for different shapes.
    """
    before, after = np.asarray(old, dtype=np.float64), np.asarray(new, dtype=np.float64)
    if before.shape != after.shape or before.ndim != 1:
        raise StatsError(f"old has shape {before.shape}, new {after.shape}: give one score per unit twice")
    known = np.isfinite(before) & np.isfinite(after)
    x, y = before[known], after[known]
    if decimals is not None:
        x, y = np.round(x, decimals), np.round(y, decimals)
    moved = _signs(x), _signs(y)
    was, now = moved[0] != 0, moved[1] != 0
    return Reversals(
        units=x.size,
        pairs=x.size * (x.size - 1) // 2,
        reversed=int((moved[0] * moved[1] < 0).sum()),
        ties_entered=int((was & ~now).sum()),
        ties_left=int((~was & now).sum()),
        ties_kept=int((~was & ~now).sum()),
        left_out=int((~known).sum()),
    )


def _signs(scores: FloatArray) -> FloatArray:
    """The sign of s_i − s_j over all i < j; differences within rounding of the sums are ties."""
    first, second = np.triu_indices(scores.size, k=1)
    difference = scores[first] - scores[second]
    noise = 1e-12 * np.maximum(np.abs(scores[first]), np.abs(scores[second]))
    return np.asarray(np.where(np.abs(difference) <= noise, 0.0, np.sign(difference)), dtype=np.float64)
