"""Cells: dense and sparse blocks give the same sums, and cutting a table loses nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.adaptive.calibration import cells as cells_module
from harness.adaptive.calibration.cells import Cells, Counts, DenseBlock, SparseBlock

Table = tuple[np.ndarray, np.ndarray]


@st.composite
def tables(draw: st.DrawFn) -> Table:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = draw(st.integers(1, 9)), draw(st.integers(1, 8))
    trials = rng.integers(1, 4, shape) * (rng.random(shape) < draw(st.sampled_from([0.0, 0.3, 1.0])))
    return np.floor(trials * rng.random(shape) + 0.5), trials.astype(float)


def sums(cells: Cells, left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Σ_i n (left·right) right and Σ_r n (left·right) left."""
    by_run, by_item = np.zeros_like(left), np.zeros_like(right)
    for block in cells.blocks:
        weight = block.trials * block.products(left[block.rows], right)
        by_run[block.rows] = block.by_run(weight, right)
        by_item += block.by_item(weight, left[block.rows])
    return by_run, by_item


@given(tables(), st.integers(1, 30), st.integers(0, 2**31))
@settings(max_examples=80, deadline=None)
def test_dense_and_sparse_blocks_of_any_size_give_the_same_sums(table: Table, size: int, seed: int) -> None:
    passes, trials = table
    rng = np.random.default_rng(seed)
    left, right = rng.normal(size=(trials.shape[0], 3)), rng.normal(size=(trials.shape[1], 3))
    weight = trials * (left @ right.T)
    counts = Counts.dense(passes, trials)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells_module, "_BLOCK_CELLS", size)
        patch.setattr(cells_module, "DENSE_FILL", 0.0)
        dense, sparse = counts.cells(), counts.sparse_cells()
    assert all(isinstance(block, DenseBlock) for block in dense.blocks)
    assert all(isinstance(block, SparseBlock) for block in sparse.blocks)
    for cells in (dense, sparse):
        by_run, by_item = sums(cells, left, right)
        np.testing.assert_allclose(by_run, weight @ right, atol=1e-12)
        np.testing.assert_allclose(by_item, weight.T @ left, atol=1e-12)
        for found, table_ in zip(cells.totals_by_item(), table, strict=True):
            np.testing.assert_array_equal(found, table_.sum(axis=0))
        for found, table_ in zip(cells.totals_by_run(), table, strict=True):
            np.testing.assert_array_equal(found, table_.sum(axis=1))
        columns = rng.permutation(trials.shape[1])[: 1 + trials.shape[1] // 2]
        np.testing.assert_array_equal(cells.at_items(columns).totals_by_item()[1], trials[:, columns].sum(axis=0))


@given(tables(), st.integers(0, 2**31))
@settings(max_examples=40, deadline=None)
def test_cutting_cells_and_runs_keeps_the_rest(table: Table, seed: int) -> None:
    passes, trials = table
    rng = np.random.default_rng(seed)
    counts = Counts.dense(passes, trials)
    hide = rng.random(len(counts.runs)) < 0.5
    shown, hidden = counts.where(~hide), counts.where(hide)
    assert shown.trials.sum() + hidden.trials.sum() == trials.sum()
    kept = np.flatnonzero(rng.random(len(trials)) < 0.6)
    weight = rng.random(len(kept))
    part = counts.of_runs(kept, weight)
    assert part.n_runs == len(kept)
    assert part.effective_runs == pytest.approx(weight.sum())
    np.testing.assert_allclose(part.sparse_cells().totals_by_run()[0], weight * passes[kept].sum(axis=1))
