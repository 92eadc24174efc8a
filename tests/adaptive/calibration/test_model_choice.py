"""Stacking weights and hidden cells."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.adaptive import CalibrationSettings, calibrate, simulate_population
from harness.adaptive.calibration.cells import Counts
from harness.adaptive.calibration.model_choice import hidden_cells, stacking_weights


def score(hidden: Counts, weights: np.ndarray, models: np.ndarray) -> float:
    mixed = weights @ models
    return float(hidden.passes @ np.log(mixed) + (hidden.trials - hidden.passes) @ np.log(1 - mixed))


@given(st.integers(0, 2**31))
@settings(max_examples=20, deadline=None)
def test_no_other_weights_score_better(seed: int) -> None:
    rng = np.random.default_rng(seed)
    trials = rng.integers(1, 3, (6, 20)).astype(float)
    hidden = Counts.dense(np.floor(trials * rng.random((6, 20)) + 0.5), trials)
    models = rng.random((3, 120)) * 0.9 + 0.05
    weights = stacking_weights(hidden, list(models))
    assert weights.sum() == pytest.approx(1)
    assert (weights >= 0).all()
    best = score(hidden, weights, models)
    for other in rng.dirichlet(np.ones(3), 60):
        assert score(hidden, other, models) <= best + 1e-3


def test_a_model_that_is_right_gets_the_weight_and_certainty_breaks_nothing() -> None:
    rng = np.random.default_rng(1)
    right = rng.random(2000)
    hidden = Counts.dense((rng.random((1, 2000)) < right).astype(float), np.ones((1, 2000)))
    weights = stacking_weights(hidden, [np.full(2000, 0.5), right, np.ones(2000)])
    assert weights[1] > 0.9
    assert stacking_weights(Counts.dense(np.zeros((1, 1)), np.zeros((1, 1))), [np.zeros(0)] * 2).tolist() == [0.5, 0.5]


def test_cells_are_hidden_by_name_whatever_else_is_in_the_table() -> None:
    counts = Counts.dense(np.ones((3, 4)), np.ones((3, 4)))
    hide = hidden_cells(counts, ["a", "b", "c"], ["w", "x", "y", "z"], 5, 0.5).reshape(3, 4)
    turned = hidden_cells(counts, ["c", "a", "b"], ["z", "w", "x", "y"], 5, 0.5).reshape(3, 4)
    assert 0 < hide.sum() < 12
    assert np.array_equal(turned[1, 1:], hide[0, :3])
    assert np.array_equal(turned[0, 0], hide[2, 3])


def test_auto_keeps_the_other_models_with_their_weights() -> None:
    items = [f"item-{i}" for i in range(80)]
    history = simulate_population(2, 40, items[:50], d=2).responses()
    bank = calibrate(history).bank
    assert bank.alternatives
    assert bank.weight + sum(other.weight for other in bank.alternatives) == pytest.approx(1)
    assert all(other.weight >= 0.02 for other in bank.alternatives)
    assert all(other.bank.provenance.convergence.converged for other in bank.alternatives)
    assert all(other.bank.item_covariance is not None for other in bank.alternatives)
    part = bank.align(["item-3", "new", "item-1"])
    assert all(other.bank.item_ids == part.item_ids for other in part.alternatives)
    assert calibrate(history, CalibrationSettings(average=False)).bank.alternatives == ()
    assert calibrate(history, CalibrationSettings(dims=2)).bank.alternatives == ()
