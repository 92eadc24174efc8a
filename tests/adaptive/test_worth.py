"""What items can tell, against brute force."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from harness.adaptive.worth import dead_weight, expected_information, items_holding

from .banks import random_bank


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 3))
def test_expected_information_is_the_mean_over_the_prior(seed: int, d: int) -> None:
    bank = random_bank(seed, n=5, d=d)
    found = expected_information(bank)
    for item in range(5):
        variance = float(bank.alpha[item] @ bank.prior_covariance @ bank.alpha[item])
        middle, spread = float(bank.alpha[item] @ bank.prior_mean - bank.beta[item]), float(np.sqrt(variance))
        assert found[item] == pytest.approx(variance * mean_spike(middle, spread), rel=1e-5)


def mean_spike(middle: float, spread: float) -> float:
    """E[p(1−p)] of a normal logit; in deviations of the normal, so that neither a narrow normal nor a narrow
    spike of p(1−p) falls between the nodes of the quadrature."""
    spike = float(np.clip(-middle / spread, -11, 11))
    return float(
        quad(lambda x: norm.pdf(x) / (2 + 2 * np.cosh(middle + spread * x)), -12, 12, points=[spike, 0], limit=400)[0]
    )


def test_steep_items_are_not_overrated() -> None:
    """Beside a spread of 20 logits p(1−p) is a spike of area 1, which a rule of a few points may miss or hit."""
    bank = replace(random_bank(1, n=3, d=1), beta=np.array([0.0, 7.0, 30.0]), alpha=np.full((3, 1), 20.0))
    bank = replace(bank, prior_mean=np.zeros(1), prior_covariance=np.eye(1))
    spikes = norm(0, 20).pdf(bank.beta) * 400
    np.testing.assert_allclose(expected_information(bank), spikes, rtol=0.01)


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
