"""The interval for peeking: it holds at every moment at once, whatever the model and the policy."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from harness.adaptive import AbilityState, Withdrawal
from harness.adaptive.errors import EngineError
from harness.adaptive.estimators import PosteriorPredictive, anytime_bounds, anytime_estimate_of
from harness.adaptive.policies import policy_named

from ..banks import random_bank
from .finite import agent, played, unrecorded

N, RUNS = 60, 120
BANK = random_bank(3, n=N, d=2)
RIGHT = (np.random.default_rng(0).random(N) < 1 / (1 + np.exp(BANK.beta))).astype(float)
WRONG = 1.0 - RIGHT


@pytest.mark.parametrize("policy", ["random", "pass_rate+0.5"])
@pytest.mark.parametrize("outcomes", [RIGHT, WRONG], ids=["right", "wrong"])
@pytest.mark.parametrize("assisted", [True, False])
def test_it_covers_at_every_moment_at_once(policy: str, outcomes: np.ndarray, assisted: bool) -> None:
    """The bounds are intersected over time, so a run whose last interval holds the truth had it in all."""
    truth = outcomes.mean()
    evidence = played(BANK, outcomes, policy_named(policy), 45, range(RUNS), in_flight=2)
    missed = 0
    for run in range(RUNS):
        lower, upper = anytime_bounds(agent(evidence, run), 0.8, assisted)
        missed += not lower - 1e-9 <= truth <= upper + 1e-9
    assert missed <= 0.2 * RUNS + 3 * math.sqrt(0.16 * RUNS)


def test_it_shrinks_with_every_outcome_and_ends_exact() -> None:
    last = (0.0, 1.0)
    for k in (5, 20, 40, 55, 60):
        evidence = played(BANK, RIGHT, policy_named("random"), k, [3])
        lower, upper = anytime_bounds(agent(evidence, 0), 0.9)
        assert last[0] - 1e-9 <= lower <= upper <= last[1] + 1e-9
        last = lower, upper
    assert last == pytest.approx((RIGHT.mean(), RIGHT.mean()))
    big = random_bank(4, n=400, d=1)
    rates = (np.random.default_rng(1).random(400) < 0.5).astype(float)
    lower, upper = anytime_bounds(agent(played(big, rates, policy_named("random"), 150, [0]), 0), 0.9)
    assert upper - lower < 0.2 < 250 / 400


def test_a_right_model_narrows_it() -> None:
    sharp = replace(random_bank(4, n=300, d=1), beta=np.where(np.arange(300) < 150, -2.5, 2.5))
    outcomes = (np.random.default_rng(1).random(300) < sharp.probability(sharp.prior_mean)).astype(float)
    evidence = agent(played(sharp, outcomes, policy_named("random"), 120, [0]), 0)
    with_model, without = (np.diff(anytime_bounds(evidence, 0.9, assisted))[0] for assisted in (True, False))
    assert with_model < 0.8 * without


def test_nothing_drawn_leaves_what_the_outcomes_allow() -> None:
    evidence = unrecorded(agent(played(BANK, RIGHT, policy_named("random"), 20, [0]), 0))
    passes = float(evidence.score)
    assert anytime_bounds(evidence) == pytest.approx((passes / N, (passes + 40) / N))
    assert anytime_bounds(AbilityState.start(BANK).evidence) == (0.0, 1.0)


def test_items_of_unknown_outcome_widen_it() -> None:
    evidence = agent(played(BANK, RIGHT, policy_named("random"), 40, [0]), 0)
    whole = anytime_bounds(evidence, 0.9)
    lost = 4  # outcomes of the middle of the run that never came
    kept = np.array([at for at in range(40) if not 10 <= at < 10 + lost])
    names = ("items", "passes", "trials", "probability", "pool", "random")
    rest = evidence.rest.copy()
    rest[evidence.items[10 : 10 + lost]] = True
    thinner = replace(evidence, rest=rest, **{name: getattr(evidence, name)[kept] for name in names})
    found = anytime_bounds(thinner, 0.9)
    assert found[1] - found[0] > whole[1] - whole[0]


def test_rates_of_several_trials_are_taken() -> None:
    evidence = agent(played(BANK, RIGHT, policy_named("random"), 30, [0]), 0)
    several = replace(evidence, passes=evidence.passes * 2 + 1, trials=evidence.trials * 4)
    lower, upper = anytime_bounds(several, 0.9)
    assert 0 <= lower < (2 * RIGHT.mean() + 1) / 4 < upper <= 1


def test_as_an_estimate() -> None:
    evidence = agent(played(BANK, WRONG, policy_named("random"), 40, [0]), 0)
    found = anytime_estimate_of(PosteriorPredictive(), evidence, 0.9)
    assert (found.lower, found.upper) == anytime_bounds(evidence, 0.9)
    assert found.lower <= found.value <= found.upper
    assert (found.method, found.level, found.executed) == ("posterior_predictive, anytime", 0.9, 40)
    with pytest.raises(EngineError, match="level"):
        anytime_estimate_of(PosteriorPredictive(), evidence, 1.0)
    empty = AbilityState.start(BANK)
    for item in range(N):
        empty = empty.withdraw(item, Withdrawal.UNAVAILABLE, "gold failed")
    assert math.isnan(anytime_estimate_of(PosteriorPredictive(), empty.evidence).lower)
