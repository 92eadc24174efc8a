"""Rasch testing: the item whose outcome is least certain, the Fisher information of one ability with equal loadings.

    argmax_i  p_i (1 − p_i),        p_i = σ(θ̂ − β_i)

Source: Truong et al. 2025; She & Lin 2026 (arXiv:2609.21267), equations 16 and 17. Theirs needs a Rasch bank
(`CalibrationSettings(dims="rasch")`), on which p(1−p) is the information. On another bank the same formula is
uncertainty sampling: it ignores how much an item says about θ, and is no method of that paper.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.adaptive.arrays import FloatArray
from harness.adaptive.policies.protocol import View


@dataclass(frozen=True)
class RaschFisher:
    """See the module; values in [0, ¼]."""

    name: str = "rasch_fisher"
    random_share: float = 0.0

    def values(self, view: View) -> FloatArray:
        """p(1−p) of each item, (..., N); O(N)."""
        return np.asarray(view.probability * (1.0 - view.probability))
