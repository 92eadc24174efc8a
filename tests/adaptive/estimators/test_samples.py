"""Sample mean, post-stratification, gp-IRT and the history cache against their formulas."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from harness.adaptive import AbilityState, CalibrationSettings, PIrt, Responses
from harness.adaptive.errors import CalibrationError, EngineError
from harness.adaptive.estimators import WEIGHTED, Cached, GpIrt, PosteriorPredictive, SampleMean, Stratified
from harness.adaptive.estimators.gp_irt_history import gp_irt_from
from harness.adaptive.policies import Cache, DifficultyStrata, policy_named
from harness.adaptive.strata import difficulty, strata_of

from ..banks import random_bank
from .finite import played

BANK = random_bank(4, n=30, d=1)


def test_sample_mean_has_the_finite_population_correction() -> None:
    state = AbilityState.rebuild(BANK, [(item, item % 4 == 0) for item in range(12)])
    found = SampleMean().moments(state.evidence)
    assert found.value == pytest.approx(3 / 12)
    p = 4 / 14
    assert found.standard_error == pytest.approx(math.sqrt((1 - 12 / 30) * p * (1 - p) / 12))


def test_strata_weigh_by_their_size_and_an_empty_one_joins_its_neighbour() -> None:
    difficulties = np.arange(30.0)
    state = AbilityState.rebuild(BANK, [(0, True), (5, True), (11, True), (12, False), (29, False)])
    # Strata of ten: 2 executed of the first, 2 of the second, 1 of the third.
    found = Stratified(3, difficulties).moments(state.evidence)
    assert found.value == pytest.approx((1.0 + 0.5 + 0.0) / 3)
    left = (0.5 + 0.25) / 5  # one change along the order, and the pair of its own
    variance = sum(
        (1 / 3) ** 2 * (1 - n / 10) * (squares + left) / n / n for n, squares in ((2, 0.0), (2, 0.5), (1, 0.0))
    )
    assert found.standard_error == pytest.approx(math.sqrt(variance))
    # Of five strata of six only the second and the fourth lack an outcome: each joins the easier side.
    state = AbilityState.rebuild(BANK, [(0, True), (13, False), (29, True)])
    assert Stratified(5, difficulties).moments(state.evidence).value == pytest.approx((12 + 0 + 6) / 30)


def test_strata_estimate_is_the_published_weighted_one_under_its_policy() -> None:
    bank = random_bank(6, n=31, d=1)
    outcomes = (np.random.default_rng(1).random(31) < 0.5).astype(float)
    evidence = played(bank, outcomes, DifficultyStrata(7), 7, [0])
    strata = strata_of(difficulty(bank), 7)
    expected = sum(np.mean(strata == strata[item]) * outcomes[item] for item in evidence.items[0])
    assert WEIGHTED.moments(evidence).value[0] == pytest.approx(expected)


def test_stratified_error_is_as_large_as_it_says_for_random_choice() -> None:
    bank = random_bank(2, n=200, d=1)
    bank = replace(bank, beta=2.0 * bank.beta)
    outcomes = (np.random.default_rng(3).random(200) < bank.probability(bank.prior_mean)).astype(float)
    evidence = played(bank, outcomes, policy_named("random"), 60, range(300))
    for estimator in (Stratified(), SampleMean()):
        found = estimator.moments(evidence)
        error = found.value - outcomes.mean()
        assert abs(error.mean()) < 0.01
        assert 0.9 < np.sqrt((found.standard_error**2).mean()) / error.std() < 1.15
    assert Stratified().moments(evidence).value.std() < 0.8 * SampleMean().moments(evidence).value.std()


def test_gp_irt_mixes_by_the_published_weight() -> None:
    state = AbilityState.rebuild(BANK, [(item, item % 3 == 0) for item in range(10)])
    squared_bias, variance = 0.0009, 0.18
    lam = squared_bias / (variance / 40 + squared_bias)
    evidence = state.evidence
    found = GpIrt(squared_bias, variance, SampleMean()).moments(evidence)
    direct, model = SampleMean().moments(evidence), PIrt().moments(evidence)
    assert found.value == pytest.approx(lam * direct.value + (1 - lam) * model.value)
    model_error = math.sqrt(model.standard_error**2 + (2 * 0.03 * 20 / 30) ** 2)
    assert found.standard_error == pytest.approx(lam * direct.standard_error + (1 - lam) * model_error)
    with pytest.raises(EngineError, match="gp_irt_from"):
        GpIrt(-1.0, 0.2)


def test_gp_irt_constants_come_from_the_later_half_of_the_history() -> None:
    rng = np.random.default_rng(2)
    theta, beta = rng.normal(size=24), rng.normal(size=50)
    passes = (rng.random((24, 50)) < 1 / (1 + np.exp(beta - theta[:, None]))).astype(float)
    names = tuple(f"r{i}" for i in range(24))
    history = Responses(names, tuple(f"i{i}" for i in range(50)), passes, np.ones((24, 50)))
    settings = CalibrationSettings(dims="rasch")
    found = gp_irt_from(history, settings)
    rates = passes.mean(axis=1)
    assert found.outcome_variance == pytest.approx((rates * (1 - rates)).mean())
    assert 0.01 < math.sqrt(found.squared_bias) < 0.06  # 25 outcomes unseen: their noise alone is about 0.03 · √(2/π)
    # The same runs told newest first, with dates, give the same: dates order them.
    backwards = list(range(23, -1, -1))
    dates = tuple(f"2026-01-{run + 1:02d}" for run in backwards)
    reverse = Responses(
        tuple(names[r] for r in backwards), history.item_ids, passes[backwards], np.ones((24, 50)), dates
    )
    assert gp_irt_from(reverse, settings).squared_bias == pytest.approx(found.squared_bias, rel=1e-3)
    # Later runs that the model knows nothing of raise it.
    odd = passes.copy()
    odd[12:] = (rng.random((12, 50)) < np.where(beta < 0, 0.2, 0.9)).astype(float)
    worse = gp_irt_from(Responses(names, history.item_ids, odd, np.ones((24, 50))), settings)
    assert worse.squared_bias > found.squared_bias
    with pytest.raises(CalibrationError, match="at least two"):
        gp_irt_from(Responses(names[:1], history.item_ids, passes[:1], np.ones((1, 50))))


def test_the_cache_fills_in_what_was_not_executed() -> None:
    verdict = np.full(30, np.nan)
    verdict[20:25], verdict[25:] = 1.0, 0.0
    cache = Cache(np.where(verdict == 1, 6.0, 0.0), np.full(30, 6.0), verdict)
    state = AbilityState.rebuild(BANK, [(item, item % 3 == 0) for item in range(20)])
    found = Cached(cache).moments(state.evidence)
    assert found.value == pytest.approx((7 + 5) / 30)  # equation 9
    wrong = 0.5 / 7
    assert found.standard_error == pytest.approx(math.sqrt(10 * wrong * (1 - wrong)) / 30)  # five up, five down
    # A cached item that was executed counts with its outcome, and one still to execute is predicted.
    state = state.observe(20, False)
    assert Cached(cache).moments(state.evidence).value == pytest.approx((7 + 4) / 30)
    few = AbilityState.rebuild(BANK, [(item, item % 3 == 0) for item in range(15)])
    nothing = replace(cache, verdict=np.full(30, np.nan))
    model = PosteriorPredictive().moments(few.evidence)
    assert Cached(nothing).moments(few.evidence).value == pytest.approx(model.value)
    with pytest.raises(EngineError, match="2 entries for 30 items"):
        Cached(Cache(np.zeros(2), np.zeros(2), np.zeros(2))).moments(few.evidence)
