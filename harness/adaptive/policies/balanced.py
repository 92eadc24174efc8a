"""Content balancing: another policy's choice, within the group of items that is furthest behind its quota.

With n_g of n chosen items in group g and quota s_g, the next item is the base's best of

    argmax_g  s_g − n_g / n        over the groups that have an item left in the pool

Source: Kingsbury & Zara 1989, "Procedures for selecting items for computerized adaptive tests", section on constrained
CAT. Items in flight count as chosen. Before the first choice the group of the largest quota goes first; equal deficits
go to the label that sorts first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from harness.adaptive.arrays import FloatArray, IntArray
from harness.adaptive.errors import EngineError
from harness.adaptive.policies.protocol import Policy, View, share_over
from harness.adaptive.policies.traits import require_per_item

_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Balanced:
    """`base` under quotas; `groups` are the N labels. `quotas` maps every label to a share ≥ 0, scaled to sum to 1;
    None takes the suite's own shares.

    Raises EngineError on quotas that leave a group out, name one that is not there, are negative or all zero, and at
    use if there is not one label per item.
    """

    base: Policy
    groups: tuple[str, ...]
    quotas: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        if self.quotas is None:
            return
        present, given = set(self.groups), set(self.quotas)
        if present != given:
            odd = sorted(present ^ given)
            raise EngineError(
                f"{odd[0]!r} is {'without a quota' if odd[0] in present else 'no group of the items'}",
                place="quotas",
                remedy="Give one share for every group and no other",
            )
        shares = np.array(list(self.quotas.values()), dtype=np.float64)
        if not (np.isfinite(shares).all() and (shares >= 0).all() and shares.sum() > 0):
            raise EngineError(f"{dict(self.quotas)}", place="quotas", remedy="Give shares ≥ 0, one of them above 0")

    @property
    def name(self) -> str:
        """Such as "balanced:pass_rate"."""
        return f"balanced:{self.base.name}"

    @property
    def random_share(self) -> float:
        """The base's, see `share_over`."""
        return share_over(self.base)

    def values(self, view: View) -> FloatArray:
        """The base's values in the group whose turn it is, a number below all of them elsewhere, (..., N)."""
        require_per_item("groups", self.groups, length=len(view.bank))
        group, member = self._membership
        counts = view.taken.astype(np.float64) @ member
        deficit = self._shares - counts / np.maximum(counts.sum(axis=-1, keepdims=True), 1.0)
        deficit = np.where(view.pool.astype(np.float64) @ member > 0, deficit, -np.inf)
        first = deficit >= deficit.max(axis=-1, keepdims=True) - _ROUNDING
        turn = group == np.argmax(first, axis=-1)[..., None]
        values = self.base.values(view)
        lowest = np.where(view.pool, values, np.inf).min(axis=-1, keepdims=True)
        below = np.where(np.isfinite(lowest), lowest - 1.0 - np.abs(lowest), -1.0)
        return np.asarray(np.where(turn, values, below))

    @cached_property
    def _labels(self) -> tuple[str, ...]:
        return tuple(sorted(set(self.groups)))

    @cached_property
    def _membership(self) -> tuple[IntArray, FloatArray]:
        """The group of each item, (N,), and the same as one column per group, (N, G)."""
        place = {label: at for at, label in enumerate(self._labels)}
        group = np.array([place[label] for label in self.groups], dtype=np.int64)
        return group, (group[:, None] == np.arange(len(place))).astype(np.float64)

    @cached_property
    def _shares(self) -> FloatArray:
        """The quota of each group, (G,)."""
        if self.quotas is None:
            return np.asarray(self._membership[1].mean(axis=0))
        shares = np.array([self.quotas[label] for label in self._labels], dtype=np.float64)
        return np.asarray(shares / shares.sum())
