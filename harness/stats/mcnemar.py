"""McNemar's exact test of two paired binary outcomes (McNemar 1947).

Of the m = n01 + n10 discordant pairs, n01 is Binomial(m, 1/2) under no difference:

    p = min(1, 2 · P[X ≤ min(n01, n10)])

The mid-p variant counts half of the observed point (Fagerland, Lydersen and Laake 2013); it is less conservative and
may exceed its level slightly. With no discordant pair both are 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from harness.stats.arrays import FloatArray
from harness.stats.errors import StatsError


@dataclass(frozen=True)
class McNemar:
    """Two-sided p-values for `discordant` pairs."""

    discordant: int
    p: float
    mid_p: float


def mcnemar(n01: int, n10: int) -> McNemar:
    """The test for one pair of sides. Raises StatsError for negative counts."""
    exact = float(exact_p(n01, n10))
    least, m = min(n01, n10), n01 + n10
    point = float(special.comb(m, least)) * 0.5**m if m < 1000 else float(np.exp(_log_point(least, m)))
    doubled = exact - point if n01 != n10 else 1.0 - point / 2
    return McNemar(m, exact, 1.0 if m == 0 else max(0.0, doubled))


def exact_p(n01: ArrayLike, n10: ArrayLike) -> FloatArray:
    """Exact two-sided p-values, element by element. Raises StatsError for negative counts."""
    a, b = np.asarray(n01, dtype=np.float64), np.asarray(n10, dtype=np.float64)
    if (a < 0).any() or (b < 0).any():
        raise StatsError("a count of discordant pairs is negative")
    least, m = np.minimum(a, b), a + b
    # P[X ≤ k] of Binomial(m, ½) is the regularised incomplete beta function I_½(m − k, k + 1).
    below = special.betainc(np.maximum(m - least, 0.5), least + 1, 0.5)
    return np.asarray(np.where(m == 0, 1.0, np.minimum(1.0, 2.0 * below)), dtype=np.float64)


def least_decisive(alpha: float) -> int:
    """The least number of discordant pairs of which any split has p ≤ alpha: 2 · ½^m ≤ α. Six for 0.05."""
    m = 1
    while 2.0 * 0.5**m > alpha:
        m += 1
    return m


def _log_point(k: int, m: int) -> float:
    return float(special.gammaln(m + 1) - special.gammaln(k + 1) - special.gammaln(m - k + 1) - m * np.log(2.0))
