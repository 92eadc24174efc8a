"""Every pair of a board at once: runs × tasks, missing outcomes allowed.

For each pair the tasks that both graded are compared: transitions, difference with Newcombe's interval, exact McNemar,
and the p-values of all pairs adjusted together. Counts over pairs are matrix products: with X the passes and M the
mask of graded cells, n11 = XXᵀ, and the number of common tasks is MMᵀ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from harness.stats.arrays import BoolArray, FloatArray, IntArray, outcomes
from harness.stats.errors import StatsError
from harness.stats.mcnemar import exact_p
from harness.stats.multiplicity import benjamini_hochberg, holm
from harness.stats.paired import newcombe


@dataclass(frozen=True, eq=False)
class Board:
    """All pairs i < j, each array of shape (pairs,); a difference is that of run `first` minus run `second`.

    `rate` and `coverage` are per run. `p`, bounds and `difference` are NaN where two runs share no graded task.
    `holm` and `false_discovery` are adjusted over all pairs. `surely_apart` says that missing grades cannot turn the
    order of the two over all tasks.
    """

    runs: int
    tasks: int
    rate: FloatArray
    coverage: FloatArray
    lower_rate: FloatArray
    upper_rate: FloatArray
    first: IntArray
    second: IntArray
    common: IntArray
    only_first: IntArray
    only_second: IntArray
    difference: FloatArray
    lower: FloatArray
    upper: FloatArray
    p: FloatArray
    holm: FloatArray
    false_discovery: FloatArray
    surely_apart: BoolArray

    @property
    def order(self) -> IntArray:
        """Runs from the best rate to the worst; runs without a grade come last."""
        return np.argsort(np.where(np.isnan(self.rate), np.inf, -self.rate), kind="stable")


def board(values: ArrayLike, level: float = 0.95) -> Board:
    """Compare all runs with each other. `values`: shape (runs, tasks), 0, 1 or NaN.

    Raises StatsError for other values, fewer than two runs, or no task.
    """
    table = outcomes(values)
    if table.ndim != 2 or table.shape[0] < 2 or table.shape[1] == 0:
        raise StatsError(f"a board has at least two runs and a task; these outcomes have shape {table.shape}")
    graded = ~np.isnan(table)
    if not np.isin(table[graded], (0.0, 1.0)).all():
        raise StatsError("a board's outcomes are 0 and 1; for rates take the weighted comparison")
    mask = graded.astype(np.float64)
    passed = np.where(graded, table, 0.0)
    first, second = np.triu_indices(table.shape[0], k=1)
    both = (passed @ passed.T)[first, second]
    common = (mask @ mask.T)[first, second]
    passed_where_other = passed @ mask.T
    only_first = passed_where_other[first, second] - both
    only_second = passed_where_other[second, first] - both
    lower, upper = newcombe(both, only_first, only_second, common - both - only_first - only_second, level)
    some = np.where(common > 0, common, np.nan)
    p = np.where(common > 0, exact_p(only_first, only_second), np.nan)
    tasks = table.shape[1]
    count, sums = mask.sum(axis=1), passed.sum(axis=1)
    low, high = sums / tasks, (sums + tasks - count) / tasks
    return Board(
        runs=table.shape[0],
        tasks=tasks,
        rate=sums / np.where(count > 0, count, np.nan),
        coverage=count / tasks,
        lower_rate=low,
        upper_rate=high,
        first=first.astype(np.int64),
        second=second.astype(np.int64),
        common=common.astype(np.int64),
        only_first=only_first.astype(np.int64),
        only_second=only_second.astype(np.int64),
        difference=(only_first - only_second) / some,
        lower=lower,
        upper=upper,
        p=p,
        holm=holm(p),
        false_discovery=benjamini_hochberg(p),
        surely_apart=(low[first] > high[second]) | (low[second] > high[first]),
    )
