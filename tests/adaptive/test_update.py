"""The update of one agent against that of many, from near, from afar, and with repeated trials."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.adaptive import AbilityState, Bank
from harness.adaptive.ability import Outcomes, maximise
from harness.adaptive.update import Seen, predicted, settled

from .banks import random_bank


def observed(bank: Bank, seed: int, count: int, trials: int) -> tuple[Seen, Outcomes]:
    """Random outcomes on the first `count` items, in both forms."""
    rng = np.random.default_rng(seed)
    tried = rng.integers(1, trials + 1, count)
    passes = rng.integers(0, tried + 1)
    seen = Seen.nothing(bank.d)
    for at in range(count):
        seen = seen.with_outcome(bank.alpha[at], bank.beta[at], int(passes[at]), int(tried[at]))
    return seen, Outcomes(
        bank.alpha[:count],
        bank.beta[:count],
        passes.astype(np.float64),
        tried.astype(np.float64),
        bank.prior_mean,
        bank.prior_precision,
    )


@given(st.integers(0, 2**31), st.integers(1, 5), st.integers(1, 30), st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_one_agent_ends_where_many_do(seed: int, d: int, count: int, trials: int) -> None:
    bank = random_bank(seed % 100, d=d)
    seen, outcomes = observed(bank, seed, count, trials)
    best = maximise(bank.prior_mean, outcomes)
    found = settled(best + 0.02 * np.random.default_rng(seed).normal(size=d), seen, bank)
    assert found is not None
    theta, covariance = found
    np.testing.assert_allclose(theta, best, atol=1e-11)
    np.testing.assert_allclose(covariance @ outcomes.information(best), np.eye(d), atol=1e-8)
    assert np.array_equal(covariance, covariance.T)


def test_both_forms_of_the_outcomes_are_the_same_to_the_bit() -> None:
    bank = random_bank(5)
    seen, expected = observed(bank, 1, 20, 4)
    found = seen.outcomes(bank)
    for name in ("loadings", "offsets", "passes", "trials", "mean", "precision"):
        assert np.array_equal(getattr(found, name), getattr(expected, name))


def test_the_prediction_is_newtons_step_from_the_maximum_before() -> None:
    bank = random_bank(4)
    state = AbilityState.rebuild(bank, [(at, at % 3 > 0) for at in range(12)])
    seen = state.seen.with_outcome(bank.alpha[20], bank.beta[20], 1, 3)
    after = Outcomes(
        bank.alpha[[*range(12), 20]],
        bank.beta[[*range(12), 20]],
        np.array([*state.passes, 1.0]),
        np.array([*state.trials, 3.0]),
        bank.prior_mean,
        bank.prior_precision,
    )
    np.testing.assert_allclose(
        predicted(state.theta, state.covariance, seen), state.theta + after.newton_step(state.theta), atol=1e-9
    )


def test_from_afar_the_quick_steps_give_up_and_the_state_is_exact_all_the_same() -> None:
    """Steep items against a wide prior: a full step overshoots by far."""
    bank = random_bank(2, n=12, d=2)
    bank = replace(bank, alpha=bank.alpha * 30.0, prior_covariance=np.eye(2) * 100.0)
    outcomes = [(at, at % 2 == 0) for at in range(12)]
    given_up, state = 0, AbilityState.start(bank)
    for item, passed in outcomes:
        seen = state.seen.with_outcome(bank.alpha[item], bank.beta[item], passed, 1)
        given_up += settled(predicted(state.theta, state.covariance, seen), seen, bank) is None
        state = state.observe(item, passed)
        gradient = state.outcomes.gradient(state.theta)
        assert np.abs(state.covariance @ gradient).max() < 1e-9 * (1 + np.abs(state.theta).max())
    assert given_up > 0


def test_an_earlier_state_stays_as_it_was_and_may_go_another_way() -> None:
    bank = random_bank(3)
    early = AbilityState.rebuild(bank, [(0, True), (1, False)])
    columns, theta = early.seen.columns.copy(), early.theta.copy()
    early.observe(2, True).observe(3, True)
    other = early.observe(5, False)
    assert np.array_equal(early.seen.columns, columns)
    assert np.array_equal(early.theta, theta)
    straight = AbilityState.rebuild(bank, [(0, True), (1, False), (5, False)])
    assert other.theta.tobytes() == straight.theta.tobytes()
    assert np.flatnonzero(other.executed).tolist() == [0, 1, 5]


@pytest.mark.parametrize("trials", [1, 3])
def test_a_column_holds_half_logits_and_signed_counts(trials: int) -> None:
    seen = Seen.nothing(2).with_outcome(np.array([1.0, -2.0]), 3.0, 1, trials)
    assert seen.columns[:, 0].tolist() == [0.5, -1.0, -1.5, 2 - trials, trials]
    assert seen.single == (trials == 1)
