"""Coverage by stratum: one mechanism of missing grades rarely holds for all episodes alike."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from harness.stats.arrays import outcomes
from harness.stats.errors import StatsError
from harness.stats.identification import Counts, Interval, identified


@dataclass(frozen=True)
class StratumCoverage:
    """One stratum: `rate` is passes over graded (None without any), `bounds` the identification interval."""

    stratum: Hashable
    planned: int
    graded: int
    passed: float
    rate: float | None
    bounds: Interval

    @property
    def coverage(self) -> float:
        return self.graded / self.planned


def coverage_by_stratum(strata: Sequence[Hashable], values: ArrayLike) -> tuple[StratumCoverage, ...]:
    """Coverage of each stratum, in order of first appearance. `values`: outcomes, shape (n,), NaN where ungraded.

    Raises StatsError when there is not one stratum per outcome.
    """
    known = outcomes(values)
    if known.shape != (len(strata),):
        raise StatsError(f"{len(strata)} strata for outcomes of shape {known.shape}")
    members: dict[Hashable, list[int]] = {}
    for index, stratum in enumerate(strata):
        members.setdefault(stratum, []).append(index)
    found = []
    for stratum, indices in members.items():
        own = known[indices]
        graded, passed = int((~np.isnan(own)).sum()), float(np.nansum(own))
        bounds = _bounds(own.size, graded, passed)
        found.append(StratumCoverage(stratum, own.size, graded, passed, passed / graded if graded else None, bounds))
    return tuple(found)


def _bounds(planned: int, graded: int, passed: float) -> Interval:
    if passed == int(passed):
        return identified(Counts(planned, int(passed), planned - graded))
    return Interval(passed / planned, (passed + planned - graded) / planned)  # rewards that are shares
