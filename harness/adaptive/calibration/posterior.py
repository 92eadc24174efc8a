"""What variational calibration holds: Gaussian posteriors of runs and items, and changes of their axes.

Replacing θ by θ' with θ = Lθ' + c leaves every logit as it was if α' = Lᵀα and β' = β − α·c: an affine change of axes
is free. It acts on a posterior exactly, because linear maps of Gaussians are Gaussian.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.adaptive.arrays import FloatArray, sigmoid
from harness.adaptive.calibration.item_prior import ItemPrior


@dataclass(frozen=True, eq=False)
class Posterior:
    """q(θ_r) = N(`theta`, `theta_covariance`), q(α_i, β_i) = N(`item`, `item_covariance`), all independent.

    `theta` (R, d), `theta_covariance` (R, d, d), `item` (N, d+1) with β last, `item_covariance` (N, d+1, d+1).
    `prior` is the learnt one of an item.
    """

    theta: FloatArray
    theta_covariance: FloatArray
    item: FloatArray
    item_covariance: FloatArray
    prior: ItemPrior

    @property
    def d(self) -> int:
        """Number of abilities."""
        return int(self.theta.shape[1])

    def change_axes(self, basis: FloatArray, shift: FloatArray) -> Posterior:
        """The same posterior in θ' where θ = `basis` (d, d) θ' + `shift` (d,); raises LinAlgError if singular."""
        inverse = np.linalg.inv(basis)
        d = self.d
        turn = np.zeros((d + 1, d + 1))
        turn[:d, :d], turn[d, :d], turn[d, d] = basis.T, -shift, 1.0
        return Posterior(
            theta=(self.theta - shift) @ inverse.T,
            theta_covariance=inverse @ self.theta_covariance @ inverse.T,
            item=self.item @ turn.T,
            item_covariance=turn @ self.item_covariance @ turn.T,
            prior=self.prior.turned(turn),
        )


def pass_probability(mean: FloatArray, variance: FloatArray) -> FloatArray:
    """E σ(z) for z ~ N(mean, variance), any shape: σ(mean / √(1 + π variance / 8)).

    Source: MacKay 1992, "The evidence framework applied to classification networks", equation 10.
    """
    return sigmoid(mean / np.sqrt(1.0 + np.pi / 8.0 * np.maximum(variance, 0.0)))


def moment_features(mean: FloatArray, covariance: FloatArray, twice: bool) -> FloatArray:
    """The upper triangle of E[xxᵀ] for x ~ N(mean (n, D), covariance (n, D, D)), (n, D(D+1)/2).

    With `twice` the part off the diagonal is doubled, so that E[xxᵀ]·E[φφᵀ] (the sum over all D² entries) is the
    product of one vector that is doubled and one that is not.
    """
    rows, columns = np.triu_indices(mean.shape[1])
    features = covariance[:, rows, columns] + mean[:, rows] * mean[:, columns]
    if twice:
        features[:, rows != columns] *= 2.0
    return np.asarray(features)


def symmetric(features: FloatArray, size: int) -> FloatArray:
    """(n, size, size) symmetric matrices from their upper triangles (n, size(size+1)/2)."""
    rows, columns = np.triu_indices(size)
    matrices = np.zeros((len(features), size, size))
    matrices[:, rows, columns] = features
    matrices[:, columns, rows] = features
    return matrices


def padded_covariance(covariance: FloatArray) -> FloatArray:
    """The covariance (n, d+1, d+1) of x = (θ, −1) from that of θ (n, d, d): zero in the last row and column."""
    return np.pad(covariance, ((0, 0), (0, 1), (0, 1)))


def with_constant(theta: FloatArray) -> FloatArray:
    """x̄ = (θ, −1), (n, d+1)."""
    return np.column_stack([theta, -np.ones(len(theta))])
