"""Every worked number of the paper on silent instrument errors (SOURCES S2), through the public API."""

from __future__ import annotations

import numpy as np
import pytest

from harness.stats import (
    Counts,
    Interval,
    Transitions,
    break_even,
    identified,
    identified_difference,
    reversals,
    tipping_point,
    two_way_effects,
    valid_share,
)

A, B = Counts(100, 30, 50), Counts(100, 43, 2)


def test_identification_intervals() -> None:
    assert identified(A) == Interval(0.30, 0.80)
    assert identified(B) == Interval(0.43, 0.45)
    difference = identified_difference(A, B)
    assert (difference.lower, difference.upper) == pytest.approx((-0.15, 0.37))
    assert difference.holds(0.0)
    assert identified(A).holds(0.44)  # what the example's full grading gives both
    assert identified(B).holds(0.44)


def test_the_tipping_point_is_14_of_50() -> None:
    point = tipping_point(A, B, b_rate=0.5)
    assert point.rate == pytest.approx(0.28)
    assert point.passes == pytest.approx(14)
    assert point.feasible
    assert (point.passes_to_lead, point.ahead) == (15, "")


def test_the_two_decompositions_and_their_interaction() -> None:
    effects = two_way_effects(0.40, 0.46, 0.37, 0.49)
    assert effects.total == pytest.approx(0.09)
    assert effects.grader_first == pytest.approx((0.06, 0.03))
    assert effects.data_first == pytest.approx((0.12, -0.03))  # (grader's share, data's share): −0.03 and then 0.12
    assert effects.interaction == pytest.approx(0.06)


def test_churn_is_9_625_percent() -> None:
    table = Transitions(n00=300, n01=40, n10=37, n11=423)
    assert table.n == 800
    assert table.churn == 0.09625
    assert table.net == pytest.approx(3 / 800)


@pytest.mark.parametrize(("units", "swapped", "pairs", "percent"), [(27, 48, 351, 13.7), (17, 4, 136, 2.9)])
def test_reversals_have_all_pairs_as_denominator(units: int, swapped: int, pairs: int, percent: float) -> None:
    old = np.arange(units, dtype=float)
    new = old.copy()
    for _ in range(swapped):  # each swap of neighbours in order adds one inversion
        at = next(i for i in range(units - 1) if new[i] < new[i + 1])
        new[[at, at + 1]] = new[[at + 1, at]]
    found = reversals(old, new)
    assert (found.pairs, found.reversed) == (pairs, swapped)
    assert found.share is not None
    assert round(100 * found.share, 1) == percent


def test_valid_episodes_and_the_planned_set() -> None:
    found = valid_share(planned=50, valid=40, passed=28)
    assert found.rate == 0.70
    assert found.bounds == Interval(0.56, 0.76)
    assert found.bounds.holds(0.62)  # a peer at 62 % on the planned set is not surely behind


def test_break_even_prices() -> None:
    right = break_even(0.08, 40 - 30)
    wrong = break_even(0.03, 80 - 30)
    assert right.value == pytest.approx(0.008)
    assert wrong.value == pytest.approx(0.0006)
    bounded = break_even(0.08, 10, Interval(0.03, 0.08), Interval(10, 50))
    assert bounded.bounds is not None
    assert (bounded.bounds.lower, bounded.bounds.upper) == pytest.approx((0.0006, 0.008))
    crossing = break_even(0.08, 10, Interval(-0.01, 0.08), Interval(10, 50))
    assert crossing.unverified
    assert crossing.bounds is None
    assert "not verified" in crossing.reading


def test_one_of_41_records_moves_a_cell_by_2_44_points() -> None:
    one = identified(Counts(41, 9, 0)).lower - identified(Counts(41, 8, 0)).lower
    assert round(100 * one, 2) == 2.44
