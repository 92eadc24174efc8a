"""What items can tell, against brute force."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.adaptive.worth import dead_weight, expected_information, items_holding

from .banks import random_bank


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 3))
def test_expected_information_is_the_mean_over_the_prior(seed: int, d: int) -> None:
    bank = random_bank(seed, n=5, d=d)
    theta = np.random.default_rng(seed).multivariate_normal(bank.prior_mean, bank.prior_covariance, 40_000)
    p = bank.probability(theta)
    spread = np.einsum("nd,de,ne->n", bank.alpha, bank.prior_covariance, bank.alpha)
    np.testing.assert_allclose(expected_information(bank), (p * (1 - p)).mean(axis=0) * spread, rtol=0.03)


def test_items_that_all_fail_or_that_ability_does_not_move_are_dead() -> None:
    bank = random_bank(5, n=12, d=1)
    alpha, beta = bank.alpha.copy(), bank.beta.copy()
    beta[2], alpha[7] = 30.0, 1e-3
    changed = replace(bank, alpha=alpha, beta=beta)
    assert {"item-2", "item-7"} <= set(dead_weight(changed))
    assert items_holding(changed, 1e-9) == 1
    assert items_holding(changed, 1.0) <= 12


def test_equal_items_hold_equal_shares() -> None:
    bank = random_bank(5, n=10, d=1)
    same = replace(bank, alpha=np.ones((10, 1)), beta=np.zeros(10))
    assert items_holding(same, 0.55) == 6
    assert dead_weight(same) == ()
