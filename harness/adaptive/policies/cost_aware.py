"""Cost-aware choice: another policy's value per expected dollar, or per expected second.

    argmax_i  value_i / cost_i

The base must give an amount (information, variance removed), not an order: `d_optimal`, `pass_rate`, `rasch_fisher`.
Greedy value per cost is the knapsack heuristic (Dantzig 1957). Measured (CAT.md): better than the base once a good part
of the budget is spent, worse while little is, since cheap items that say little go first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.adaptive.arrays import FloatArray
from harness.adaptive.errors import EngineError
from harness.adaptive.policies.protocol import Policy, View, share_over
from harness.adaptive.policies.traits import require_per_item


@dataclass(frozen=True, eq=False)
class CostAware:
    """`base` per `cost` (N,), the expected cost of executing each item, all in one unit; NaN is not known and counts as
    the median of the known ones, which `notes` says.

    Raises EngineError if a cost is zero, negative or infinite, if none is known, and at use if there is not one per
    item or the base gives a negative value.
    """

    base: Policy
    cost: FloatArray
    kind: str = "cost_aware"

    def __post_init__(self) -> None:
        require_per_item("cost", self.cost, lambda cost: (cost > 0) & np.isfinite(cost), "a positive number")
        if np.isnan(self.cost).all():
            raise EngineError("none is known", place="cost", remedy="Give costs, or choose the base policy alone")

    @property
    def name(self) -> str:
        """Such as "cost_aware:pass_rate"."""
        return f"{self.kind}:{self.base.name}"

    @property
    def random_share(self) -> float:
        """The base's, see `share_over`."""
        return share_over(self.base)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know of the costs."""
        unknown = int(np.isnan(self.cost).sum())
        if not unknown:
            return ()
        return (f"{unknown} of {len(self.cost)} items have no known cost; each counts as {self._median:g}, the median",)

    @property
    def _median(self) -> float:
        return float(np.nanmedian(self.cost))

    def values(self, view: View) -> FloatArray:
        """The base's values per cost, (..., N)."""
        require_per_item("cost", self.cost, length=len(view.bank))
        values = self.base.values(view)
        if (values[view.pool] < 0).any():
            raise EngineError(
                "its values are an order, not an amount, so they have no price",
                place=f"policy {self.base.name!r}",
                remedy="Base it on d_optimal, pass_rate or rasch_fisher",
            )
        return np.asarray(values / np.where(np.isnan(self.cost), self._median, self.cost))
