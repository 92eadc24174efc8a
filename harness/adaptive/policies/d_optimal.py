"""D-optimality: the item that shrinks the volume of the uncertainty about θ most.

    argmax_i  p_i (1 − p_i) α_iᵀ Σ α_i

at θ̂, with Σ the posterior covariance, items in flight counted in both factors (`View`). By the matrix determinant
lemma log(1 + value) is exactly the rise of log det information. With d = 1 and α = 1 it is the Fisher information of
Rasch testing. Source: She & Lin 2026 (arXiv:2609.21267), section 3.4; the default policy, as it is the field's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.adaptive.arrays import FloatArray
from harness.adaptive.policies.protocol import View


@dataclass(frozen=True)
class DOptimal:
    """See the module; values are ≥ 0."""

    name: str = "d_optimal"
    random_share: float = 0.0

    def values(self, view: View) -> FloatArray:
        """p(1−p) αᵀΣα of each item, (..., N); O(N d²)."""
        return np.asarray(view.weight * view.bank.logit_variance(view.covariance))
