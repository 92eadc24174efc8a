"""The online state against batch answers: any order, same bits, extreme outcomes, monotony, long vectors."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from harness.adaptive import AbilityState, Bank, Withdrawal
from harness.adaptive.ability import Outcomes
from harness.adaptive.errors import StateError
from harness.adaptive.state import downdate

from .banks import random_bank


@given(st.integers(0, 2**31), st.integers(1, 5), st.floats(0, 0.25))
@settings(max_examples=60, deadline=None)
def test_sherman_morrison_equals_direct_inversion(seed: int, d: int, weight: float) -> None:
    rng = np.random.default_rng(seed)
    root, loading = rng.normal(size=(d, d)), rng.normal(size=d)
    covariance = root @ root.T + 0.1 * np.eye(d)
    direct = np.linalg.inv(np.linalg.inv(covariance) + weight * np.outer(loading, loading))
    np.testing.assert_allclose(downdate(covariance, loading, weight), direct, rtol=1e-7, atol=1e-9)


def outcomes_of(bank: Bank, items: np.ndarray, y: np.ndarray) -> Outcomes:
    return Outcomes(bank.alpha[items], bank.beta[items], y, np.ones(len(y)), bank.prior_mean, bank.prior_precision)


@given(st.integers(0, 2**31), st.integers(1, 4), st.integers(1, 30))
@settings(max_examples=40, deadline=None)
def test_online_equals_batch_in_any_order(seed: int, d: int, k: int) -> None:
    bank = random_bank(seed % 1000, d=d)
    rng = np.random.default_rng(seed)
    items = rng.permutation(30)[:k]
    given_outcomes = [(int(item), bool(rng.random() < 0.5)) for item in items]
    online = AbilityState.rebuild(bank, given_outcomes)
    shuffled = AbilityState.rebuild(bank, [given_outcomes[at] for at in rng.permutation(k)])
    np.testing.assert_allclose(online.theta, shuffled.theta, atol=1e-9)
    np.testing.assert_allclose(online.covariance, shuffled.covariance, atol=1e-9)
    y = np.array([passed for _, passed in given_outcomes], dtype=float)
    seen = outcomes_of(bank, items, y)
    batch = minimize(
        lambda theta: -float(seen.log_posterior(theta)),
        np.zeros(d),
        method="BFGS",
        options={"gtol": 1e-7},
    )
    np.testing.assert_allclose(online.theta, batch.x, atol=1e-5)
    np.testing.assert_allclose(online.covariance @ seen.information(online.theta), np.eye(d), atol=1e-8)


@given(st.integers(0, 2**31))
@settings(max_examples=20, deadline=None)
def test_the_same_list_rebuilds_the_same_bits(seed: int) -> None:
    bank = random_bank(3)
    rng = np.random.default_rng(seed)
    outcomes = [(int(item), bool(rng.random() < 0.5)) for item in rng.permutation(30)[:25]]
    one, two = AbilityState.rebuild(bank, outcomes), AbilityState.rebuild(bank, outcomes)
    assert one.theta.tobytes() == two.theta.tobytes()
    assert one.covariance.tobytes() == two.covariance.tobytes()


def test_all_right_and_all_wrong_are_finite_symmetric_and_monotone() -> None:
    """CASES S01 (and S04: the first answers equal): the prior keeps θ finite and its error above 0."""
    n = 200
    bank = replace(random_bank(0, n=n, d=1), alpha=np.ones((n, 1)), beta=np.zeros(n), prior_mean=np.zeros(1))
    right, wrong = AbilityState.start(bank), AbilityState.start(bank)
    thetas, errors = [], []
    for item in range(n):
        right, wrong = right.observe(item, True), wrong.observe(item, False)
        assert right.theta[0] == pytest.approx(-wrong.theta[0], abs=1e-9)
        thetas.append(right.theta[0])
        errors.append(np.sqrt(right.covariance[0, 0]))
    assert np.isfinite(thetas).all()
    assert all(later > earlier for earlier, later in pairwise(thetas))
    assert min(errors) > 0.2


@given(st.integers(0, 2**31), st.integers(0, 29))
@settings(max_examples=60, deadline=None)
def test_a_pass_instead_of_a_failure_never_lowers_theta(seed: int, flipped: int) -> None:
    """CASES S02, one ability: no outcome vector beats a better one."""
    bank = random_bank(seed % 50, d=1)
    rng = np.random.default_rng(seed)
    outcomes = [bool(rng.random() < 0.5) for _ in range(30)]
    worse, better = list(outcomes), list(outcomes)
    worse[flipped], better[flipped] = False, True
    low, high = (AbilityState.rebuild(bank, enumerate(vector)) for vector in (worse, better))
    assert high.theta[0] > low.theta[0]


def test_2000_outcomes_are_finite_and_agree_with_200() -> None:
    """CASES S10."""
    bank = random_bank(8, n=2000, d=2)
    rng = np.random.default_rng(1)
    passed = rng.random(2000) < bank.probability(np.array([0.7, -0.4]))
    long = AbilityState.rebuild(bank, ((i, bool(passed[i])) for i in range(2000)))
    short = AbilityState.rebuild(bank, ((i, bool(passed[i])) for i in range(0, 2000, 10)))
    assert np.isfinite(long.log_posterior)
    assert long.log_posterior < -100
    error = np.sqrt(np.diag(short.covariance))
    assert (np.abs(long.theta - short.theta) < 3 * error).all()


@pytest.mark.parametrize("spread", [0.01, 20.0])
def test_steep_and_flat_items_still_reach_the_maximum(spread: float) -> None:
    bank = random_bank(5, n=60, d=3, spread=spread)
    rng = np.random.default_rng(2)
    state = AbilityState.rebuild(bank, ((i, bool(rng.random() < 0.5)) for i in range(60)))
    here = state.log_posterior
    for _ in range(200):
        near = state.theta + rng.normal(0, 1e-3, 3)
        assert float(state.outcomes.log_posterior(near)) <= here + 1e-12


def test_items_in_flight_add_their_expected_information_in_any_order() -> None:
    bank = random_bank(6)
    state = AbilityState.rebuild(bank, [(0, True), (1, False)])
    planned = state.planning([7, 5, 9])
    p = bank.probability(state.theta)
    information = np.linalg.inv(state.covariance)
    for item in (5, 7, 9):
        information = information + p[item] * (1 - p[item]) * np.outer(bank.alpha[item], bank.alpha[item])
    np.testing.assert_allclose(planned, np.linalg.inv(information), atol=1e-10)
    assert planned.tobytes() == state.planning([9, 7, 5]).tobytes()
    assert state.planning([]).tobytes() == state.covariance.tobytes()


def test_duplicates_and_withdrawn_items_are_refused_and_nothing_changes() -> None:
    state = AbilityState.rebuild(random_bank(1), [(4, True)])
    with pytest.raises(StateError, match="'item-4': already has another outcome"):
        state.observe(4, False)
    gone = state.withdraw(2, Withdrawal.UNAVAILABLE, "gold failed").withdraw(3, Withdrawal.UNGRADED, "grader timeout")
    with pytest.raises(StateError, match=r"unavailable \(gold failed\)"):
        gone.observe(2, True)
    with pytest.raises(StateError, match="already has"):
        gone.withdraw(4, Withdrawal.UNGRADED, "")
    with pytest.raises(StateError, match="30 items"):
        gone.observe(30, True)
    with pytest.raises(StateError, match="was not withdrawn"):
        gone.reinstate(4)
    assert gone.theta.tobytes() == state.theta.tobytes()
    assert gone.covariance.tobytes() == state.covariance.tobytes()
    assert (gone.n_population, int(gone.unexecuted.sum()), int(gone.open.sum())) == (29, 28, 27)
    back = gone.reinstate(2).observe(2, True)
    assert back.theta.tobytes() == state.observe(2, True).theta.tobytes()
    assert state.items == (4,)
    assert state.observe(4, True) is state


def test_repeated_trials_of_an_item_weigh_as_so_many_outcomes() -> None:
    bank = random_bank(1)
    state = AbilityState.rebuild(bank, [(4, True)]).observe(7, 2, trials=3)
    one_by_one = Outcomes(
        bank.alpha[[4, 7, 7, 7]],
        bank.beta[[4, 7, 7, 7]],
        np.array([1.0, 1.0, 1.0, 0.0]),
        np.ones(4),
        bank.prior_mean,
        bank.prior_precision,
    )
    np.testing.assert_allclose(one_by_one.gradient(state.theta), 0.0, atol=1e-9)
    assert float(state.evidence.score) == pytest.approx(1 + 2 / 3)
    for passes, trials in ((2, 1), (-1, 1), (0, 0)):
        with pytest.raises(StateError, match="passes in"):
            state.observe(9, passes, trials)
