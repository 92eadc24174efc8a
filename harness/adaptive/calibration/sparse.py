"""A history as its observed cells alone, for tables that are mostly empty: memory O(cells), not O(runs · items)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from harness.adaptive.arrays import FloatArray, IntArray, frozen
from harness.adaptive.calibration.cells import Counts
from harness.adaptive.errors import ResponsesError
from harness.adaptive.responses import Responses, digest_of_names, require_unique


@dataclass(frozen=True, eq=False)
class SparseResponses:
    """c observed cells of R named runs and N named items, in any order; `calibrate` takes it as it does `Responses`.

    `runs` and `items` (c,): positions of each cell, no cell twice; `passes` and `trials` (c,): whole numbers with
    0 ≤ passes ≤ trials. `dates` is empty or one ISO date per run ("" where unknown). After construction the cells are
    in row order and those without trials are gone.

    Raises
    ------
    ResponsesError
        As `Responses` does, and on positions outside the table or a cell given twice.
    """

    run_ids: tuple[str, ...]
    item_ids: tuple[str, ...]
    runs: IntArray
    items: IntArray
    passes: FloatArray
    trials: FloatArray
    dates: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("run_ids", "item_ids", "dates"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        require_unique(self.run_ids, "run_ids")
        require_unique(self.item_ids, "item_ids")
        n_runs, n_items = len(self.run_ids), len(self.item_ids)
        if n_items == 0:
            raise ResponsesError("no items", place="item_ids", remedy="Name at least one item")
        if self.dates and len(self.dates) != n_runs:
            raise ResponsesError(
                f"{len(self.dates)} dates for {n_runs} runs", place="dates", remedy="Give one per run, or none"
            )
        runs, items = np.asarray(self.runs, dtype=np.int64), np.asarray(self.items, dtype=np.int64)
        passes, trials = frozen(self.passes), frozen(self.trials)
        if not runs.shape == items.shape == passes.shape == trials.shape == (runs.size,):
            raise ResponsesError("shapes differ", place="cells", remedy="Give four arrays of one length")
        if runs.size and (runs.min() < 0 or runs.max() >= n_runs or items.min() < 0 or items.max() >= n_items):
            raise ResponsesError(
                "a position outside the table", place="runs, items", remedy="Count positions from 0 within the ids"
            )
        whole = np.isfinite(passes) & (passes >= 0) & (passes == np.floor(passes))
        whole &= np.isfinite(trials) & (trials == np.floor(trials)) & (passes <= trials)
        if not whole.all():
            at = int(np.flatnonzero(~whole)[0])
            raise ResponsesError(
                f"{passes[at]:g} passes of {trials[at]:g} trials",
                place=f"run {self.run_ids[runs[at]]!r}, item {self.item_ids[items[at]]!r}",
                remedy="Give whole numbers, a pass counting as one trial as well",
            )
        seen = np.flatnonzero(trials > 0)
        order = seen[np.lexsort((items[seen], runs[seen]))]
        place = runs[order] * n_items + items[order]
        if len(place) > 1 and (np.diff(place) == 0).any():
            raise ResponsesError("a cell is given twice", place="cells", remedy="Add up the trials of a cell first")
        for name, values in (("runs", runs), ("items", items), ("passes", passes), ("trials", trials)):
            kept = values[order]
            kept.flags.writeable = False
            object.__setattr__(self, name, kept)

    @classmethod
    def from_cells(
        cls,
        cells: Iterable[tuple[str, str, bool | None]],
        item_ids: Sequence[str] | None = None,
        dates: Mapping[str, str] | None = None,
    ) -> SparseResponses:
        """Add up flat rows `(run, item, outcome)` exactly as `Responses.from_cells` does, reading them once."""
        runs: dict[str, int] = {}
        items: dict[str, int] = {item: at for at, item in enumerate(item_ids or ())}
        counts: dict[tuple[int, int], list[int]] = {}
        for run, item, outcome in cells:
            row = runs.setdefault(run, len(runs))
            if item_ids is not None and item not in items:
                raise ResponsesError(
                    "an outcome for an item that is not listed",
                    place=f"run {run!r}, item {item!r}",
                    remedy="Add the item to item_ids, or leave the row out",
                )
            column = items.setdefault(item, len(items))
            if outcome is not None:
                cell = counts.setdefault((row, column), [0, 0])
                cell[0] += bool(outcome)
                cell[1] += 1
        at = np.array(list(counts), dtype=np.int64).reshape(-1, 2)
        found = np.array(list(counts.values()), dtype=np.float64).reshape(-1, 2)
        order = tuple(dates.get(run, "") for run in runs) if dates else ()
        return cls(tuple(runs), tuple(items), at[:, 0], at[:, 1], found[:, 0], found[:, 1], order)

    def dense(self) -> Responses:
        """The same history as a table; O(R N) memory."""
        shape = (len(self.run_ids), len(self.item_ids))
        passes, trials = np.zeros(shape), np.zeros(shape)
        passes[self.runs, self.items], trials[self.runs, self.items] = self.passes, self.trials
        return Responses(self.run_ids, self.item_ids, passes, trials, self.dates)

    @property
    def sha256(self) -> str:
        """That of the dense table, made row by row."""
        digest = hashlib.sha256()
        digest_of_names(digest, self.run_ids, self.item_ids, self.dates)
        starts = np.searchsorted(self.runs, np.arange(len(self.run_ids) + 1))
        for counts in (self.passes, self.trials):
            for first, last in pairwise(starts):
                row = np.zeros(len(self.item_ids), dtype="<f8")
                row[self.items[first:last]] = counts[first:last]
                digest.update(row.tobytes())
        return digest.hexdigest()


def counts_of(responses: Responses | SparseResponses) -> Counts:
    """The observed cells of either kind of history."""
    if isinstance(responses, Responses):
        return Counts.dense(responses.passes, responses.trials)
    return Counts(
        n_runs=len(responses.run_ids),
        n_items=len(responses.item_ids),
        runs=responses.runs,
        items=responses.items,
        passes=responses.passes,
        trials=responses.trials,
        effective_runs=float(len(responses.run_ids)),
    )
