"""Outcomes of past runs in memory: the graded cells alone, since most tables of many runs are mostly empty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]
Amounts = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Cells:
    """c graded cells of a table, no cell twice: run `runs[j]` passed task `items[j]` in `passes[j]` of `trials[j]` ≥ 1
    trials; `cost_usd[j]` and `seconds[j]` are what they took, NaN where unknown. All (c,).
    """

    runs: Counts
    items: Counts
    passes: Counts
    trials: Counts
    cost_usd: Amounts
    seconds: Amounts

    def at(self, chosen: NDArray[np.bool_], runs: Counts) -> Cells:
        """The chosen cells (c,), their runs renamed to `runs` (of the chosen)."""
        items, passes, trials = self.items[chosen], self.passes[chosen], self.trials[chosen]
        return Cells(runs, items, passes, trials, self.cost_usd[chosen], self.seconds[chosen])


@dataclass(frozen=True, eq=False)
class History:
    """Outcomes of R runs on N tasks.

    `run_ids` are distinct; `agents` and `dates` ("" where unknown) belong to the runs. `suite_versions` are all
    that the rows named: more than one means that equal task names may be different tasks. `passes`, `trials`,
    `cost_usd` and `seconds` are tables (R, N) made when they are asked for: 8 bytes for every run and task each.
    """

    run_ids: tuple[str, ...]
    agents: tuple[str, ...]
    dates: tuple[str, ...]
    tasks: tuple[str, ...]
    cells: Cells
    suite_versions: tuple[str, ...] = ()

    @cached_property
    def passes(self) -> Counts:
        """Passes of each run on each task, (R, N)."""
        return self._counts(self.cells.passes)

    @cached_property
    def trials(self) -> Counts:
        """Graded trials of each run on each task, (R, N); 0 where there is no grade."""
        return self._counts(self.cells.trials)

    @cached_property
    def cost_usd(self) -> Amounts | None:
        """What the trials of each cell cost, (R, N), NaN where unknown; None where nothing is known."""
        return self._amounts(self.cells.cost_usd)

    @cached_property
    def seconds(self) -> Amounts | None:
        """How long the trials of each cell took, likewise."""
        return self._amounts(self.cells.seconds)

    @property
    def graded_runs(self) -> NDArray[np.bool_]:
        """(R,) whether a run has any grade."""
        return np.bincount(self.cells.runs, minlength=len(self.run_ids)) > 0

    @property
    def coverage(self) -> float:
        """The share of cells with at least one graded trial."""
        size = len(self.run_ids) * len(self.tasks)
        return len(self.cells.runs) / size if size else 0.0

    def only(self, rows: Sequence[int]) -> History:
        """The runs at these positions, in this order; every task stays."""
        place = np.full(len(self.run_ids), -1, dtype=np.int64)
        place[list(rows)] = np.arange(len(rows))
        kept = place[self.cells.runs] >= 0
        runs, agents, dates = (tuple(names[row] for row in rows) for names in (self.run_ids, self.agents, self.dates))
        cells = self.cells.at(kept, place[self.cells.runs[kept]])
        return replace(self, run_ids=runs, agents=agents, dates=dates, cells=cells)

    def by_agent(self) -> History:
        """One row per agent: its runs added up, dated by the latest."""
        names = tuple(dict.fromkeys(self.agents))
        latest = {name: max(d for a, d in zip(self.agents, self.dates, strict=True) if a == name) for name in names}
        merged = self.merged([names.index(agent) for agent in self.agents])
        return History(names, names, tuple(latest.values()), self.tasks, merged, self.suite_versions)

    def merged(self, row_of: Sequence[int]) -> Cells:
        """The cells with the runs of one new row added up; `row_of` (R,) says which row each run goes to."""
        cells, n_items = self.cells, len(self.tasks)
        place = np.asarray(row_of, dtype=np.int64)[cells.runs] * n_items + cells.items
        kept, group = np.unique(place, return_inverse=True)

        def total(values: Counts | Amounts) -> Amounts:
            return np.asarray(np.bincount(group, values, len(kept)), dtype=np.float64)

        return Cells(
            runs=kept // n_items,
            items=kept % n_items,
            passes=total(cells.passes).astype(np.int64),
            trials=total(cells.trials).astype(np.int64),
            cost_usd=total(cells.cost_usd),
            seconds=total(cells.seconds),
        )

    def _amounts(self, values: Amounts) -> Amounts | None:
        if not np.isfinite(values).any():
            return None
        table = np.full((len(self.run_ids), len(self.tasks)), np.nan)
        table[self.cells.runs, self.cells.items] = values
        return table

    def _counts(self, values: Counts) -> Counts:
        table = np.zeros((len(self.run_ids), len(self.tasks)), dtype=np.int64)
        table[self.cells.runs, self.cells.items] = values
        return table
