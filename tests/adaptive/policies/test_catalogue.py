"""Policies by name, with and without what is known of the items; every one broadcasts over agents."""

from __future__ import annotations

import numpy as np
import pytest

from harness.adaptive.errors import EngineError
from harness.adaptive.policies import POLICIES, Hedged, ItemTraits, MidRange, Policy, policy_for, policy_named

from ..banks import random_bank
from .views import after, order_of, shown, together

BANK = random_bank(7, n=30, d=2)
RNG = np.random.default_rng(1)
TRAITS = ItemTraits(
    pass_rate=RNG.random(30),
    cost_usd=RNG.lognormal(size=30),
    duration_s=RNG.lognormal(size=30),
    groups=tuple(RNG.choice(list("abc"), 30).tolist()),
    verdict=np.where(RNG.random(30) < 0.2, 1.0, np.nan),
    tasks=9,
)
NAMES = [
    *(policy.name for policy in POLICIES),
    "difficulty_strata:9",
    "cost_aware:d_optimal",
    "time_aware:pass_rate",
    "balanced:rasch_fisher",
    "history_cache:random",
    "balanced:history_cache:cost_aware:pass_rate",
]


@pytest.mark.parametrize("name", NAMES)
def test_every_name_gives_its_policy_alone_and_hedged(name: str) -> None:
    policy = policy_for(name, BANK, TRAITS)
    assert policy.name == name
    hedged = policy_for(f"{name}+0.25", BANK, TRAITS)
    assert isinstance(hedged, Hedged)
    assert (hedged.name, hedged.random_share) == (f"{name}+0.25", 0.25)
    assert len(set(order_of(BANK, hedged, 30))) == 30


@pytest.mark.parametrize("name", NAMES)
def test_several_agents_at_once_get_what_each_gets_alone(name: str) -> None:
    policy: Policy = policy_for(name, BANK, TRAITS)
    states = [after(BANK, items) for items in ([], [3, 4], [10, 2, 29, 7], range(25))]
    pending: list[tuple[int, ...]] = [(), (1,), (), (28,)]
    views = [shown(state, busy, seed) for seed, (state, busy) in enumerate(zip(states, pending, strict=True))]
    alone = np.stack([policy.values(view) for view in views])
    both = policy.values(together(views))
    assert both.shape == (4, 30)
    assert np.isfinite(both).all()
    np.testing.assert_allclose(both, alone, rtol=1e-9, atol=1e-12)


def test_names_without_a_part_take_the_usual_one() -> None:
    assert policy_for("cost_aware", BANK, TRAITS).name == "cost_aware:pass_rate"
    assert policy_for("difficulty_strata", BANK, TRAITS).name == "difficulty_strata:9"
    assert policy_named("difficulty_strata:200").name == "difficulty_strata:200"
    found = policy_for("mid_range", BANK, TRAITS)
    assert isinstance(found, MidRange)
    assert found.pass_rate is TRAITS.pass_rate


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("best", "difficulty_strata, cost_aware, time_aware, balanced, history_cache"),
        ("cost_aware", "no cost_usd"),
        ("time_aware:d_optimal", "no duration_s"),
        ("balanced", "no groups"),
        ("history_cache:random+0.1", "no verdict"),
        ("difficulty_strata", "number of tasks is not known"),
        ("difficulty_strata:many", "'many' is no number"),
        ("cost_aware:best", "no policy 'best'"),
        ("d_optimal:3", "no policy 'd_optimal:3'"),
        ("pass_rate+much", "NAME\\+SHARE"),
        ("difficulty_strata:0", "at least one task"),
    ],
)
def test_what_a_name_needs_is_told(name: str, said: str) -> None:
    with pytest.raises(EngineError, match=said):
        policy_for(name, BANK, ItemTraits())
    with pytest.raises(EngineError, match=said):
        policy_named(name)


def test_traits_are_one_per_item() -> None:
    with pytest.raises(EngineError, match="lengths"):
        ItemTraits(pass_rate=np.zeros(3), groups=("a",))
    with pytest.raises(EngineError, match="3 entries for 30 items"):
        policy_for("random", BANK, ItemTraits(pass_rate=np.zeros(3)))
