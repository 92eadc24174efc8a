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

import numpy as np

from harness.adaptive.estimators.protocol import Moments, of_total
from harness.adaptive.evidence import Evidence


@dataclass(frozen=True)
class PIrt:
    """See the module."""

    name: str = "p_irt"

    def moments(self, evidence: Evidence) -> Moments:
        """Value and standard error; O(N d)."""
        p = evidence.bank.probability(evidence.theta)
        weight = p * (1.0 - p) * evidence.rest
        lever = weight @ evidence.bank.alpha
        spread = ((lever[..., None, :] @ evidence.covariance)[..., 0, :] * lever).sum(axis=-1)
        return of_total(evidence, np.asarray((p * evidence.rest).sum(axis=-1)), spread + weight.sum(axis=-1))
