"""One agent's choice against that of many by the same rules, and what is in its record."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.adaptive import AbilityState
from harness.adaptive.arrays import FloatArray
from harness.adaptive.errors import EngineError
from harness.adaptive.policies import Hedged, View
from harness.adaptive.selection import Lot, Offer, drawable, pick, select, view_of

from .banks import random_bank


class Given:
    """A policy with these values."""

    name = "given"
    random_share = 0.0

    def __init__(self, values: FloatArray) -> None:
        self._values = values

    def values(self, view: View) -> FloatArray:
        return self._values


@given(st.integers(0, 2**31), st.integers(0, 12), st.sampled_from([0.0, 0.3, 1.0]))
@settings(max_examples=80, deadline=None)
def test_one_agents_choice_is_that_of_the_rules_for_many(seed: int, executed: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    bank = random_bank(seed % 20)
    order = rng.permutation(30)
    state = AbilityState.rebuild(bank, [(int(at), bool(rng.random() < 0.5)) for at in order[:executed]])
    pending = tuple(int(at) for at in order[executed : executed + 3])
    values = rng.integers(-2, 3, 30) * (1.0 + rng.integers(0, 2, 30) * 1e-14)  # many ties, some but for rounding
    lot = Lot.of(seed, bank.item_ids)
    choice = select(Hedged(Given(values), share), state, pending, lot)
    open_to_draw = drawable(state, pending)
    pool = view_of(state, pending, lot.ties).pool
    step = np.asarray(executed + 3)
    expected = pick(Offer(values, pool, open_to_draw, lot.ties, lot.order), lot.is_draw(step, share), share)
    assert (choice.index, choice.draw.probability, choice.draw.pool) == (
        int(expected.item),
        float(expected.probability),
        int(expected.open),
    )
    ranked = [candidate.index for candidate in choice.candidates]
    assert ranked[0] == int(expected.best)
    others = sorted((at for at in np.flatnonzero(pool) if at != ranked[0]), key=lambda at: (-values[at], at))
    assert ranked[1:] == others[: len(ranked) - 1]


def test_no_more_candidates_than_items_left() -> None:
    bank = random_bank(1)
    state = AbilityState.rebuild(bank, [(at, True) for at in range(27)])
    choice = select(Given(np.arange(30.0)), state, (28,), Lot.of(0, bank.item_ids))
    assert [candidate.index for candidate in choice.candidates] == [29, 27]
    assert choice.pool == 2


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_none_matters_in_the_pool_alone(bad: float) -> None:
    bank = random_bank(1)
    state = AbilityState.rebuild(bank, [(4, True)])
    values = np.arange(30.0)
    values[4] = bad
    lot = Lot.of(0, bank.item_ids)
    assert select(Given(values), state, (), lot).index == 29
    values[5] = bad
    with pytest.raises(EngineError, match="given"):
        select(Given(values), state, (), lot)
    assert select(Given(np.full(30, 1e200)), state, (), lot).value == 1e200
