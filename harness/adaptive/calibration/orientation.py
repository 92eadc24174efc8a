"""Fixing what the likelihood leaves open, so that banks compare.

The MAP objective of `likelihood` ties axis 1 to the general ability (α₁ > 0, log α₁ centred on 0), but it is
unchanged by any rotation or reflection of the specific axes 2…d, whose priors are spherical on both sides.
The canonical choice:

1. axes 2…d are the principal axes of the specific loadings, i.e. α_s ← α_s V, θ_s ← θ_s V with α_s = U S Vᵀ,
   in falling order of S (the sum of squared loadings on the axis);
2. each of these axes points so that its ability correlates positively with the raw score of the runs (where
   that correlation is 0 or undefined, so that its largest loading is positive).

Both leave every probability and the value of the objective as they were. The variational posterior turns by
`canonical_posterior`, which has to find axis 1 as well.
"""

from __future__ import annotations

import numpy as np

from harness.adaptive.arrays import FloatArray
from harness.adaptive.calibration.likelihood import Parameters
from harness.adaptive.calibration.posterior import Posterior


def canonical_axes(parameters: Parameters, raw_score: FloatArray) -> Parameters:
    """`parameters` in the canonical rotation; `raw_score` (R,) finite, the pass rate of each run."""
    d = parameters.alpha.shape[1]
    if d == 1:
        return parameters
    _, _, axes = np.linalg.svd(parameters.alpha[:, 1:], full_matrices=False)
    if axes.shape[0] < d - 1:
        # Fewer items than specific axes: complete the basis, or the abilities would lose coordinates.
        axes = np.linalg.svd(parameters.alpha[:, 1:], full_matrices=True)[2]
    alpha_s = parameters.alpha[:, 1:] @ axes.T
    theta_s = parameters.theta[:, 1:] @ axes.T
    signs = np.array([axis_sign(theta_s[:, j], alpha_s[:, j], raw_score) for j in range(d - 1)])
    return Parameters(
        theta=np.column_stack([parameters.theta[:, :1], theta_s * signs]),
        alpha=np.column_stack([parameters.alpha[:, :1], alpha_s * signs]),
        beta=parameters.beta,
    )


def canonical_posterior(posterior: Posterior, raw_score: FloatArray) -> Posterior:
    """`posterior` rotated so that banks compare; no probability changes. `raw_score` (R,): the pass rate of each run.

    Axis 1 is the direction of the mean loading, so loadings on the others average 0; axes 2…d are the principal axes
    of Σ_i E[α αᵀ] across it, in falling order. Every axis points to the better raw score (`axis_sign`).
    """
    d = posterior.d
    rotation = np.eye(d)
    if d > 1 and len(posterior.item):
        loading = posterior.item[:, :d]
        direction = loading.mean(axis=0)
        length = float(np.linalg.norm(direction))
        first = direction / length if length > 0 else rotation[0]
        across = np.linalg.svd(first[None, :])[2][1:]  # an orthonormal basis of what is across `first`
        second_moment = loading.T @ loading + posterior.item_covariance[:, :d, :d].sum(axis=0)
        strength, axes = np.linalg.eigh(across @ second_moment @ across.T)
        rotation = np.vstack([first, axes[:, np.argsort(-strength, kind="stable")].T @ across])
    turned = posterior.change_axes(rotation.T, np.zeros(d))
    signs = [axis_sign(turned.theta[:, j], turned.item[:, j], raw_score) for j in range(d)]
    return turned.change_axes(np.diag(signs), np.zeros(d))


def orientation(theta: FloatArray, raw_score: FloatArray) -> float:
    """Correlation of the general ability θ₁ with the raw score over runs; NaN for fewer than 2 runs or no
    spread.
    """
    if len(raw_score) < 2 or np.ptp(theta[:, 0]) == 0 or np.ptp(raw_score) == 0:
        return float("nan")
    return float(np.corrcoef(theta[:, 0], raw_score)[0, 1])


def axis_sign(ability: FloatArray, loading: FloatArray, raw_score: FloatArray) -> float:
    """1 or −1, so that `ability` (R,) times it correlates positively with `raw_score` (R,); where that is 0 or
    undefined, so that the largest of the `loading` (N,) becomes positive.
    """
    lean = float((ability - ability.mean()) @ (raw_score - raw_score.mean())) if len(raw_score) else 0.0
    if lean == 0.0 and len(loading):
        lean = float(loading[np.argmax(np.abs(loading))])
    return -1.0 if lean < 0 else 1.0
