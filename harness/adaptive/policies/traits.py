"""What is known of the items beside their parameters: pass rates, costs, durations, groups, cached verdicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.adaptive.arrays import FloatArray
from harness.adaptive.errors import EngineError


@dataclass(frozen=True, eq=False)
class ItemTraits:
    """Per item of a bank of N, in its order; None where nothing of the kind is known.

    `pass_rate` (N,) historical rates, `cost_usd` and `duration_s` (N,) expected per execution; NaN is an item without
    one. `groups`: N labels (family or tag); `quotas` their shares of the execution, the suite's own when None.
    `verdict` (N,): 1 or 0 for an item whose past verdict is reused, NaN for one to execute
    (`history_cache.cache_of`). `tasks`: how many items the run is going to execute.

    Raises
    ------
    EngineError
        If the lengths disagree.
    """

    pass_rate: FloatArray | None = None
    cost_usd: FloatArray | None = None
    duration_s: FloatArray | None = None
    groups: tuple[str, ...] | None = None
    quotas: Mapping[str, float] | None = None
    verdict: FloatArray | None = None
    tasks: int | None = None

    def __post_init__(self) -> None:
        lengths = {name: len(values) for name, values in self._per_item().items()}
        if len(set(lengths.values())) > 1:
            raise EngineError(f"lengths {lengths}", place="ItemTraits", remedy="Give one entry per item of the bank")

    def require_length(self, n_items: int) -> None:
        """Raises EngineError unless everything given has `n_items` entries."""
        for name, values in self._per_item().items():
            require_per_item(name, values, length=n_items)

    def _per_item(self) -> dict[str, Any]:
        names = ("pass_rate", "cost_usd", "duration_s", "groups", "verdict")
        found = {name: getattr(self, name) for name in names}
        return {name: values for name, values in found.items() if values is not None}


def require_per_item(
    name: str,
    values: Any,
    allowed: Callable[[FloatArray], Any] | None = None,
    wanted: str = "",
    length: int | None = None,
) -> None:
    """Raises EngineError unless `values` has `length` entries and each is NaN or `allowed`; `wanted` says what is."""
    if length is not None and len(values) != length:
        raise EngineError(
            f"{len(values)} entries for {length} items", place=name, remedy="Give one per item, in the bank's order"
        )
    if allowed is not None:
        numbers = np.asarray(values, dtype=np.float64)
        wrong = ~(np.isnan(numbers) | allowed(numbers))
        if numbers.ndim != 1 or wrong.any():
            at = int(np.argmax(wrong)) if numbers.ndim == 1 else 0
            shown = f"entry {at} is {numbers[at]:g}" if numbers.ndim == 1 else f"shape {numbers.shape}"
            raise EngineError(shown, place=name, remedy=f"Give {wanted} per item, NaN where it is not known")
