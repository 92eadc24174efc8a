"""Policies against their definitions, ties, the pool's rules."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from harness.adaptive import AbilityState, AdaptiveEngine, Choice, EngineSettings, PIrt, policy_named, prior_bank
from harness.adaptive.errors import EngineError
from harness.adaptive.estimators import estimator_named
from harness.adaptive.policies import POLICIES, DOptimal, Hedged, PassRate, Random, View
from harness.adaptive.selection import Lot, select, view_of

from .banks import random_bank


def shown(state: AbilityState, pending: tuple[int, ...] = ()) -> View:
    return view_of(state, pending, Lot.of(0, state.bank.item_ids).ties)


def test_d_optimal_value_is_the_gain_in_log_determinant() -> None:
    bank = random_bank(2)
    state = AbilityState.rebuild(bank, [(0, True), (5, False), (9, True)])
    view = shown(state, (3, 4))
    values = DOptimal().values(view)
    information = np.linalg.inv(view.covariance)
    for item in np.flatnonzero(view.pool):
        more = information + view.weight[item] * np.outer(bank.alpha[item], bank.alpha[item])
        gain = np.linalg.slogdet(more)[1] - np.linalg.slogdet(information)[1]
        assert np.log1p(values[item]) == pytest.approx(gain, abs=1e-9)


def test_pass_rate_value_is_the_drop_of_variance_of_the_linearised_total() -> None:
    bank = random_bank(2)
    state = AbilityState.rebuild(bank, [(0, True), (5, False), (9, True)])
    view = shown(state, (3,))
    values = PassRate().values(view)
    rest = [i for i in range(30) if i not in {0, 5, 9, 3}]
    w = view.weight
    # The joint covariance of the outcomes of the rest, to first order in θ.
    joint = (w[rest, None] * bank.alpha[rest]) @ view.covariance @ (w[rest, None] * bank.alpha[rest]).T + np.diag(
        w[rest]
    )
    for item in np.flatnonzero(view.pool):
        at = rest.index(int(item))
        assert values[item] == pytest.approx(joint[at].sum() ** 2 / joint[at, at], rel=1e-9)


def test_the_weight_is_what_is_expected_once_the_items_in_flight_are_back() -> None:
    bank = random_bank(2, n=60)
    state = AbilityState.rebuild(bank, [(0, True), (5, False), (9, True)])
    alone = shown(state)
    assert alone.preposterior is None
    assert np.array_equal(alone.weight, alone.probability * (1 - alone.probability))
    view = shown(state, tuple(range(20, 28)))
    assert view.preposterior is not None
    assert np.linalg.eigvalsh(view.preposterior).min() > -1e-12
    moved = np.random.default_rng(1).multivariate_normal(state.theta, view.preposterior, 40_000)
    p = bank.probability(moved)
    np.testing.assert_allclose(view.weight, (p * (1 - p)).mean(axis=0), atol=0.006)
    assert np.abs(view.weight - alone.weight).max() > 0.02


def test_pass_rate_ignores_what_nothing_unexecuted_depends_on() -> None:
    bank = random_bank(2, n=20, d=2)
    alpha = np.zeros((20, 2))
    alpha[:19, 0], alpha[19, 1] = 1.0, 3.0
    bank = replace(bank, alpha=alpha, beta=np.zeros(20), prior_mean=np.zeros(2), prior_covariance=np.eye(2))
    state = AbilityState.start(bank)
    lot = Lot.of(0, bank.item_ids)
    assert select(DOptimal(), state, (), lot).index == 19
    assert select(PassRate(), state, (), lot).index != 19


def test_random_is_uniform_over_seeds_and_ignores_outcomes() -> None:
    names = [f"item-{i}" for i in range(8)]
    bank = prior_bank(names)
    first = [AdaptiveEngine(bank, EngineSettings(policy=Random(), seed=seed)).next() for seed in range(1600)]
    counts = np.bincount([choice.index for choice in first if isinstance(choice, Choice)], minlength=8)
    assert counts.sum() == 1600
    assert ((counts - 200) ** 2 / 200).sum() < 24.3  # χ², 7 degrees of freedom, 0.1 %
    orders = []
    for passed in (True, False):
        engine = AdaptiveEngine(bank, EngineSettings(policy=Random(), seed=4))
        order = []
        while isinstance(step := engine.next(), Choice):
            engine.observe(step.item, passed)
            order.append(step.item)
        orders.append(order)
    assert orders[0] == orders[1]
    assert sorted(orders[0]) == sorted(names)


def test_ties_are_broken_by_seed_and_not_by_position() -> None:
    bank = prior_bank([f"item-{i}" for i in range(50)])
    first = {AdaptiveEngine(bank, EngineSettings(seed=seed)).next().index for seed in range(40)}  # type: ignore[union-attr]
    assert len(first) > 15
    one, two = (AdaptiveEngine(bank, EngineSettings(seed=9)).next() for _ in range(2))
    assert one == two


def test_prior_only_items_wait_until_no_calibrated_one_is_left() -> None:
    """CASES S06."""
    calibrated = np.ones(30, dtype=bool)
    calibrated[[1, 2]] = False
    bank = replace(random_bank(1), calibrated=calibrated)
    for policy in [policy for policy in POLICIES if policy.random_share == 0]:
        engine = AdaptiveEngine(bank, EngineSettings(policy=policy, seed=3))
        order = []
        while isinstance(step := engine.next(), Choice):
            engine.observe(step.item, step.index % 3 == 0)
            order.append(step.index)
        assert set(order[-2:]) == {1, 2}


def test_the_record_of_a_choice_is_ranked_and_complete() -> None:
    state = AbilityState.rebuild(random_bank(1), [(0, True), (3, False)])
    choice = select(DOptimal(), state, (7, 5), Lot.of(11, state.bank.item_ids), top=4)
    view = shown(state, (5, 7))
    values = DOptimal().values(view)[view.pool]
    assert [c.value for c in choice.candidates] == sorted(values, reverse=True)[:4]
    assert (choice.item, choice.index, choice.value) == (
        choice.candidates[0].item,
        choice.candidates[0].index,
        choice.candidates[0].value,
    )
    assert (choice.executed, choice.pool, choice.pending, choice.seed) == (2, 26, ("item-5", "item-7"), 11)
    assert choice.theta == tuple(state.theta)
    expected = np.linalg.slogdet(np.linalg.inv(state.planning((5, 7))))[1]
    assert choice.logdet_information == pytest.approx(expected, abs=1e-9)


def test_a_policy_of_ones_own_works_and_a_broken_one_is_named() -> None:
    class Hardest:
        name = "hardest"
        random_share = 0.0

        def values(self, view: View) -> np.ndarray:
            return np.array(view.bank.beta)

    class Broken:
        name = "broken"
        random_share = 0.0

        def values(self, view: View) -> np.ndarray:
            return np.full(len(view.bank), np.nan)

    bank = random_bank(1)
    choice = AdaptiveEngine(bank, EngineSettings(policy=Hardest())).next()
    assert isinstance(choice, Choice)
    assert choice.index == int(np.argmax(bank.beta))
    with pytest.raises(EngineError, match="'broken'"):
        AdaptiveEngine(bank, EngineSettings(policy=Broken())).next()


def test_names_find_their_parts() -> None:
    assert [policy_named(policy.name) for policy in POLICIES] == list(POLICIES)
    assert estimator_named("p_irt") == PIrt()
    assert policy_named("pass_rate+0.25") == Hedged(PassRate(), 0.25)
    with pytest.raises(EngineError, match="d_optimal, pass_rate, random"):
        policy_named("best")
    with pytest.raises(EngineError, match="NAME\\+SHARE"):
        policy_named("pass_rate+much")
    with pytest.raises(EngineError, match="between 0 and 1"):
        policy_named("pass_rate+2")


def test_a_hedged_step_is_drawn_as_often_as_declared_and_says_its_probability() -> None:
    bank = random_bank(1)
    choices = []
    for seed in range(400):
        engine = AdaptiveEngine(bank, EngineSettings(policy=policy_named("d_optimal+0.3"), seed=seed))
        engine.observe("item-4", True)
        choice = engine.next()
        assert isinstance(choice, Choice)
        choices.append(choice)
    drawn = [choice for choice in choices if choice.draw.random]
    assert 85 <= len(drawn) <= 155  # 120 ± 3.8 standard deviations
    best = {choice.candidates[0].index for choice in choices}
    assert len(best) == 1
    for choice in choices:
        at_best = choice.index in best
        assert choice.draw.pool == 29
        assert choice.draw.probability == pytest.approx(0.3 / 29 + 0.7 * at_best)
        assert choice.draw.random or at_best
    assert len({choice.index for choice in drawn}) > 20
    with pytest.raises(EngineError, match="posterior_predictive"):
        estimator_named("best")
