"""p-IRT: observed passes, plus the predicted probability of every item that was not executed.

    ŝ = ( Σ_{i ∈ S} y_i + Σ_{i ∉ S} p_i(θ̂) ) / N

Source: She & Lin 2026 (arXiv:2609.21267), equation 13, after Polo et al. 2024 (tinyBenchmarks). They give no
interval. Ours is for the realised rate: the unexecuted outcomes vary by Bernoulli noise about their
probabilities, and the probabilities by the uncertainty about θ,

    Var = ( gᵀ Σ g + Σ_{i ∉ S} p_i (1 − p_i) ) / N²,     g = Σ_{i ∉ S} p_i (1 − p_i) α_i

Item parameters count as known; with a thin history the interval is then too narrow (see
`posterior_predictive`).
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.adaptive.estimators.protocol import Estimate, normal_interval
from harness.adaptive.state import AbilityState


@dataclass(frozen=True)
class PIrt:
    """See the module."""

    name: str = "p_irt"

    def estimate(self, state: AbilityState, level: float = 0.95) -> Estimate:
        """The estimate; O(N d)."""
        rest = state.unexecuted
        p = state.bank.probability(state.theta)[rest]
        weight = p * (1.0 - p)
        lever = state.bank.alpha[rest].T @ weight
        variance = float(lever @ state.covariance @ lever + weight.sum())
        return normal_interval(state, float(p.sum()), variance, level, self.name)
