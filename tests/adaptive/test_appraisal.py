"""How outcomes sit with the bank: against enumeration, and over simulated agents."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from harness.adaptive import AbilityState, PosteriorPredictive
from harness.adaptive.appraisal import expected_error, person_fit
from harness.adaptive.estimators import estimate_of

from .banks import random_bank


def test_fit_is_the_standardised_log_likelihood_by_enumeration() -> None:
    bank = random_bank(3, n=6, d=1)
    state = AbilityState.rebuild(bank, [(0, True), (1, False), (2, False), (3, True)])
    p = bank.probability(state.theta)[:4]

    def log_likelihood(outcomes: tuple[int, ...]) -> float:
        y = np.array(outcomes)
        return float(np.log(np.where(y == 1, p, 1 - p)).sum())

    every = [(log_likelihood(y), np.exp(log_likelihood(y))) for y in product((0, 1), repeat=4)]
    mean = sum(value * weight for value, weight in every)
    spread = np.sqrt(sum(weight * (value - mean) ** 2 for value, weight in every))
    assert person_fit(state).lz == pytest.approx((log_likelihood((1, 0, 0, 1)) - mean) / spread)


def test_agents_of_the_model_fit_and_those_with_other_strengths_do_not() -> None:
    bank = random_bank(8, n=120, d=2, spread=1.5)
    rng = np.random.default_rng(1)
    fits, misfits = [], []
    for _ in range(40):
        p = bank.probability(rng.multivariate_normal(bank.prior_mean, bank.prior_covariance))
        y = rng.random(len(bank)) < p
        fits.append(person_fit(AbilityState.rebuild(bank, enumerate(y.tolist()))))
        shuffled = rng.permutation(y)  # as many passes, but on other items
        misfits.append(person_fit(AbilityState.rebuild(bank, enumerate(shuffled.tolist()))))
    assert abs(np.mean([fit.lz for fit in fits])) < 0.5
    assert sum(fit.misfits for fit in fits) == 0
    assert sum(fit.misfits for fit in misfits) > 30


def test_surprises_come_by_size_and_nothing_observed_has_no_fit() -> None:
    bank = random_bank(3, n=10, d=1)
    found = person_fit(AbilityState.rebuild(bank, [(at, at % 2 == 0) for at in range(10)])).surprises
    residuals = [abs(one.residual) for one in found]
    assert residuals == sorted(residuals, reverse=True)
    assert {one.item for one in found} == set(bank.item_ids)
    empty = person_fit(AbilityState.start(bank))
    assert np.isnan(empty.lz)
    assert (empty.surprises, empty.misfits) == ((), False)


def test_the_expected_error_is_the_mean_over_both_outcomes() -> None:
    bank = random_bank(5, n=20, d=2)
    state = AbilityState.rebuild(bank, [(0, True), (4, False)])
    estimator = PosteriorPredictive()
    p = float(bank.probability(state.theta)[7])
    after = [estimate_of(estimator, state.observe(7, y).evidence).standard_error for y in (0, 1)]
    expected = (1 - p) * after[0] + p * after[1]
    assert expected_error(state, bank.item_ids[7], estimator) == pytest.approx(expected)
    assert expected_error(state, bank.item_ids[7], estimator, 2.0) == pytest.approx(2 * expected)
    assert expected < estimate_of(estimator, state.evidence).standard_error
