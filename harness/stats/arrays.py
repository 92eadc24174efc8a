"""Array types, and the reading of outcomes that everything here shares."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harness.stats.errors import StatsError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


def outcomes(values: ArrayLike, name: str = "outcomes") -> FloatArray:
    """Outcomes as floats in [0, 1]; NaN is a missing outcome. Raises StatsError for anything else."""
    array = np.asarray(values, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        wrong = ~np.isnan(array) & ~((array >= 0.0) & (array <= 1.0))
    if wrong.any():
        raise StatsError(
            f"{name} holds {array[wrong].flat[0]}: an outcome lies in [0, 1], or is NaN where there is none"
        )
    return array


def level_of(level: float) -> float:
    """A confidence level in (0, 1), or StatsError."""
    if not 0.0 < level < 1.0:
        raise StatsError(f"the level {level} is not between 0 and 1")
    return level
