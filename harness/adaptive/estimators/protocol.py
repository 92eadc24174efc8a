"""What an estimator is: a state in, one `Estimate` out, the point and its interval from one and the same
formula (CASES S11).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from harness.adaptive.arrays import FloatArray, normal_quantile
from harness.adaptive.errors import EngineError
from harness.adaptive.state import AbilityState


@dataclass(frozen=True)
class Estimate:
    """The pass rate that a full run of the suite would show, all in fractions of 1.

    `n_items` is the size of the estimated population (unavailable items are not in it), `executed` how many
    of them have an outcome. `lower` and `upper` bound the *realised* full-suite rate at `level`; they never
    leave what the outcomes so far still allow. With no outcome yet everything is finite. With `n_items` = 0
    value, bounds and standard error are NaN.
    """

    value: float
    lower: float
    upper: float
    level: float
    executed: int
    n_items: int
    standard_error: float
    method: str


class Estimator(Protocol):
    """`name` goes into `Estimate.method`."""

    @property
    def name(self) -> str: ...

    def estimate(self, state: AbilityState, level: float = 0.95) -> Estimate:
        """The estimate with an interval at `level` in (0, 1); raises EngineError on another level."""
        ...


def widened(estimate: Estimate, probability: FloatArray) -> Estimate:
    """The estimate with its bounds moved to what they would be had all M items of unknown outcome failed, or passed.

    `probability` (M,): what the value assumes of each. Bounds stay within [0, 1].
    """
    if not len(probability) or estimate.n_items == 0:
        return estimate
    down = float(probability.sum()) / estimate.n_items
    up = float((1.0 - probability).sum()) / estimate.n_items
    return replace(estimate, lower=max(0.0, estimate.lower - down), upper=min(1.0, estimate.upper + up))


def normal_interval(state: AbilityState, expected_rest: float, variance: float, level: float, method: str) -> Estimate:
    """The common end of every model-based estimate.

    From the expected number of passes among the unexecuted and the variance of the total (both in items):
    value (Σy + expected)/N, standard error √variance / N, a normal interval cut to [Σy/N, (Σy +
    unexecuted)/N].
    """
    if not 0.0 < level < 1.0:
        raise EngineError(f"level {level}", place="level", remedy="Give a number between 0 and 1, such as 0.95")
    n, executed, passed = state.n_population, len(state.items), state.n_passed
    if n == 0:
        nan = float("nan")
        return Estimate(nan, nan, nan, level, executed, n, nan, method)
    value, error = (passed + expected_rest) / n, float(np.sqrt(variance)) / n
    reach = float(normal_quantile(0.5 + level / 2.0)) * error
    least, most = passed / n, (passed + n - executed) / n
    return Estimate(
        value=value,
        lower=max(least, value - reach),
        upper=min(most, value + reach),
        level=level,
        executed=executed,
        n_items=n,
        standard_error=error,
        method=method,
    )
