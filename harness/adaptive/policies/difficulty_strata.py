"""Difficulty strata: She & Lin's fixed subset of k items, as a policy that any run can follow step by step.

Sort the items by difficulty, cut them into k strata of nearly equal size, take from each the item nearest the stratum's
median. Its weight in the estimate is the stratum's share of the suite (`estimators.stratified`, `WEIGHTED`). Source:
She & Lin 2026 (arXiv:2609.21267), section 3.3.2; what they deployed.

The set depends on k, so k is fixed beforehand; the outcomes change nothing. What is ours is the order, which they need
not have: strata in bit-reversed order, so that a run stopped early has still covered the whole range of difficulty; and
what happens off the plan: where the item of a stratum is not available the next nearest of the same stratum is taken,
and after one item of each stratum a second round begins.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.adaptive.arrays import FloatArray
from harness.adaptive.errors import EngineError
from harness.adaptive.policies.protocol import View
from harness.adaptive.policies.traits import require_per_item
from harness.adaptive.strata import by_median, difficulty, spread, strata_of


@dataclass(frozen=True, eq=False)
class DifficultyStrata:
    """`tasks` ≥ 1 is k. `difficulties` (N,) replaces the bank's (`strata.difficulty`), larger is harder: give the β of
    a Rasch fit where the bank is another model's.

    Raises EngineError if k < 1 or a difficulty is not finite, and at use if there is not one per item.
    """

    tasks: int
    difficulties: FloatArray | None = None
    random_share: float = 0.0

    def __post_init__(self) -> None:
        if self.tasks < 1:
            raise EngineError(f"{self.tasks} strata", place="DifficultyStrata", remedy="Give at least one task")
        if self.difficulties is not None and not np.isfinite(self.difficulties).all():
            raise EngineError("not finite", place="difficulties", remedy="Give one finite number per item")

    @property
    def name(self) -> str:
        """Such as "difficulty_strata:200"."""
        return f"difficulty_strata:{self.tasks}"

    def values(self, view: View) -> FloatArray:
        """Minus the place of each item in the order, (..., N): round, then stratum, then distance from the median."""
        found = difficulty(view.bank) if self.difficulties is None else np.asarray(self.difficulties)
        require_per_item("difficulties", found, length=len(view.bank))
        strata = strata_of(found, self.tasks)
        n_strata = int(strata.max()) + 1
        places = by_median(found, strata)
        sorted_items = np.argsort(strata, kind="stable")
        starts = np.searchsorted(strata[sorted_items], np.arange(n_strata))
        rounds = np.add.reduceat(view.taken[..., sorted_items].astype(np.float64), starts, axis=-1)
        turn = rounds * n_strata + spread(n_strata)
        return np.asarray(-(turn[..., strata] + places / len(found)))
