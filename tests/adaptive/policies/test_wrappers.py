"""Policies over another: cost, balance, cache."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.adaptive import Responses
from harness.adaptive.errors import EngineError
from harness.adaptive.policies import (
    Balanced,
    CostAware,
    DifficultyStrata,
    DOptimal,
    Hedged,
    HistoryCache,
    PassRate,
    Random,
    cache_of,
)

from ..banks import random_bank
from .views import after, order_of, shown

BANK = random_bank(1)


def test_value_per_cost_with_the_median_for_what_is_not_known() -> None:
    cost = np.linspace(1.0, 3.0, 30)
    cost[[4, 9]] = np.nan
    view = shown(after(BANK, [3]))
    policy = CostAware(DOptimal(), cost)
    filled = np.where(np.isnan(cost), np.nanmedian(cost), cost)
    np.testing.assert_allclose(policy.values(view), DOptimal().values(view) / filled)
    assert policy.name == "cost_aware:d_optimal"
    assert policy.notes == (f"2 of 30 items have no known cost; each counts as {np.nanmedian(cost):g}, the median",)
    assert CostAware(DOptimal(), np.ones(30)).notes == ()


@pytest.mark.parametrize(
    ("cost", "said"),
    [
        ([1.0, 0.0], "entry 1 is 0"),
        ([-2.0, 1.0], "entry 0 is -2"),
        ([1.0, np.inf], "entry 1 is inf"),
        ([np.nan, np.nan], "none is known"),
        ([[1.0]], "shape"),
    ],
)
def test_a_cost_that_is_none_is_refused(cost: list[float], said: str) -> None:
    with pytest.raises(EngineError, match=said):
        CostAware(PassRate(), np.array(cost))


def test_an_order_has_no_price() -> None:
    with pytest.raises(EngineError, match="order, not an amount"):
        order_of(BANK, CostAware(DifficultyStrata(5), np.ones(30)), 1)


def test_balanced_follows_the_shares_of_the_suite_at_every_length() -> None:
    groups = tuple("aaab" * 7 + "cc")
    found = order_of(BANK, Balanced(PassRate(), groups), 30)
    for k in range(1, 31):
        for label in "abc":
            count = sum(groups[item] == label for item in found[:k])
            assert abs(count - k * groups.count(label) / 30) < 2
    view = shown(after(BANK, []))
    best = [i for i in range(30) if groups[i] == "a"]
    assert found[0] == best[int(np.argmax(PassRate().values(view)[best]))]


def test_quotas_are_met_and_a_group_that_is_used_up_gives_way() -> None:
    groups = tuple("a" * 26 + "b" * 4)
    found = order_of(BANK, Balanced(DOptimal(), groups, {"a": 1, "b": 3}), 12)
    labels = [groups[item] for item in found]
    assert labels[:4].count("b") == 3
    assert labels.count("b") == 4


@given(picked=st.lists(st.integers(0, 29), max_size=12, unique=True))
def test_balanced_always_chooses_from_a_group_furthest_behind(picked: list[int]) -> None:
    groups = np.array(list("aabbc" * 6))
    view = shown(after(BANK, picked))
    values = Balanced(DOptimal(), tuple(groups)).values(view)
    assert np.isfinite(values).all()
    chosen = groups[np.argmax(np.where(view.pool, values, -np.inf))]
    share = {label: np.mean(groups == label) for label in "abc"}
    deficit = {g: share[g] - np.mean(groups[picked] == g) if picked else share[g] for g in share}
    left = {g for g in share if (view.pool & (groups == g)).any()}
    assert deficit[chosen] == pytest.approx(max(deficit[g] for g in left))


@pytest.mark.parametrize(
    ("quotas", "said"),
    [({"a": 1.0}, "'b' is without"), ({"a": 1, "b": 1, "c": 1}, "'c' is no group"), ({"a": -1, "b": 2}, "shares ≥ 0")],
)
def test_quotas_that_make_no_sense_are_refused(quotas: dict[str, float], said: str) -> None:
    with pytest.raises(EngineError, match=said):
        Balanced(DOptimal(), ("a", "b"), quotas)


def test_over_random_the_order_is_random_within_the_restriction() -> None:
    groups = tuple("ab" * 15)
    policy = Balanced(Random(), groups)
    assert policy.random_share == 0.0
    orders = {tuple(order_of(BANK, policy, 6, seed)) for seed in range(8)}
    assert len(orders) == 8
    assert all(sum(groups[item] == "a" for item in order) == 3 for order in orders)
    assert Balanced(Hedged(PassRate(), 0.2), groups).random_share == 0.2


def test_the_cache_is_the_window_of_the_paper() -> None:
    """Eight runs: two too old, one of the day itself, five in the window."""
    dates = ("2026-05-01", "2026-05-02", *(f"2026-05-0{day}" for day in range(4, 9)), "2026-05-10")
    passes = np.zeros((8, 4))
    passes[:, 0] = 1
    passes[:2, 1] = 1  # passed only before the window
    passes[2:6, 2] = 1  # 4 of 5 in it
    passes[-1] = [0, 1, 0, 1]
    trials = np.ones((8, 4))
    trials[4, 3] = 0  # 4 trials
    history = Responses(tuple(f"r{i}" for i in range(8)), ("a", "b", "c", "d"), passes * trials, trials, dates)
    tight = cache_of(history, "2026-05-10", 0.0)
    np.testing.assert_array_equal(tight.trials, [5, 5, 5, 4])
    np.testing.assert_array_equal(tight.verdict, [1, 0, np.nan, np.nan])
    np.testing.assert_array_equal(cache_of(history, "2026-05-10", 0.2).verdict, [1, 0, 1, np.nan])
    np.testing.assert_array_equal(cache_of(history, "2026-05-10", 0.19).verdict, [1, 0, np.nan, np.nan])
    np.testing.assert_array_equal(cache_of(history, "2026-05-10T23:00:00", 0.5, least_trials=4).verdict, [1, 0, 1, 0])
    with pytest.raises(EngineError, match="between 0 and"):
        cache_of(history, "2026-05-10", 0.6)
    with pytest.raises(EngineError, match="no dates"):
        cache_of(Responses(history.run_ids, history.item_ids, history.passes, history.trials), "2026-05-10", 0.1)
    with pytest.raises(EngineError, match="'tomorrow' is no date"):
        cache_of(history, "tomorrow", 0.1)


@pytest.mark.parametrize("base", [PassRate(), Random(), DifficultyStrata(8)], ids=lambda p: p.name)
def test_cached_items_come_last_in_the_order_of_the_base(base: PassRate | Random | DifficultyStrata) -> None:
    verdict = np.full(30, np.nan)
    verdict[::3] = 1.0
    found = order_of(BANK, HistoryCache(base, verdict), 30)
    assert set(found[20:]) == set(range(0, 30, 3))
    with pytest.raises(EngineError, match=r"entry 0 is 0\.5"):
        HistoryCache(base, np.array([0.5]))
