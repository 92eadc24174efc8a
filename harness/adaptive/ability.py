"""The MAP of one agent's ability given its outcomes, items held fixed.

With prior θ ~ N(m, P⁻¹), outcomes y ∈ {0, 1} on items with loadings A (k, d) and difficulties b (k,):

    ℓ(θ) = Σ [ y z − log(1 + exp z) ] − ½ (θ − m)ᵀ P (θ − m),       z = Aθ − b
    ∇ℓ   = Aᵀ(y − p) − P(θ − m),       I(θ) = P + Aᵀ diag(p(1−p)) A,       p = σ(z)

ℓ is strictly concave, so there is one maximum, finite for every outcome vector (CASES S01, S04); Newton's
method with step-halving reaches it from anywhere. I(θ̂)⁻¹ is the Laplace covariance. With d = 1 and α > 0
turning any 0 into 1 never lowers θ̂ (S02); with d > 1 a coordinate may fall, as in every compensatory model
(Hooker, Finkelman & Schwartzman 2009).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from harness.adaptive.arrays import FloatArray, sigmoid, softplus

STEP_TOLERANCE = 1e-12
_MAX_STEPS = 100
_MAX_HALVINGS = 30


def log_posterior(
    theta: FloatArray, loadings: FloatArray, offsets: FloatArray, y: FloatArray, prior: tuple[FloatArray, FloatArray]
) -> float:
    """ℓ(θ) for `loadings` (k, d), `offsets` (k,), `y` (k,) and `prior` (m, P); in nats, constants left out,
    finite.
    """
    mean, precision = prior
    z = loadings @ theta - offsets
    off = theta - mean
    return float(y @ z - softplus(z).sum() - 0.5 * off @ precision @ off)


def information_at(theta: FloatArray, loadings: FloatArray, offsets: FloatArray, precision: FloatArray) -> FloatArray:
    """I(θ) = P + Aᵀ diag(p(1−p)) A, (d, d)."""
    p = sigmoid(loadings @ theta - offsets)
    return np.asarray(precision + loadings.T @ ((p * (1.0 - p))[:, None] * loadings))


def maximise(
    start: FloatArray, loadings: FloatArray, offsets: FloatArray, y: FloatArray, prior: tuple[FloatArray, FloatArray]
) -> FloatArray:
    """θ̂ (d,), to a relative step of 1e-12, from any `start`.

    A full Newton step is taken while it shrinks; only a step that grew is checked against ℓ and halved, so
    the usual update costs two or three evaluations of the gradient and none of ℓ.
    """
    mean, precision = prior
    theta, last = start, np.inf
    for _ in range(_MAX_STEPS):
        p = sigmoid(loadings @ theta - offsets)
        gradient = loadings.T @ (y - p) - precision @ (theta - mean)
        information = precision + loadings.T @ ((p * (1.0 - p))[:, None] * loadings)
        step = np.asarray(np.linalg.solve(information, gradient), dtype=np.float64)
        size = float(np.max(np.abs(step)))
        if size > 0.5 * last or size > 1.0:
            step = _halved(theta, step, lambda at: log_posterior(at, loadings, offsets, y, prior))
        theta = theta + step
        if size <= STEP_TOLERANCE * (1.0 + float(np.max(np.abs(theta)))):
            break
        last = size
    return theta


def _halved(theta: FloatArray, step: FloatArray, value: Callable[[FloatArray], float]) -> FloatArray:
    """`step` halved until it does not lower `value`; at rounding level that may be after all halvings, a step
    of nearly 0.
    """
    here = value(theta)
    for _ in range(_MAX_HALVINGS):
        if value(theta + step) >= here:
            break
        step = step * 0.5
    return step
