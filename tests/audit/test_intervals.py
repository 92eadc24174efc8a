"""Intervals: closed forms, symmetry, and coverage by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.audit.interval import mean_interval, paired_interval, rate_interval

Z2 = 3.841458820694124


@given(st.integers(1, 400), st.data())
def test_the_paired_interval_holds_the_difference_and_turns_with_the_sides(pairs: int, data: st.DataObject) -> None:
    gained = data.draw(st.integers(0, pairs))
    lost = data.draw(st.integers(0, pairs - gained))
    lower, upper = paired_interval(gained, lost, pairs)
    assert -1 <= lower <= (gained - lost) / pairs <= upper <= 1
    assert (-upper, -lower) == pytest.approx(paired_interval(lost, gained, pairs), abs=1e-9)


@pytest.mark.parametrize("pairs", [1, 50, 168])
def test_without_a_discordant_pair_it_is_no_point(pairs: int) -> None:
    half = Z2 / (pairs + Z2)
    assert paired_interval(0, 0, pairs) == pytest.approx((-half, half), abs=1e-9)


def test_it_covers_what_it_should() -> None:
    """2,000 simulated comparisons of 150 tasks, of which 12 % were lost and 5 % gained."""
    counts = np.random.default_rng(4).multinomial(150, [0.05, 0.12, 0.83], size=2000)
    inside = [lower <= -0.07 <= upper for lower, upper in (paired_interval(g, b, 150) for g, b, _ in counts.tolist())]
    assert 0.935 <= np.mean(inside) <= 0.965


def test_impossible_counts_are_refused() -> None:
    for counts in ((-1, 0, 5), (3, 3, 5), (0, 0, 0)):
        with pytest.raises(ValueError, match="pairs"):
            paired_interval(*counts)
    with pytest.raises(ValueError, match="6 of 5"):
        rate_interval(6, 5)


def test_a_rate_of_four_in_five_is_anything_but_certain() -> None:
    assert rate_interval(4, 5) == pytest.approx((0.2836, 0.9949), abs=1e-4)
    assert rate_interval(5, 5) == pytest.approx((0.4782, 1.0), abs=1e-4)
    assert rate_interval(0, 5) == pytest.approx((0.0, 0.5218), abs=1e-4)


def test_a_mean_of_repeats() -> None:
    assert mean_interval([0.5]) == (-1.0, 1.0)
    assert mean_interval([0.5, 0.5, 0.5]) == (0.5, 0.5)
    assert mean_interval([0.0, 1.0] * 50) == pytest.approx((0.4015, 0.5985), abs=1e-4)
