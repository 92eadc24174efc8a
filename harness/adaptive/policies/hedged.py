"""Hedging: another policy's choice, but with a declared probability a draw from the whole pool.

Where the model is wrong, an adaptive choice looks for the items on which it is wrong, and the estimate is biased in a
way the model cannot see. A share ε of steps drawn with equal probability gives every item of the pool a known chance
of at least ε/M at every step, so the residuals on the drawn items say what the model misses (`estimators.hybrid`,
`estimators.lure`). ε = 0 is the policy itself, ε = 1 is random sampling with a model-assisted estimate.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.adaptive.arrays import FloatArray
from harness.adaptive.errors import EngineError
from harness.adaptive.policies.protocol import Policy, View


@dataclass(frozen=True)
class Hedged:
    """`base` with `random_share` ε in [0, 1]; raises EngineError on another share."""

    base: Policy
    random_share: float = 0.1

    def __post_init__(self) -> None:
        if not 0.0 <= self.random_share <= 1.0:
            raise EngineError(
                f"random share {self.random_share}", place="Hedged", remedy="Give a probability between 0 and 1"
            )

    @property
    def name(self) -> str:
        """The base's name and the share, such as "pass_rate+0.1"."""
        return f"{self.base.name}+{self.random_share:g}"

    def values(self, view: View) -> FloatArray:
        """The base's values, (..., N)."""
        return self.base.values(view)
