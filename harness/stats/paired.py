"""An interval for the difference of two paired proportions: Newcombe's (1998) method 10, "square and add".

For p₁ = (n11 + n10)/n and p₂ = (n11 + n01)/n with Wilson bounds (l₁, u₁), (l₂, u₂) and θ = p₁ − p₂:

    θ − √((p₁ − l₁)² − 2φ(p₁ − l₁)(u₂ − p₂) + (u₂ − p₂)²)   to   θ + √((u₁ − p₁)² − 2φ(u₁ − p₁)(p₂ − l₂) + (p₂ − l₂)²)

φ is the phi coefficient of the table, with n/2 taken off a positive numerator n11·n00 − n10·n01 (not below 0), and 0
where a margin is empty. It needs no continuity correction and is no point when no pair is discordant.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from harness.stats.arrays import FloatArray
from harness.stats.errors import StatsError
from harness.stats.proportion import wilson
from harness.stats.transitions import Transitions


@dataclass(frozen=True)
class PairedInterval:
    """First minus second over `n` pairs, with bounds at `level`."""

    difference: float
    lower: float
    upper: float
    n: int
    level: float


def paired_interval(table: Transitions, level: float = 0.95) -> PairedInterval:
    """New minus old of a table of transitions. Raises StatsError without pairs."""
    if table.n == 0:
        raise StatsError("there are no pairs: nothing to compare")
    lower, upper = newcombe(table.n11, table.n01, table.n10, table.n00, level)
    return PairedInterval((table.n01 - table.n10) / table.n, float(lower), float(upper), table.n, level)


def newcombe(
    both: ArrayLike, first: ArrayLike, second: ArrayLike, neither: ArrayLike, level: float = 0.95
) -> tuple[FloatArray, FloatArray]:
    """Bounds for the rate of the first minus that of the second, element by element; NaN without pairs.

    `first` and `second` count pairs that only that one passed.
    """
    n11, n10, n01, n00 = (np.asarray(part, dtype=np.float64) for part in (both, first, second, neither))
    n = n11 + n10 + n01 + n00
    some = np.where(n > 0, n, np.nan)
    p1, p2 = (n11 + n10) / some, (n11 + n01) / some
    (l1, u1), (l2, u2) = wilson(n11 + n10, n, level), wilson(n11 + n01, n, level)
    phi = _phi(n11, n10, n01, n00)
    below, above = (p1 - l1, u2 - p2), (u1 - p1, p2 - l2)
    theta = (n10 - n01) / some
    return theta - _add(*below, phi), theta + _add(*above, phi)


def _phi(n11: FloatArray, n10: FloatArray, n01: FloatArray, n00: FloatArray) -> FloatArray:
    margins = (n11 + n10) * (n01 + n00) * (n11 + n01) * (n10 + n00)
    product = n11 * n00 - n10 * n01
    half = (n11 + n10 + n01 + n00) / 2
    numerator = np.where(product > 0, np.maximum(product - half, 0.0), product)
    return np.asarray(np.where(margins > 0, numerator / np.sqrt(np.maximum(margins, 1.0)), 0.0), dtype=np.float64)


def _add(a: FloatArray, b: FloatArray, phi: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.maximum(a * a - 2 * phi * a * b + b * b, 0.0)), dtype=np.float64)
