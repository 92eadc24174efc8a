"""Sparse histories: the same history as the dense table, and the same bank."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.adaptive import CalibrationSettings, Responses, calibrate, simulate_population
from harness.adaptive.calibration.sparse import SparseResponses, counts_of
from harness.adaptive.errors import ResponsesError

Rows = list[tuple[str, str, bool | None]]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"), st.sampled_from([True, False, None]))))
@settings(max_examples=60, deadline=None)
def test_rows_add_up_to_the_same_history(rows: Rows) -> None:
    rows = [("a", "x", True), *rows]
    dense = Responses.from_cells(rows, dates={"b": "2026-01-02"})
    sparse = SparseResponses.from_cells(iter(rows), dates={"b": "2026-01-02"})
    back = sparse.dense()
    assert (back.run_ids, back.item_ids, back.dates) == (dense.run_ids, dense.item_ids, dense.dates)
    assert np.array_equal(back.passes, dense.passes)
    assert np.array_equal(back.trials, dense.trials)
    assert sparse.sha256 == dense.sha256


@pytest.mark.parametrize("method", ["variational", "map"])
@pytest.mark.parametrize("missing", [0.1, 0.9])
def test_both_give_the_same_bank(method: str, missing: float) -> None:
    dense = simulate_population(3, 90, [f"item-{i}" for i in range(70)], d=2).responses(missing=missing)
    runs, items = np.nonzero(dense.trials)
    mixed = np.random.default_rng(0).permutation(len(runs))
    sparse = SparseResponses(
        dense.run_ids,
        dense.item_ids,
        runs[mixed],
        items[mixed],
        dense.passes[runs, items][mixed],
        np.ones(len(runs)),
    )
    chosen = CalibrationSettings(dims=2, method=method, max_iterations=25)  # type: ignore[arg-type]
    one, other = calibrate(dense, chosen), calibrate(sparse, chosen)
    assert one.bank.digest == other.bank.digest


def test_the_arithmetic_of_sparse_blocks_gives_the_dense_bank(monkeypatch: pytest.MonkeyPatch) -> None:
    history = simulate_population(3, 60, [f"item-{i}" for i in range(50)], d=2).responses(missing=0.3)
    chosen = CalibrationSettings(dims=2, report=False, max_iterations=60)
    dense = calibrate(history, chosen).bank
    monkeypatch.setattr("harness.adaptive.calibration.cells.DENSE_FILL", 1.1)
    sparse = calibrate(history, chosen).bank
    assert sparse.digest != dense.digest  # or the same path was taken twice
    np.testing.assert_allclose(sparse.alpha, dense.alpha, atol=1e-4)
    np.testing.assert_allclose(sparse.beta, dense.beta, atol=1e-4)
    assert sparse.item_covariance is not None
    assert dense.item_covariance is not None
    np.testing.assert_allclose(sparse.item_covariance, dense.item_covariance, atol=1e-4)


def test_memory_is_that_of_the_cells() -> None:
    sparse = SparseResponses(
        tuple(f"r{i}" for i in range(40_000)),
        tuple(f"i{i}" for i in range(40_000)),
        np.arange(40_000),
        np.arange(40_000),
        np.zeros(40_000),
        np.ones(40_000),
    )
    counts = counts_of(sparse)
    assert sum(block.trials.size for block in counts.cells().blocks) == 40_000


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (([0, 0], [0, 0], [1, 1], [1, 1]), "given twice"),
        (([0], [5], [1], [1]), "outside the table"),
        (([-1], [0], [1], [1]), "outside the table"),
        (([0], [0], [2], [1]), "2 passes of 1 trials"),
        (([0], [0], [0.5], [1]), "0.5 passes"),
        (([0], [0], [float("nan")], [1]), "nan passes"),
        (([0], [0, 1], [1], [1]), "shapes differ"),
    ],
)
def test_impossible_cells_are_refused(cells: tuple[list[float], ...], message: str) -> None:
    runs, items, passes, trials = (np.array(column) for column in cells)
    with pytest.raises(ResponsesError, match=message) as caught:
        SparseResponses(("r",), ("i", "j"), runs, items, passes, trials)
    assert caught.value.place
    assert caught.value.remedy


def test_an_item_that_is_not_listed_is_refused() -> None:
    with pytest.raises(ResponsesError, match="not listed"):
        SparseResponses.from_cells([("a", "x", True)], item_ids=["y"])
