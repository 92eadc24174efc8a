"""Pass-rate targeting: the item whose outcome takes most variance off the pass rate of the whole suite.

With w = p(1−p) and g = Σ_j w_j α_j over the items whose outcome is neither known nor in flight, the number of
passes among them has variance gᵀΣg + Σ w and covariance w_i (1 + α_iᵀΣg) with outcome i, whose own variance
is w_i (1 + w_i α_iᵀΣα_i). Hence

    argmax_i  w_i (1 + α_iᵀ Σ g)² / (1 + w_i α_iᵀ Σ α_i)

to first order in θ. Unlike D-optimality it ignores what no unexecuted item depends on, and it values an item
that is uncertain in itself. Source: our own derivation, above.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.adaptive.arrays import FloatArray
from harness.adaptive.policies.protocol import View


@dataclass(frozen=True)
class PassRate:
    """See the module; values are ≥ 0, in (items)² of variance removed."""

    name: str = "pass_rate"
    random_share: float = 0.0

    def values(self, view: View) -> FloatArray:
        """The variance taken off the number of passes by each item, (..., N); O(N d²)."""
        bank, weight = view.bank, view.weight
        lever = (weight * view.rest) @ bank.axes.T
        pull = (view.covariance @ lever[..., None])[..., 0] @ bank.axes
        return np.asarray(weight * (1.0 + pull) ** 2 / (1.0 + weight * bank.logit_variance(view.covariance)))
