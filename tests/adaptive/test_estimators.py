"""Estimates against their formulas, their edges, and the coverage of their intervals."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from harness.adaptive import AbilityState, Estimate, PIrt, PosteriorPredictive, Withdrawal, prior_bank
from harness.adaptive.errors import EngineError
from harness.adaptive.estimators import ESTIMATORS, Estimator, estimate_of

from .banks import random_bank


def estimate(estimator: Estimator, state: AbilityState, level: float = 0.95) -> Estimate:
    return estimate_of(estimator, state.evidence, level)


def test_p_irt_is_observed_passes_plus_predictions() -> None:
    bank = random_bank(4)
    state = AbilityState.rebuild(bank, [(0, True), (1, False), (2, True)])
    found = estimate(PIrt(), state)
    p = bank.probability(state.theta)[3:]
    assert found.value == pytest.approx((2 + p.sum()) / 30)
    lever = ((p * (1 - p))[:, None] * bank.alpha[3:]).sum(axis=0)
    expected = math.sqrt(lever @ state.covariance @ lever + (p * (1 - p)).sum()) / 30
    assert found.standard_error == pytest.approx(expected)
    assert found.upper - found.value == pytest.approx(1.959964 * expected, rel=1e-6)
    assert (found.executed, found.n_items, found.level, found.method) == (3, 30, 0.95, "p_irt")


def test_posterior_predictive_matches_the_integral_over_theta_and_item() -> None:
    bank = random_bank(4, d=2)
    rng = np.random.default_rng(0)
    roots = 0.6 * rng.normal(size=(30, 3, 3))
    # All hard, so that averaging moves every prediction the same way.
    bank = replace(bank, beta=np.full(30, 2.5), item_covariance=roots @ roots.transpose(0, 2, 1))
    assert bank.item_covariance is not None
    state = AbilityState.rebuild(bank, [(i, i % 2 == 0) for i in range(6)])
    value = estimate(PosteriorPredictive(), state).value
    total, draws = 0.0, 40_000
    thetas = rng.multivariate_normal(state.theta, state.covariance, draws)
    for item in range(6, 30):
        mean = np.append(bank.alpha[item], bank.beta[item])
        x = np.append(state.theta, -1.0)
        spread = np.sqrt(x @ bank.item_covariance[item] @ x)
        logits = thetas @ mean[:2] - mean[2] + spread * rng.normal(size=draws)
        total += float(np.mean(1 / (1 + np.exp(-logits))))
    assert value == pytest.approx((3 + total) / 30, abs=0.008)
    assert value > estimate(PIrt(), state).value + 0.03


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: e.name)
def test_edges(estimator: Estimator) -> None:
    bank = random_bank(4)
    nothing = estimate(estimator, AbilityState.start(bank))
    assert 0 <= nothing.lower < nothing.value < nothing.upper <= 1
    assert math.isfinite(nothing.standard_error)
    whole = AbilityState.rebuild(bank, [(i, i < 12) for i in range(30)])
    done = estimate(estimator, whole)
    assert (done.value, done.lower, done.upper, done.standard_error) == (0.4, 0.4, 0.4, 0.0)
    empty = AbilityState.start(bank)
    for item in range(30):
        empty = empty.withdraw(item, Withdrawal.UNAVAILABLE, "gold failed")
    gone = estimate(estimator, empty)
    assert gone.n_items == 0
    assert all(math.isnan(v) for v in (gone.value, gone.lower, gone.upper, gone.standard_error))
    for level in (0.0, 1.0, 95.0):
        with pytest.raises(EngineError, match="level"):
            estimate(estimator, whole, level)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: e.name)
def test_bounds_never_leave_what_is_still_possible(estimator: Estimator) -> None:
    bank = random_bank(4)
    for passed in (True, False):
        state = AbilityState.start(bank)
        for item in range(29):
            state = state.observe(item, passed)
            found = estimate(estimator, state)
            done = sum(state.passes) / 30
            assert done <= found.lower <= found.value <= found.upper <= done + (29 - item) / 30


def test_unavailable_items_leave_the_population_and_ungraded_ones_are_predicted() -> None:
    bank = random_bank(4)
    state = AbilityState.rebuild(bank, [(0, True), (1, False)])
    p = bank.probability(state.theta)
    without = estimate(PIrt(), state.withdraw(5, Withdrawal.UNAVAILABLE, "gold failed"))
    assert without.n_items == 29
    assert without.value == pytest.approx((1 + p[2:].sum() - p[5]) / 29)
    assert estimate(PIrt(), state.withdraw(5, Withdrawal.UNGRADED, "crash")) == estimate(PIrt(), state)


def test_without_a_history_the_estimate_is_close_to_the_sample_mean() -> None:
    bank = prior_bank([f"item-{i}" for i in range(100)])
    state = AbilityState.rebuild(bank, [(i, i % 4 != 0) for i in range(60)])
    found = estimate(PIrt(), state)
    assert found.value == pytest.approx(0.75, abs=0.01)
    sampling = math.sqrt(0.75 * 0.25 / 60 * (1 - 0.6))
    assert found.standard_error == pytest.approx(sampling, rel=0.1)
