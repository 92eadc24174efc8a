"""The observed cells of a history, in blocks of runs, dense or sparse behind the same four operations.

A calibration needs of a table only: values Σ_q left[r, q] right[i, q] at every observed cell, and weighted sums of
run or item features over the cells,

    by_run:   out[r] = Σ_i w[r, i] right[i],        by_item:   out[i] = Σ_r w[r, i] left[r]

In a dense block these are matrix products over all cells of its rows (a missing cell has 0 trials, so its weight is
0); in a sparse one they touch the observed cells alone. Memory is O(cells + block), never O(R N) for a sparse table.
Blocks keep the working arrays of one pass inside the processor's cache; sums go block by block in a fixed order, so
results are the same on every run.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from harness.adaptive.arrays import BoolArray, FloatArray, IntArray

_BLOCK_CELLS = 65_536
DENSE_FILL = 0.2  # under this share of observed cells gathering beats multiplying zeros


@dataclass(frozen=True, eq=False)
class DenseBlock:
    """Runs `rows` of a table: `passes` and `trials` (r, N); values at cells have this shape as well."""

    rows: slice
    passes: FloatArray
    trials: FloatArray

    def products(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """left (r, q) · right (N, q) at every cell, (r, N)."""
        return np.asarray(left @ right.T)

    def by_run(self, weight: FloatArray, right: FloatArray) -> FloatArray:
        """Σ_i w right[i], (r, q) from right (N, q)."""
        return np.asarray(weight @ right)

    def by_item(self, weight: FloatArray, left: FloatArray) -> FloatArray:
        """Σ_r w left[r], (N, q) from left (r, q)."""
        return np.asarray(weight.T @ left)


@dataclass(frozen=True, eq=False)
class SparseBlock:
    """Runs `rows` of a table as c observed cells in row order.

    `passes` and `trials` (c,); `items` (c,) the column of each cell, `pointers` (r + 1,) where each row starts.
    Values at cells have shape (c,).
    """

    rows: slice
    passes: FloatArray
    trials: FloatArray
    items: IntArray
    pointers: IntArray
    n_items: int

    def products(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """left (r, q) · right (N, q) at every observed cell, (c,)."""
        runs = np.repeat(np.arange(len(self.pointers) - 1), np.diff(self.pointers))
        return np.asarray(np.einsum("cq,cq->c", left[runs], right[self.items]))

    def by_run(self, weight: FloatArray, right: FloatArray) -> FloatArray:
        """Σ_i w right[i], (r, q) from right (N, q)."""
        return np.asarray(self._matrix(weight) @ right)

    def by_item(self, weight: FloatArray, left: FloatArray) -> FloatArray:
        """Σ_r w left[r], (N, q) from left (r, q)."""
        return np.asarray(self._matrix(weight).T @ left)

    def at_items(self, columns: IntArray) -> SparseBlock:
        """These columns alone, in this order."""
        number = np.full(self.n_items, -1, dtype=np.int64)
        number[columns] = np.arange(len(columns))
        kept = number[self.items] >= 0
        pointers = np.concatenate([[0], np.cumsum(kept)])[self.pointers]
        items = number[self.items[kept]]
        return SparseBlock(self.rows, self.passes[kept], self.trials[kept], items, pointers, len(columns))

    def _matrix(self, weight: FloatArray) -> csr_array:
        shape = (len(self.pointers) - 1, self.n_items)
        return csr_array((weight, self.items, self.pointers), shape=shape)


Block = DenseBlock | SparseBlock


@dataclass(frozen=True, eq=False)
class Cells:
    """R runs by N items as blocks of consecutive runs; `passes` and `trials` may be weighted, hence not whole."""

    n_runs: int
    n_items: int
    blocks: tuple[Block, ...]

    def totals_by_run(self) -> tuple[FloatArray, FloatArray]:
        """Passes and trials of each run, (R,) and (R,)."""
        one = np.ones((self.n_items, 1))
        passes, trials = np.zeros(self.n_runs), np.zeros(self.n_runs)
        for block in self.blocks:
            passes[block.rows] = block.by_run(block.passes, one)[:, 0]
            trials[block.rows] = block.by_run(block.trials, one)[:, 0]
        return passes, trials

    def totals_by_item(self) -> tuple[FloatArray, FloatArray]:
        """Passes and trials of each item, (N,) and (N,)."""
        passes, trials = np.zeros(self.n_items), np.zeros(self.n_items)
        for block in self.blocks:
            one = np.ones((block.rows.stop - block.rows.start, 1))
            passes += block.by_item(block.passes, one)[:, 0]
            trials += block.by_item(block.trials, one)[:, 0]
        return passes, trials

    def at_items(self, columns: IntArray) -> Cells:
        """These columns alone, in this order (blocks stay as they are cut)."""
        blocks: list[Block] = []
        for block in self.blocks:
            if isinstance(block, DenseBlock):
                blocks.append(DenseBlock(block.rows, block.passes[:, columns], block.trials[:, columns]))
            else:
                blocks.append(block.at_items(columns))
        return Cells(self.n_runs, len(columns), tuple(blocks))


@dataclass(frozen=True, eq=False)
class Counts:
    """The observed cells of a table one by one, in row order: run, item, passes, trials > 0, each (c,).

    `passes` and `trials` are floats because a run may weigh less than 1; `effective_runs` is Σ of the weights.
    """

    n_runs: int
    n_items: int
    runs: IntArray
    items: IntArray
    passes: FloatArray
    trials: FloatArray
    effective_runs: float

    @classmethod
    def dense(cls, passes: FloatArray, trials: FloatArray) -> Counts:
        """From two (R, N) arrays."""
        runs, items = np.nonzero(trials)
        n_runs, n_items = trials.shape
        return cls(n_runs, n_items, runs, items, passes[runs, items], trials[runs, items], float(n_runs))

    def where(self, chosen: BoolArray) -> Counts:
        """The chosen cells (c,) alone; the table keeps its size."""
        return Counts(
            self.n_runs,
            self.n_items,
            self.runs[chosen],
            self.items[chosen],
            self.passes[chosen],
            self.trials[chosen],
            self.effective_runs,
        )

    def of_runs(self, kept: IntArray, weight: FloatArray) -> Counts:
        """The rows `kept` (rising), renumbered, run r's counts times `weight`[r] (n kept,)."""
        number = np.full(self.n_runs, -1, dtype=np.int64)
        number[kept] = np.arange(len(kept))
        inside = self.where(number[self.runs] >= 0)
        runs = number[inside.runs]
        share = weight[runs]
        return Counts(
            n_runs=len(kept),
            n_items=self.n_items,
            runs=runs,
            items=inside.items,
            passes=inside.passes * share,
            trials=inside.trials * share,
            effective_runs=float(weight.sum()),
        )

    def cells(self) -> Cells:
        """In blocks for arithmetic: dense if at least a fifth of the table is observed, else sparse."""
        if len(self.runs) >= DENSE_FILL * self.n_runs * self.n_items:
            return self._dense_cells()
        return self.sparse_cells()

    def sparse_cells(self) -> Cells:
        """In sparse blocks, whose cells one after the other are those of this table."""
        pointers = np.searchsorted(self.runs, np.arange(self.n_runs + 1))
        blocks: list[Block] = []
        start = 0
        while start < self.n_runs:
            # The most rows that fit one block, but at least one.
            reach = int(np.searchsorted(pointers, pointers[start] + _BLOCK_CELLS, side="right")) - 1
            stop = min(self.n_runs, max(start + 1, reach))
            cut = slice(int(pointers[start]), int(pointers[stop]))
            inner = pointers[start : stop + 1] - pointers[start]
            rows = slice(start, stop)
            blocks.append(SparseBlock(rows, self.passes[cut], self.trials[cut], self.items[cut], inner, self.n_items))
            start = stop
        return Cells(self.n_runs, self.n_items, tuple(blocks))

    def _dense_cells(self) -> Cells:
        blocks: list[Block] = []
        size = max(1, _BLOCK_CELLS // max(1, self.n_items))
        for start in range(0, self.n_runs, size):
            rows = slice(start, min(self.n_runs, start + size))
            cut = slice(*np.searchsorted(self.runs, [rows.start, rows.stop]))
            shape = (rows.stop - rows.start, self.n_items)
            passes, trials = np.zeros(shape), np.zeros(shape)
            at = self.runs[cut] - rows.start, self.items[cut]
            passes[at], trials[at] = self.passes[cut], self.trials[cut]
            blocks.append(DenseBlock(rows, passes, trials))
        return Cells(self.n_runs, self.n_items, tuple(blocks))
