"""Posterior predictive: as p-IRT, with each probability averaged over what is not known of it.

A logit z ~ N(μ, v) passes with probability E σ(z) ≈ σ(μ / √(1 + π v / 8)) (MacKay 1992, "The evidence
framework applied to classification networks", equation 10). Here μ = α·θ̂ − β and

    v = αᵀ Σ α + xᵀ C x,     x = (θ̂, −1)

with C the bank's covariance of (α, β) of the item, where it has one (0 otherwise). So an item of a thin
history is predicted nearer to ½, as its data warrant, and weighs more in the Bernoulli part of the interval:

    ŝ = ( Σ_{i ∈ S} y_i + Σ_{i ∉ S} q_i ) / N,     Var = ( gᵀ Σ g + Σ_{i ∉ S} q_i (1 − q_i) ) / N²,     g = Σ
    q (1 − q) κ α

with q the averaged probability and κ = 1/√(1 + π v / 8) its attenuation. Item errors count as independent of
each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.adaptive.arrays import FloatArray, sigmoid
from harness.adaptive.estimators.protocol import Moments, of_total
from harness.adaptive.evidence import Evidence


@dataclass(frozen=True)
class PosteriorPredictive:
    """See the module."""

    name: str = "posterior_predictive"

    def moments(self, evidence: Evidence) -> Moments:
        """Value and standard error; O(N d²)."""
        bank = evidence.bank
        attenuation, q = averaged(evidence)
        weight = q * (1.0 - q) * evidence.rest
        lever = (weight * attenuation) @ bank.alpha
        spread = ((lever[..., None, :] @ evidence.covariance)[..., 0, :] * lever).sum(axis=-1)
        return of_total(evidence, np.asarray((q * evidence.rest).sum(axis=-1)), spread + weight.sum(axis=-1))


def averaged(evidence: Evidence) -> tuple[FloatArray, FloatArray]:
    """κ and q of every item, both (..., N)."""
    bank = evidence.bank
    variance = bank.logit_variance(evidence.covariance)
    if bank.item_covariance is not None:
        x = np.concatenate([evidence.theta, -np.ones((*evidence.theta.shape[:-1], 1))], axis=-1)
        variance = variance + np.einsum("...i,nij,...j->...n", x, bank.item_covariance, x, optimize=True)
    attenuation = 1.0 / np.sqrt(1.0 + np.pi * variance / 8.0)
    return attenuation, sigmoid((evidence.theta @ bank.axes - bank.beta) * attenuation)
