"""2×2 transitions of the same episodes under two rules, versions or agents.

With n01 = fail → pass and n10 = pass → fail of n pairs with both outcomes:

    net change = (n01 − n10)/n,        churn = (n01 + n10)/n

A net change near zero may hide a large churn. Example: 77 of 800 changed, churn 9.625 %.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from harness.stats.arrays import outcomes
from harness.stats.errors import StatsError


@dataclass(frozen=True)
class Transitions:
    """Counts of old → new; `missing` pairs lack one outcome or both and are in no rate."""

    n00: int
    n01: int
    n10: int
    n11: int
    missing: int = 0

    def __post_init__(self) -> None:
        if min(self.n00, self.n01, self.n10, self.n11, self.missing) < 0:
            raise StatsError("a count of transitions is negative")

    @property
    def n(self) -> int:
        """Pairs with both outcomes."""
        return self.n00 + self.n01 + self.n10 + self.n11

    @property
    def changed(self) -> int:
        return self.n01 + self.n10

    @property
    def net(self) -> float | None:
        """(n01 − n10)/n; None without pairs."""
        return (self.n01 - self.n10) / self.n if self.n else None

    @property
    def churn(self) -> float | None:
        """(n01 + n10)/n; None without pairs."""
        return self.changed / self.n if self.n else None


def transitions(old: ArrayLike, new: ArrayLike) -> Transitions:
    """Count transitions of binary outcomes, shape (n,) each, NaN where one is missing.

    Raises StatsError for different shapes or outcomes other than 0, 1 and NaN.
    """
    before, after = outcomes(old, "old"), outcomes(new, "new")
    if before.shape != after.shape:
        raise StatsError(f"old has shape {before.shape}, new {after.shape}: they are not the same episodes")
    both = ~(np.isnan(before) | np.isnan(after))
    x, y = before[both], after[both]
    if not (np.isin(x, (0.0, 1.0)).all() and np.isin(y, (0.0, 1.0)).all()):
        raise StatsError("transitions are of outcomes 0 and 1; for rates take the weighted comparison")
    x1, y1 = x == 1.0, y == 1.0
    return Transitions(
        n00=int((~x1 & ~y1).sum()),
        n01=int((~x1 & y1).sum()),
        n10=int((x1 & ~y1).sum()),
        n11=int((x1 & y1).sum()),
        missing=int((~both).sum()),
    )
