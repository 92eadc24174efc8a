"""Bounds, tipping points, transitions, reversals, coverage, effects."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.stats import (
    Counts,
    Interval,
    StatsError,
    coverage_by_stratum,
    identified,
    identified_difference,
    reversals,
    tipping_point,
    transitions,
    two_way_effects,
    valid_share,
)

counts = st.integers(1, 60).flatmap(
    lambda n: st.integers(0, n).flatmap(
        lambda passed: st.integers(0, n - passed).map(lambda open_: Counts(n, passed, open_))
    )
)


@given(counts, counts, st.data())
def test_whatever_the_missing_grades_are_the_truth_lies_inside(a: Counts, b: Counts, data: st.DataObject) -> None:
    rates = []
    for side in (a, b):
        recovered = data.draw(st.integers(0, side.unresolved))
        rates.append((side.passed + recovered) / side.planned)
        assert identified(side).holds(rates[-1])
    difference = identified_difference(a, b)
    assert difference.lower - 1e-12 <= rates[0] - rates[1] <= difference.upper + 1e-12
    assert identified_difference(b, a).lower == pytest.approx(-difference.upper)


@given(counts, counts, st.floats(0, 1))
def test_at_the_tipping_point_the_sides_are_equal(a: Counts, b: Counts, b_rate: float) -> None:
    point = tipping_point(a, b, b_rate)
    share_b = (b.passed + b_rate * b.unresolved) / b.planned
    assert (a.passed + point.passes) / a.planned == pytest.approx(share_b)
    if point.feasible:
        assert point.ahead in ("", "tie")
    else:
        assert point.ahead == ("a" if a.passed / a.planned > share_b else "b")
    to_lead = point.passes_to_lead
    if to_lead is not None:
        assert 0 <= to_lead <= a.unresolved
        assert (a.passed + to_lead) / a.planned > share_b
        assert to_lead == 0 or (a.passed + to_lead - 1) / a.planned <= share_b + 1e-9
    else:
        assert (a.passed + a.unresolved) / a.planned <= share_b + 1e-9


@pytest.mark.parametrize("bad", [(0, 0, 0), (10, 11, 0), (10, 6, 5), (10, -1, 0), (10, 3, -1)])
def test_counts_that_contradict_each_other_are_refused(bad: tuple[int, int, int]) -> None:
    with pytest.raises(StatsError):
        Counts(*bad)


def test_other_nonsense_is_refused() -> None:
    with pytest.raises(StatsError):
        valid_share(10, 5, 6)
    with pytest.raises(StatsError):
        tipping_point(Counts(3, 1), Counts(3, 1), 1.5)
    with pytest.raises(StatsError):
        Interval(1.0, 0.0)
    with pytest.raises(StatsError):
        Interval(math.nan, 0.0)
    with pytest.raises(StatsError, match="outcome lies in"):
        transitions([0, 2], [0, 1])
    with pytest.raises(StatsError, match="outcomes 0 and 1"):
        transitions([0.5], [1])


def test_transitions_leave_out_missing_pairs_and_say_so() -> None:
    table = transitions([0, 0, 1, 1, np.nan, 1], [0, 1, 0, 1, 1, np.nan])
    assert (table.n00, table.n01, table.n10, table.n11, table.missing) == (1, 1, 1, 1, 2)
    assert (table.net, table.churn) == (0, 0.5)
    nothing = transitions([np.nan], [1])
    assert (nothing.net, nothing.churn, nothing.missing) == (None, None, 1)


@given(st.integers(0, 12).flatmap(lambda n: st.tuples(*[st.lists(st.integers(0, 5), min_size=n, max_size=n)] * 2)))
def test_reversals_agree_with_counting_by_hand(two: tuple[list[int], list[int]]) -> None:
    old, new = two
    pairs = [(i, j) for i in range(len(old)) for j in range(i)]
    strict = sum((old[i] - old[j]) * (new[i] - new[j]) < 0 for i, j in pairs)
    entered = sum(old[i] != old[j] and new[i] == new[j] for i, j in pairs)
    left = sum(old[i] == old[j] and new[i] != new[j] for i, j in pairs)
    found = reversals(old, new)
    assert (found.pairs, found.reversed, found.ties_entered, found.ties_left) == (len(pairs), strict, entered, left)
    back = reversals(new, old)
    assert (back.reversed, back.ties_entered, back.ties_left) == (strict, left, entered)


def test_ties_by_shown_digits_and_missing_units_are_counted() -> None:
    assert reversals([0.241, 0.243], [0.3, 0.2]).reversed == 1
    shown = reversals([0.241, 0.243], [0.3, 0.2], decimals=2)
    assert (shown.reversed, shown.ties_left) == (0, 1)
    assert reversals([0.1 + 0.2, 0.3], [1, 2]).ties_left == 1  # a tie but for rounding
    some = reversals([1, 2, np.nan], [2, 1, 0])
    assert (some.units, some.pairs, some.left_out) == (2, 1, 1)
    assert reversals([], []).share is None


def test_a_cell_that_is_missing_leaves_holes_and_nothing_else() -> None:
    effects = two_way_effects(0.4, 0.46, None, 0.49)
    assert effects.grader_first == pytest.approx((0.06, 0.03))
    assert (effects.data_first, effects.interaction) == ((None, None), None)
    assert two_way_effects(None, None, None, 1.0).total is None


def test_coverage_by_stratum() -> None:
    read, write = coverage_by_stratum(["read", "write", "read", "read"], [1, 0, np.nan, np.nan])
    assert (read.stratum, read.planned, read.graded, read.rate) == ("read", 3, 1, 1.0)
    assert read.coverage == pytest.approx(1 / 3)
    assert read.bounds == Interval(1 / 3, 1.0)
    assert (write.coverage, write.bounds) == (1.0, Interval(0.0, 0.0))
    (none,) = coverage_by_stratum([None], [np.nan])
    assert (none.rate, none.bounds) == (None, Interval(0.0, 1.0))
    with pytest.raises(StatsError, match="2 strata"):
        coverage_by_stratum(["a", "b"], [1])
