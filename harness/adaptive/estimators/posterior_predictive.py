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

from harness.adaptive.arrays import sigmoid
from harness.adaptive.estimators.protocol import Estimate, normal_interval
from harness.adaptive.state import AbilityState


@dataclass(frozen=True)
class PosteriorPredictive:
    """See the module."""

    name: str = "posterior_predictive"

    def estimate(self, state: AbilityState, level: float = 0.95) -> Estimate:
        """The estimate; O(N d²)."""
        rest = state.unexecuted
        alpha, beta = state.bank.alpha[rest], state.bank.beta[rest]
        variance = ((alpha @ state.covariance) * alpha).sum(axis=1)
        if state.bank.item_covariance is not None:
            x = np.append(state.theta, -1.0)
            variance = variance + state.bank.item_covariance[rest] @ x @ x
        attenuation = 1.0 / np.sqrt(1.0 + np.pi * variance / 8.0)
        q = sigmoid((alpha @ state.theta - beta) * attenuation)
        weight = q * (1.0 - q)
        lever = alpha.T @ (weight * attenuation)
        total = float(lever @ state.covariance @ lever + weight.sum())
        return normal_interval(state, float(q.sum()), total, level, self.name)
