"""Uniform random choice without replacement, as a fixed order that belongs to the seed.

Each item has a seeded number; the largest in the pool is next. Any subset of items is equally likely to be executed
after k choices, whatever was observed, and what comes next never depends on how many numbers were drawn before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.adaptive.arrays import FloatArray
from harness.adaptive.policies.protocol import View


@dataclass(frozen=True)
class Random:
    """See the module. Every step is a draw (`random_share` 1), so the values are never looked at."""

    name: str = "random"
    random_share: float = 1.0

    def values(self, view: View) -> FloatArray:
        """Zeros, (..., N)."""
        return np.zeros(view.pool.shape)
