"""Many comparisons at once: adjusted p-values for a board.

- Holm (1979): p̃_(i) = max over j ≤ i of min(1, (m − j + 1) p_(j)); the chance of any false claim stays at α, whatever
  the dependence. The pairs of a board share runs, so this is the one to claim by.
- Benjamini and Hochberg (1995): p̃_(i) = min over j ≥ i of min(1, (m/j) p_(j)); the expected share of false claims
  stays at α under positive dependence.

NaN (a pair that could not be tested) stays NaN and counts for nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from harness.stats.arrays import FloatArray
from harness.stats.errors import StatsError


def holm(p_values: ArrayLike) -> FloatArray:
    """Holm's adjusted p-values, same shape and order. Raises StatsError for values outside [0, 1]."""
    return _adjusted(p_values, step_down=True)


def benjamini_hochberg(p_values: ArrayLike) -> FloatArray:
    """Adjusted p-values for the false discovery rate, same shape and order. Raises StatsError as :func:`holm`."""
    return _adjusted(p_values, step_down=False)


def _adjusted(p_values: ArrayLike, *, step_down: bool) -> FloatArray:
    given = np.array(p_values, dtype=np.float64)
    tested = ~np.isnan(given)
    p = given[tested]
    if ((p < 0) | (p > 1)).any():
        raise StatsError("a p-value lies outside [0, 1]")
    order = np.argsort(p, kind="stable")
    m, rank = p.size, np.arange(1, p.size + 1)
    if step_down:
        ordered = np.maximum.accumulate((m - rank + 1) * p[order])
    else:
        ordered = np.minimum.accumulate((m / rank * p[order])[::-1])[::-1]
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(ordered, 1.0)
    given[tested] = adjusted
    return given
