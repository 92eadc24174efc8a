"""The MAP of one agent's ability given its outcomes, items held fixed.

Everything takes leading axes `...`: nothing for one agent, (A,) for A agents at once. With prior θ ~ N(m, P⁻¹), y
passes in n trials on items with loadings A (k, d) and difficulties b (k,):

    ℓ(θ) = Σ [ y z − n log(1 + exp z) ] − ½ (θ − m)ᵀ P (θ − m),       z = Aθ − b
    ∇ℓ   = Aᵀ(y − np) − P(θ − m),       I(θ) = P + Aᵀ diag(np(1−p)) A,       p = σ(z)

ℓ is strictly concave, so there is one maximum, finite for every outcome vector (CASES S01, S04); Newton's
method with step-halving reaches it from anywhere. I(θ̂)⁻¹ is the Laplace covariance. With d = 1 and α > 0
turning any 0 into 1 never lowers θ̂ (S02); with d > 1 a coordinate may fall, as in every compensatory model
(Hooker, Finkelman & Schwartzman 2009).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.adaptive.arrays import BoolArray, FloatArray, sigmoid, softplus

STEP_TOLERANCE = 1e-12
_MAX_STEPS = 100
_MAX_HALVINGS = 30


@dataclass(frozen=True, eq=False)
class Outcomes:
    """What was observed: `loadings` (..., k, d), `offsets`, `passes` and `trials` (..., k), and the prior's `mean` (d,)
    and `precision` (d, d).

    A slot with no trials weighs nothing: agents with fewer outcomes than others are padded with such.
    """

    loadings: FloatArray
    offsets: FloatArray
    passes: FloatArray
    trials: FloatArray
    mean: FloatArray
    precision: FloatArray

    def log_posterior(self, theta: FloatArray) -> FloatArray:
        """ℓ(θ), (...,), in nats, constants left out, finite (CASES S10)."""
        z = self.logits(theta)
        off = theta - self.mean
        prior = 0.5 * ((off @ self.precision) * off).sum(axis=-1)
        return np.asarray((self.passes * z - self.trials * softplus(z)).sum(axis=-1) - prior)

    def information(self, theta: FloatArray) -> FloatArray:
        """I(θ) = P + Aᵀ diag(np(1−p)) A, (..., d, d)."""
        return self._information(sigmoid(self.logits(theta)))

    def gradient(self, theta: FloatArray) -> FloatArray:
        """∇ℓ(θ), (..., d)."""
        return self._gradient(theta, sigmoid(self.logits(theta)))

    def newton_step(self, theta: FloatArray) -> FloatArray:
        """I(θ)⁻¹ ∇ℓ(θ), (..., d), from one evaluation of the probabilities."""
        p = sigmoid(self.logits(theta))
        solved = np.linalg.solve(self._information(p), self._gradient(theta, p)[..., None])
        return np.asarray(solved[..., 0], dtype=np.float64)

    def _information(self, p: FloatArray) -> FloatArray:
        weighted = (self.trials * p * (1.0 - p))[..., None] * self.loadings
        return np.asarray(self.precision + np.swapaxes(self.loadings, -1, -2) @ weighted)

    def _gradient(self, theta: FloatArray, p: FloatArray) -> FloatArray:
        residual = self.passes - self.trials * p
        pulled = (residual[..., None, :] @ self.loadings)[..., 0, :]
        return np.asarray(pulled - (theta - self.mean) @ self.precision)

    def logits(self, theta: FloatArray) -> FloatArray:
        """Aθ − b, (..., k)."""
        return np.asarray((self.loadings @ theta[..., None])[..., 0] - self.offsets)


def maximise(start: FloatArray, seen: Outcomes, tolerance: float = STEP_TOLERANCE) -> FloatArray:
    """θ̂ (..., d), to a relative step of `tolerance`, from any `start` (..., d).

    A full Newton step is taken while it shrinks; only a step that grew is checked against ℓ and halved, so
    the usual update costs two or three evaluations of the gradient and none of ℓ.
    """
    theta, last = start, np.full(start.shape[:-1], np.inf)
    for _ in range(_MAX_STEPS):
        step = seen.newton_step(theta)
        size = np.asarray(np.abs(step).max(axis=-1), dtype=np.float64)
        suspect = (size > 0.5 * last) | (size > 1.0)
        if suspect.any():
            step = _halved(theta, step, suspect, seen)
        theta = theta + step
        if (size <= tolerance * (1.0 + np.abs(theta).max(axis=-1))).all():
            break
        last = size
    return np.asarray(theta)


def _halved(theta: FloatArray, step: FloatArray, suspect: BoolArray, seen: Outcomes) -> FloatArray:
    """The `suspect` steps halved until they do not lower ℓ; at rounding level that may be after all halvings, a step
    of nearly 0.
    """
    here = seen.log_posterior(theta)
    for _ in range(_MAX_HALVINGS):
        lower = suspect & (seen.log_posterior(theta + step) < here)
        if not lower.any():
            break
        step = np.where(lower[..., None], step * 0.5, step)
    return step
