"""What each drawn step says of the whole population, and the mean of what they say: the core of the design-based
estimators.

At step m one of the P_m open items was chosen with a known probability q. With e the numbers to be totalled (outcomes,
or residuals of a model fixed beforehand),

    T_m = Σ_{chosen before m} e + e_m / q_m,        E[T_m | everything before m] = Σ_all e

whatever the policy did before and will do later. So any weighted mean with weights c_m fixed by the pools is unbiased,
its terms are uncorrelated (martingale differences), and its variance is Σ c_m² Var T_m. The weights are
c_m ∝ 1/(P_m (P_m − 1)): with every step of a sequence of M from N items in it, Σ c_m T_m / N is exactly LURE (Kossen et
al. 2021, "Active Testing", equation 5), and the sample mean where every draw is uniform.

The order of choice is that of the pools, which shrink with each; an outcome whose choice was not recorded (q NaN), or
had no alternative by the policy (q = 1), keeps its place and adds its own e, but no T. Outcomes told late leave no
trace: only steps with an outcome are averaged. An item that left the population after a step is taken out of its P.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.adaptive.arrays import BoolArray, FloatArray, IntArray
from harness.adaptive.estimators.protocol import Moments, allowed
from harness.adaptive.evidence import Evidence


@dataclass(frozen=True, eq=False)
class Steps:
    """The outcomes in order of choice, each (..., k): `order` is their position in the evidence, `seen` False in
    padding, `pool` P_m as a number of items of the population, `before` how many outcomes precede.
    """

    order: IntArray
    seen: BoolArray
    pool: FloatArray
    before: FloatArray

    @classmethod
    def of(cls, evidence: Evidence) -> Steps:
        """The steps of this evidence."""
        n = np.asarray(evidence.n_items, dtype=np.float64)[..., None]
        place = np.arange(evidence.items.shape[-1], dtype=np.float64)
        known = np.isfinite(evidence.probability) & (evidence.pool > 0)
        seen = evidence.trials > 0
        key = np.where(seen, np.where(known, evidence.pool, n - place), -np.inf)
        order = np.argsort(-key, axis=-1, kind="stable")
        in_order = np.take_along_axis(seen, order, axis=-1)
        before: IntArray = np.cumsum(in_order, axis=-1) - in_order
        pool = np.where(known, evidence.pool, n)
        pool = np.clip(np.take_along_axis(pool, order, axis=-1), 1.0, np.maximum(n - before, 1.0))
        return cls(order, in_order, np.asarray(pool), np.asarray(before, dtype=np.float64))

    def sorted(self, values: FloatArray) -> FloatArray:
        """`values` (..., k) of the evidence in order of choice, 0 in padding."""
        return np.where(self.seen, np.take_along_axis(values, self.order, axis=-1), 0.0)


@dataclass(frozen=True, eq=False)
class Total:
    """`value` and `variance` of an estimated Σ e over the population, (...,), in items; `usable` False where no step
    tells, and both are then 0.
    """

    value: FloatArray
    variance: FloatArray
    usable: BoolArray


def total_of(steps: Steps, e: FloatArray, inverse: FloatArray, tells: BoolArray, expected: FloatArray) -> Total:
    """Σ c_m T_m over the steps that tell; `e`, `inverse` = 1/q, `tells` and `expected` are (..., k) in order of choice.

    The variance of T is estimated from how the T scatter, but is never taken to be less than `expected`, the variance
    of each T_m that the model predicts: a few equal T say little, and rare large 1/q may not have come up yet.
    """
    before = np.cumsum(e, axis=-1) - e
    told = before + e * inverse
    last = tells & (steps.pool <= 1.0)
    apart = np.divide(1.0, steps.pool * (steps.pool - 1.0), out=np.zeros(steps.pool.shape), where=steps.pool > 1.0)
    weight = np.where(last.any(axis=-1, keepdims=True), last, apart * tells)
    norm = weight.sum(axis=-1, keepdims=True)
    usable = norm[..., 0] > 0
    weight = weight / np.where(norm > 0, norm, 1.0)
    value = (weight * told).sum(axis=-1)
    squares = weight**2
    scatter = (squares * (told - value[..., None]) ** 2).sum(axis=-1)
    freedom = 1.0 - squares.sum(axis=-1)
    empirical = np.divide(scatter, freedom, out=np.zeros(scatter.shape), where=freedom > 1e-9)
    floor = (squares * np.where(steps.pool > 1.0, expected, 0.0)).sum(axis=-1)
    return Total(np.asarray(value), np.asarray(np.maximum(empirical, floor)), np.asarray(usable))


def corrected(evidence: Evidence, predicted: FloatArray, residual: Total, fallback: Moments) -> Moments:
    """(Σ predicted + the estimated residual total)/N and its error; `fallback` where no step tells. Values are cut to
    what the outcomes allow; with nothing left to execute they are exact and the error 0.
    """
    n = np.maximum(evidence.n_items, 1)
    value = ((predicted * evidence.counted).sum(axis=-1) + residual.value) / n
    value = np.where(residual.usable, value, fallback.value)
    error = np.where(residual.usable, np.sqrt(np.maximum(residual.variance, 0.0)) / n, fallback.standard_error)
    least, most = allowed(evidence)
    return Moments(np.clip(value, least, most), np.where(evidence.rest.any(axis=-1), error, 0.0))
