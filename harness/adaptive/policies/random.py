"""Uniform random choice without replacement, as a fixed order that belongs to the seed.

Each item has a seeded number; the largest among the candidates is next. Any subset of items is equally likely
to be executed after k choices, whatever was observed, and what comes next never depends on how many numbers
were drawn before.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.adaptive.arrays import FloatArray
from harness.adaptive.keys import uniforms
from harness.adaptive.policies.protocol import View


@dataclass(frozen=True)
class Random:
    """See the module; values are in (0, 1) and say nothing of the item."""

    name: str = "random"

    def values(self, view: View) -> FloatArray:
        """The seeded number of each candidate, (M,)."""
        return uniforms(view.keys[view.candidates])
