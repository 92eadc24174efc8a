"""Intervals for paired and for single proportions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from scipy.special import betaincinv, ndtri

_STEPS = 80  # halvings: the last is far below a rounding error


def paired_interval(gained: int, lost: int, pairs: int, level: float = 0.95) -> tuple[float, float]:
    """Score interval for the difference (gained − lost) / pairs of two proportions on the same items.

    All (1 − α) differences Δ that the score test does not reject,

        |gained − lost − nΔ| / √(n (2 p̂ + Δ (1 − Δ))) ≤ z,    p̂ the restricted estimate of P(lost) given Δ,

    with p̂ the larger root of 2n p² + B p + C = 0, B = −gained − lost + (2n − gained + lost) Δ, C = −lost Δ (1 − Δ).
    With no discordant pair it is ± z²/(n + z²), not a point. Source: Tango (1998), Statistics in Medicine 17, eq. 8.

    Raises ValueError for impossible counts.
    """
    if pairs <= 0 or min(gained, lost) < 0 or gained + lost > pairs:
        raise ValueError(f"{gained} gained and {lost} lost of {pairs} pairs")
    z = float(ndtri(0.5 + level / 2))
    found = (gained - lost) / pairs

    def rejected(delta: float) -> bool:
        b = -gained - lost + (2 * pairs - gained + lost) * delta
        c = -lost * delta * (1 - delta)
        root = (math.sqrt(max(0.0, b * b - 8 * pairs * c)) - b) / (4 * pairs)
        variance = pairs * (2 * root + delta * (1 - delta))
        return abs(gained - lost - pairs * delta) > z * math.sqrt(max(variance, 0.0))

    return _edge(rejected, found, -1.0), _edge(rejected, found, 1.0)


def _edge(rejected: Callable[[float], bool], inside: float, outside: float) -> float:
    if not rejected(outside):
        return outside
    for _ in range(_STEPS):
        middle = (inside + outside) / 2
        inside, outside = (inside, middle) if rejected(middle) else (middle, outside)
    return inside


def mean_interval(differences: Sequence[float], level: float = 0.95) -> tuple[float, float]:
    """Normal interval for the mean of per-item differences, items as the sample; for repeats, whose differences are
    no longer −1, 0 or 1. A single item tells nothing: [−1, 1]."""
    n = len(differences)
    if n < 2:
        return -1.0, 1.0
    mean = sum(differences) / n
    variance = sum((one - mean) ** 2 for one in differences) / (n - 1)
    half = float(ndtri(0.5 + level / 2)) * math.sqrt(variance / n)
    return max(-1.0, mean - half), min(1.0, mean + half)


def rate_interval(passed: int, trials: int, level: float = 0.95) -> tuple[float, float]:
    """Exact interval for a pass rate (Clopper & Pearson 1934). Raises ValueError for impossible counts."""
    if not 0 <= passed <= trials or trials == 0:
        raise ValueError(f"{passed} of {trials}")
    tail = (1 - level) / 2
    lower = 0.0 if passed == 0 else float(betaincinv(passed, trials - passed + 1, tail))
    upper = 1.0 if passed == trials else float(betaincinv(passed + 1, trials - passed, 1 - tail))
    return lower, upper
