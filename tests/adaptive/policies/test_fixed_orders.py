"""Difficulty strata, the mid-range filter and Rasch testing against their definitions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.adaptive import AbilityState, Withdrawal
from harness.adaptive.errors import EngineError
from harness.adaptive.policies import DifficultyStrata, MidRange, RaschFisher
from harness.adaptive.policies.mid_range import band_of
from harness.adaptive.strata import by_median, difficulty, spread, strata_of

from ..banks import random_bank
from .views import order_of, shown


def test_strata_take_from_each_the_item_nearest_its_median() -> None:
    rasch = replace(random_bank(1, n=20, d=1), alpha=np.ones((20, 1)))
    order = np.argsort(rasch.beta)
    expected = set()
    for stratum in np.array_split(order, 4):
        middle = np.median(rasch.beta[stratum])
        expected.add(int(stratum[np.argmin(np.abs(rasch.beta[stratum] - middle))]))
    assert set(order_of(rasch, DifficultyStrata(4), 4)) == expected


def test_strata_run_in_an_order_that_covers_the_range_early_and_go_round_again() -> None:
    bank = random_bank(2, n=32, d=1)
    strata = strata_of(difficulty(bank), 8)
    found = order_of(bank, DifficultyStrata(8), 16)
    assert sorted(strata[found[:8]]) == list(range(8))
    assert sorted(strata[found[8:]]) == list(range(8))
    assert abs(int(strata[found[0]]) - int(strata[found[1]])) == 4
    assert {int(s) // 2 for s in strata[found[:4]]} == {0, 1, 2, 3}


def test_a_stratum_whose_item_is_unavailable_gives_its_next_nearest() -> None:
    bank = random_bank(3, n=30, d=1)
    policy = DifficultyStrata(5)
    first = order_of(bank, policy, 1)[0]
    state = AbilityState.start(bank).withdraw(first, Withdrawal.UNAVAILABLE, "gold failed")
    view = shown(state)
    chosen = int(np.argmax(np.where(view.pool, policy.values(view), -np.inf)))
    strata = strata_of(difficulty(bank), 5)
    places = by_median(difficulty(bank), strata)
    assert (strata[chosen], places[chosen]) == (strata[first], 1)


def test_strata_by_given_difficulties() -> None:
    bank = random_bank(3, n=12, d=2)
    found = order_of(bank, DifficultyStrata(3, np.arange(12.0)), 3)
    assert sorted(found) == [1, 5, 9]


@given(n=st.integers(1, 60), k=st.integers(1, 80))
def test_strata_are_ordered_and_nearly_equal(n: int, k: int) -> None:
    values = np.random.default_rng(n).normal(size=n)
    strata = strata_of(values, k)
    sizes = np.bincount(strata, minlength=min(n, k))
    assert len(sizes) == min(n, k)
    assert sizes.max() - sizes.min() <= 1
    assert (np.diff(strata[np.argsort(values)]) >= 0).all()
    assert sorted(spread(n)) == list(range(n))


def test_the_band_widens_when_under_a_tenth_of_the_items_is_in_it() -> None:
    assert band_of(np.array([0.3, 0.7] + [0.9] * 18)) == (0.3, 0.7)
    assert band_of(np.array([0.26, 0.5] + [0.9] * 18)) == (0.25, 0.75)
    assert band_of(np.array([0.16, 0.84] + [0.9] * 18)) == (0.15, 0.85)
    assert band_of(np.array([0.99] * 20)) == (0.15, 0.85)
    assert band_of(np.array([1 - 0.7, 0.1 + 0.6] + [0.0] * 18)) == (0.3, 0.7)


def test_mid_range_takes_the_band_in_random_order_and_then_the_nearest() -> None:
    bank = random_bank(1, n=10)
    rates = np.array([0.0, 0.1, 0.28, 0.35, 0.5, 0.6, 0.7, 0.75, 0.9, 1.0])
    orders = [order_of(bank, MidRange(rates), 10, seed) for seed in range(12)]
    assert all(set(order[:4]) == {3, 4, 5, 6} for order in orders)
    assert len({tuple(order[:4]) for order in orders}) > 5
    assert all(order[4:6] == [2, 7] for order in orders)
    assert all(set(order[6:8]) == {1, 8} for order in orders)


def test_mid_range_without_a_rate_goes_by_the_bank() -> None:
    bank = replace(random_bank(1, n=10, d=1), prior_mean=np.zeros(1), prior_covariance=np.eye(1) * 1e-8)
    implied = MidRange().rates(bank)
    np.testing.assert_allclose(implied, 1 / (1 + np.exp(bank.beta)), atol=1e-6)
    partly = MidRange(np.array([0.4, *[np.nan] * 9])).rates(bank)
    assert partly[0] == 0.4
    np.testing.assert_array_equal(partly[1:], implied[1:])


def test_rasch_testing_takes_the_item_whose_difficulty_is_nearest_the_ability() -> None:
    bank = replace(random_bank(4, n=25, d=1), alpha=np.ones((25, 1)))
    state = AbilityState.rebuild(bank, [(2, True), (7, True), (11, False)])
    view = shown(state)
    value = np.where(view.pool, RaschFisher().values(view), -1.0)
    distance = np.where(view.pool, np.abs(bank.beta - state.theta[0]), np.inf)
    assert np.argmax(value) == np.argmin(distance)
    assert value.max() <= 0.25


def test_what_cannot_be_is_refused() -> None:
    bank = random_bank(1)
    with pytest.raises(EngineError, match="at least one task"):
        DifficultyStrata(0)
    with pytest.raises(EngineError, match="finite"):
        DifficultyStrata(3, np.array([1.0, np.nan]))
    with pytest.raises(EngineError, match="3 entries for 30 items"):
        order_of(bank, DifficultyStrata(3, np.zeros(3)), 1)
    with pytest.raises(EngineError, match="entry 1 is 30"):
        MidRange(np.array([0.3, 30.0]))
    with pytest.raises(EngineError, match="2 entries for 30 items"):
        order_of(bank, MidRange(np.array([0.3, 0.5])), 1)
