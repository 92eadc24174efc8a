"""Comparing banks: one scale, false alarms, what really moved."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from harness.adaptive import Bank, CalibrationSettings, Responses, calibrate, simulate_population
from harness.adaptive.drift import compare_banks
from harness.adaptive.errors import BankError
from tests.adaptive.banks import random_bank

ITEMS = tuple(f"item-{index}" for index in range(100))
MOVED = ("item-3", "item-40", "item-77")


def bank(passes: np.ndarray, items: tuple[str, ...] = ITEMS, d: int = 1) -> Bank:
    history = Responses(tuple(f"r{r}" for r in range(len(passes))), items, passes, np.ones_like(passes))
    return calibrate(history, CalibrationSettings(dims=d, report=False, max_iterations=60)).bank


@cache
def halves() -> tuple[np.ndarray, np.ndarray]:
    """Outcomes of 300 agents, and of 300 others for whom three items are two logits harder."""
    population = simulate_population(6, 600, ITEMS, d=1)
    passes = np.array(population.responses().passes)
    later = passes[1::2].copy()
    rng = np.random.default_rng(0)
    for item in MOVED:
        at = ITEMS.index(item)
        logits = population.theta[1::2] @ population.alpha[at] - population.beta[at] - 2.0
        later[:, at] = rng.random(300) < 1 / (1 + np.exp(-logits))
    return passes[::2], later


def test_what_moved_is_found_and_nothing_else() -> None:
    early, late = halves()
    found = compare_banks(bank(early), bank(late))
    assert set(found.drifted) == set(MOVED)
    assert found.common == 100
    moved = [item for item in found.items if item.item in MOVED]
    assert all(-3.0 < item.shift < -1.2 and item.after < item.before for item in moved)
    z = np.array([item.z for item in found.items if item.item not in MOVED])
    assert 0.7 < z.std() < 1.3
    assert (np.abs(z) > 1.96).mean() < 0.1
    assert found.correlation > 0.9


def test_a_weak_axis_gives_no_false_alarm() -> None:
    population = simulate_population(6, 400, ITEMS, d=2)
    passes = np.array(population.responses().passes)
    chosen = CalibrationSettings(dims=2, report=False, max_iterations=60)
    one, other = (
        calibrate(Responses(tuple(f"r{r}" for r in range(200)), ITEMS, half, np.ones_like(half)), chosen).bank
        for half in (passes[::2], passes[1::2])
    )
    found = compare_banks(one, other)
    assert found.drifted == ()
    assert np.std([item.z for item in found.items]) < 1.3


def test_another_scale_is_no_drift() -> None:
    one = random_bank(4, n=60, d=2)
    root = np.random.default_rng(0).normal(size=(60, 3, 3)) * 0.1
    one = replace(one, item_covariance=root @ root.transpose(0, 2, 1))
    basis, shift = np.array([[0.5, 0.2], [0.0, 1.5]]), np.array([1.0, -0.5])
    turn = np.zeros((3, 3))
    turn[:2, :2], turn[2, :2], turn[2, 2] = basis.T, -shift, 1.0
    assert one.item_covariance is not None
    other = replace(
        one,
        alpha=one.alpha @ basis,
        beta=one.beta - one.alpha @ shift,
        item_covariance=turn @ one.item_covariance @ turn.T,
        prior_mean=np.linalg.solve(basis, one.prior_mean - shift),
    )
    found = compare_banks(one, other)
    np.testing.assert_allclose(found.scale, np.linalg.inv(basis), atol=1e-8)
    np.testing.assert_allclose(found.offset, shift, atol=1e-8)
    assert max(abs(item.z) for item in found.items) < 1e-6
    assert found.drifted == ()


def test_banks_of_another_dimension_and_other_items_compare_on_what_they_share() -> None:
    early, late = halves()
    items = (*ITEMS[:90], *(f"new-{index}" for index in range(10)))
    found = compare_banks(bank(early), bank(late, items, d=2))
    assert found.common == 90
    assert found.only_a == ITEMS[90:]
    assert found.only_b == items[90:]
    assert set(found.drifted) >= set(MOVED)
    assert len(found.scale) == 1
    assert found.as_dict()["common"] == 90


def test_too_few_common_items_are_refused() -> None:
    early, _ = halves()
    one = bank(early)
    with pytest.raises(BankError, match="2 items are calibrated in both, 3 are needed"):
        compare_banks(one, one.restrict(ITEMS[:2]))
    with pytest.raises(BankError, match="calibrated in both"):
        compare_banks(one, replace(one, calibrated=np.zeros(100, dtype=bool)))
