"""What an estimator is: evidence in, a value and its standard error out, both from one and the same formula
(CASES S11); `estimate_of` makes an `Estimate` with an interval of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from harness.adaptive.arrays import FloatArray, normal_quantile
from harness.adaptive.errors import EngineError
from harness.adaptive.evidence import Evidence


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


@dataclass(frozen=True, eq=False)
class Moments:
    """`value` and `standard_error` of the estimated pass rate of the whole population, each (...,), fractions of 1."""

    value: FloatArray
    standard_error: FloatArray


class Estimator(Protocol):
    """`name` goes into `Estimate.method`; `moments` must be finite wherever the population is not empty."""

    @property
    def name(self) -> str: ...

    def moments(self, evidence: Evidence) -> Moments:
        """Value and standard error, one per agent of the evidence."""
        ...


def of_total(evidence: Evidence, expected_rest: FloatArray, variance: FloatArray) -> Moments:
    """The common end of every model-based estimate: from the expected number of passes among the unexecuted and the
    variance of the total (both in items), value (Σy + expected)/N and standard error √variance / N.
    """
    n = np.maximum(evidence.n_items, 1)
    return Moments(
        value=np.asarray((evidence.score + expected_rest) / n),
        standard_error=np.asarray(np.sqrt(np.maximum(variance, 0.0)) / n),
    )


def allowed(evidence: Evidence) -> tuple[FloatArray, FloatArray]:
    """The least and the largest rate that the outcomes so far allow: the rest all failed, all passed."""
    n = np.maximum(evidence.n_items, 1)
    return np.asarray(evidence.score / n), np.asarray((evidence.score + evidence.rest.sum(axis=-1)) / n)


def estimate_of(estimator: Estimator, evidence: Evidence, level: float = 0.95, widening: float = 1.0) -> Estimate:
    """The estimate for one agent, with a normal interval cut to what the outcomes so far allow.

    `widening` multiplies the standard error (see `backtest`: model-based errors are too small where the model is
    wrong).

    Raises
    ------
    EngineError
        If `level` is not in (0, 1).
    """
    require_level(level)
    n, executed = int(evidence.n_items), int(evidence.executed)
    if n == 0:
        nan = float("nan")
        return Estimate(nan, nan, nan, level, executed, n, nan, estimator.name)
    found = estimator.moments(evidence)
    least, most = allowed(evidence)
    value, error = min(max(float(found.value), float(least)), float(most)), float(found.standard_error) * widening
    reach = float(normal_quantile(0.5 + level / 2.0)) * error
    return Estimate(
        value=value,
        lower=max(float(least), value - reach),
        upper=min(float(most), value + reach),
        level=level,
        executed=executed,
        n_items=n,
        standard_error=error,
        method=estimator.name,
    )


def require_level(level: float) -> None:
    """Raises EngineError unless `level` is in (0, 1)."""
    if not 0.0 < level < 1.0:
        raise EngineError(f"level {level}", place="level", remedy="Give a number between 0 and 1, such as 0.95")


def widened(estimate: Estimate, probability: FloatArray) -> Estimate:
    """The estimate with its bounds moved to what they would be had all M items of unknown outcome failed, or passed.

    `probability` (M,): what the value assumes of each. Bounds stay within [0, 1].
    """
    if not len(probability) or estimate.n_items == 0:
        return estimate
    down = float(probability.sum()) / estimate.n_items
    up = float((1.0 - probability).sum()) / estimate.n_items
    return replace(estimate, lower=max(0.0, estimate.lower - down), upper=min(1.0, estimate.upper + up))
