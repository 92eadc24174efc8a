"""Intervals for a binomial proportion, for x passes of n trials, element by element.

- Wilson (1927): the score interval, (x + z²/2)/(n + z²) ± z/(n + z²) · √(x(n − x)/n + z²/4).
- Clopper and Pearson (1934): [B(α/2; x, n − x + 1), B(1 − α/2; x + 1, n − x)] with beta quantiles B; never covers less
  than its level.
- Jeffreys: the equal-tailed posterior under Beta(1/2, 1/2), with lower 0 at x = 0 and upper 1 at x = n (Brown, Cai
  and DasGupta 2001, eq. 12).

All three keep to [0, 1] and are no point at x = 0 or n. With n = 0 they are [0, 1]. They are for independent trials:
repeats of one task are not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from harness.stats.arrays import FloatArray, level_of
from harness.stats.errors import StatsError

Bounds = tuple[FloatArray, FloatArray]


def wilson(passed: ArrayLike, trials: ArrayLike, level: float = 0.95) -> Bounds:
    """Lower and upper bounds by Wilson's score. Raises StatsError unless 0 ≤ passed ≤ trials."""
    x, n = _checked(passed, trials)
    z = float(special.ndtri(0.5 + level_of(level) / 2))
    some = np.maximum(n, 1.0)
    centre = (x + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * np.sqrt(x * (n - x) / some + z * z / 4)
    return _ends(np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0), x, n)


def clopper_pearson(passed: ArrayLike, trials: ArrayLike, level: float = 0.95) -> Bounds:
    """The exact bounds of Clopper and Pearson. Raises StatsError unless 0 ≤ passed ≤ trials."""
    x, n = _checked(passed, trials)
    tail = (1.0 - level_of(level)) / 2
    lower = special.betaincinv(np.maximum(x, 0.5), n - x + 1, tail)
    upper = special.betaincinv(x + 1, np.maximum(n - x, 0.5), 1.0 - tail)
    return _ends(lower, upper, x, n)


def jeffreys(passed: ArrayLike, trials: ArrayLike, level: float = 0.95) -> Bounds:
    """The Bayesian bounds under Jeffreys' prior. Raises StatsError unless 0 ≤ passed ≤ trials."""
    x, n = _checked(passed, trials)
    tail = (1.0 - level_of(level)) / 2
    lower = special.betaincinv(x + 0.5, n - x + 0.5, tail)
    upper = special.betaincinv(x + 0.5, n - x + 0.5, 1.0 - tail)
    return _ends(lower, upper, x, n)


def _checked(passed: ArrayLike, trials: ArrayLike) -> Bounds:
    x, n = np.broadcast_arrays(np.asarray(passed, dtype=np.float64), np.asarray(trials, dtype=np.float64))
    if not ((x >= 0) & (x <= n) & np.isfinite(n)).all():
        raise StatsError("passes must lie between 0 and the number of trials")
    return x, n


def _ends(lower: FloatArray, upper: FloatArray, x: FloatArray, n: FloatArray) -> Bounds:
    return np.where(x == 0, 0.0, lower), np.where(x == n, 1.0, upper)
