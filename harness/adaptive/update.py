"""One more outcome: from the MAP of an agent's ability before it to the exact MAP after it.

What `ability` does for many agents at once, for one and in few steps, since a run waits for it. In half logits, with
a = α/2, b = β/2, h = a·θ − b, u = tanh h, and y = 2 passes − n for n trials, no constant is left (p = (1 + u)/2):

    ∇ℓ = Σ a (y − n u) − P(θ − m),        I = P + Σ n (1 − u²) a aᵀ

A step is Newton's, s = I⁻¹∇ℓ, with Chebyshev's correction while it is worth its cost: to second order in t = a·s the
gradient left after s is Σ a n u (1 − u²) t², so I⁻¹ times that is added and the error falls to its third power.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from harness.adaptive.ability import Outcomes, maximise
from harness.adaptive.arrays import FloatArray
from harness.adaptive.bank import Bank

SETTLED = 1e-10  # of 1 + |θ|: the last step, from whose start Σ is; θ̂ itself is then exact to rounding
_CORRECTED = 1e-5  # above this the square of a step is above SETTLED
_MOST_STEPS = 12


@dataclass(frozen=True, eq=False)
class Seen:
    """The outcomes of one agent, (d + 3, k): a, −b, y and n of the module, a column per outcome in order. `single`: no
    item was tried more than once.
    """

    columns: FloatArray
    single: bool

    @classmethod
    def nothing(cls, d: int) -> Seen:
        """No outcome yet."""
        return cls(np.empty((d + 3, 0)), single=True)

    def with_outcome(self, loading: FloatArray, offset: float, passes: int, trials: int) -> Seen:
        """One more column, for an item with `loading` α (d,) and `offset` β."""
        rows, count = self.columns.shape
        columns = np.empty((rows, count + 1))
        columns[:, :count] = self.columns
        columns[:-3, count] = 0.5 * loading
        columns[-3:, count] = -0.5 * offset, 2 * passes - trials, trials
        return Seen(columns, self.single and trials == 1)

    def outcomes(self, bank: Bank) -> Outcomes:
        """The same as `ability` takes them, to the bit."""
        loadings, (offsets, y, n) = self.columns[:-3].T, self.columns[-3:]
        return Outcomes(2.0 * loadings, -2.0 * offsets, (y + n) / 2.0, n, bank.prior_mean, bank.prior_precision)


def updated(theta: FloatArray, covariance: FloatArray, seen: Seen, bank: Bank) -> tuple[FloatArray, FloatArray]:
    """θ̂ (d,) and Σ = I⁻¹ (d, d) of all that was `seen`, from those before the last outcome."""
    start = predicted(theta, covariance, seen)
    return settled(start, seen, bank) or _from_afar(start, seen.outcomes(bank))


def predicted(theta: FloatArray, covariance: FloatArray, seen: Seen) -> FloatArray:
    """The first step from the MAP before the last outcome, (d,): Newton's, as the gradient of all the others is 0 there
    and the covariance follows by Sherman–Morrison, O(d²).
    """
    *loading, offset, y, n = seen.columns[:, -1].tolist()
    a = seen.columns[:-3, -1]
    u = math.tanh(sum(each * at for each, at in zip(loading, theta.tolist(), strict=True)) + offset)
    column = covariance.dot(a)
    pull = (y - n * u) / (1.0 + n * (1.0 - u * u) * float(a.dot(column)))
    return np.asarray(theta + pull * column)


def settled(start: FloatArray, seen: Seen, bank: Bank) -> tuple[FloatArray, FloatArray] | None:
    """θ̂ (d,) and Σ = I⁻¹ (d, d), from a `start` near it; None if the steps do not shrink, as from afar they may not."""
    d = len(start)
    logit, y, n = seen.columns[: d + 1], seen.columns[d + 1], seen.columns[d + 2]
    a, precision, last = logit[:d], bank.prior_precision, 1.0
    sought = precision.dot(bank.prior_mean)
    point, work = np.ones(d + 1), np.empty((d + 1, len(n)))
    theta = point[:d]
    theta[:] = start
    for _ in range(_MOST_STEPS):
        u = np.tanh(point.dot(logit))
        passed = u if seen.single else n * u
        weight = n - passed * u
        np.multiply(a, weight, out=work[:d])
        np.subtract(y, passed, out=work[d])
        sums = work.dot(a.T)
        covariance = np.linalg.inv(sums[:d] + precision)
        step = covariance.dot(sums[d] + sought - precision.dot(theta))
        size = max(map(abs, step.tolist()))
        if size <= SETTLED * (1.0 + max(map(abs, theta.tolist()))):
            return theta + step, (covariance + covariance.T) * 0.5
        if not size <= last:
            return None
        if size > _CORRECTED:
            turn = step.dot(a)
            step = step + covariance.dot(a.dot(weight * u * turn * turn))
        theta += step
        last = 0.5 * size
    return None


def _from_afar(start: FloatArray, outcomes: Outcomes) -> tuple[FloatArray, FloatArray]:
    """θ̂ and Σ from any start, by steps that are halved where they overshoot."""
    theta = maximise(start, outcomes)
    inverse = np.linalg.inv(outcomes.information(theta))
    return theta, (inverse + inverse.T) * 0.5
