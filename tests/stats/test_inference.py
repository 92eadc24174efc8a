"""Tests, intervals, repeats, multiplicity, verdicts."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from harness.stats import (
    Interval,
    StatsError,
    Transitions,
    benjamini_hochberg,
    clopper_pearson,
    holm,
    jeffreys,
    mcnemar,
    paired_interval,
    pass_all_k,
    pass_any_k,
    verdict,
    wilson,
)
from harness.stats.mcnemar import least_decisive
from harness.stats.verdict import more_pairs


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))), st.floats(0.5, 0.999))
def test_intervals_are_scipy_s_and_hold_the_share(pair: tuple[int, int], level: float) -> None:
    n, x = pair
    exact = stats.binomtest(x, n).proportion_ci(level, "exact")
    score = stats.binomtest(x, n).proportion_ci(level, "wilson")
    assert [float(end) for end in clopper_pearson(x, n, level)] == pytest.approx([exact.low, exact.high], abs=1e-9)
    assert [float(end) for end in wilson(x, n, level)] == pytest.approx([score.low, score.high], abs=1e-9)
    lower, upper = (float(end) for end in jeffreys(x, n, level))
    assert 0 <= lower <= x / n <= upper <= 1
    posterior = stats.beta(x + 0.5, n - x + 0.5).interval(level)
    assert lower == (0.0 if x == 0 else pytest.approx(posterior[0], abs=1e-9))
    assert upper == (1.0 if x == n else pytest.approx(posterior[1], abs=1e-9))


def test_no_trials_say_nothing_and_nonsense_is_refused() -> None:
    for method in (wilson, clopper_pearson, jeffreys):
        assert [float(end) for end in method(0, 0)] == [0.0, 1.0]
        with pytest.raises(StatsError):
            method(3, 2)
        with pytest.raises(StatsError):
            method(1, 2, level=1.0)
    assert wilson([0, 5], [5, 5])[0].shape == (2,)


def test_small_proportions_as_published() -> None:
    """Newcombe (1998, Statistics in Medicine 17:857), table I: 81/263, 15/148, 0/20 and 1/29."""
    lower, upper = wilson([81, 15, 0, 1], [263, 148, 20, 29])
    assert np.round(lower, 4).tolist() == [0.2553, 0.0624, 0.0, 0.0061]
    assert np.round(upper, 4).tolist() == [0.3662, 0.1605, 0.1611, 0.1718]
    lower, upper = clopper_pearson([81, 15, 0, 1], [263, 148, 20, 29])
    assert np.round(lower, 4).tolist() == [0.2527, 0.0578, 0.0, 0.0009]
    assert np.round(upper, 4).tolist() == [0.3676, 0.1617, 0.1684, 0.1776]


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_the_binomial_test_of_the_discordant_pairs(n01: int, n10: int) -> None:
    found = mcnemar(n01, n10)
    m = n01 + n10
    assert found.discordant == m
    assert found.p == pytest.approx(stats.binomtest(n01, m).pvalue if m else 1.0)
    assert 0 <= found.mid_p <= found.p + 1e-12
    assert mcnemar(n10, n01) == found
    if m:
        point = stats.binom.pmf(min(n01, n10), m, 0.5)
        assert found.mid_p == pytest.approx(1 - point / 2 if n01 == n10 else found.p - point)


def test_mcnemar_on_large_counts_is_finite_and_six_pairs_are_the_least() -> None:
    assert mcnemar(5000, 5200).p == pytest.approx(stats.binomtest(5000, 10200).pvalue)
    assert 0 < mcnemar(5000, 5200).mid_p < 1
    assert least_decisive(0.05) == 6
    assert mcnemar(6, 0).p <= 0.05 < mcnemar(5, 0).p
    with pytest.raises(StatsError):
        mcnemar(-1, 3)


@pytest.mark.parametrize(
    ("table", "lower", "upper"),
    [
        # Newcombe (1998, Statistics in Medicine 17:2635), table III, method 10: (e, f, g, h) as printed.
        ((36, 12, 2, 0), 0.0569, 0.3404),
        ((0, 30, 0, 0), 0.8395, 1.0),
    ],
)
def test_the_paired_interval_as_published(table: tuple[int, int, int, int], lower: float, upper: float) -> None:
    both, first, second, neither = table
    found = paired_interval(Transitions(n11=both, n01=first, n10=second, n00=neither))
    assert found.difference == pytest.approx((first - second) / sum(table))
    assert (found.lower, found.upper) == pytest.approx((lower, upper), abs=6e-5)


tables = st.builds(Transitions, *[st.integers(0, 30)] * 4).filter(lambda table: table.n > 0)


@given(tables)
def test_the_paired_interval_holds_the_difference_and_turns_with_the_sides(table: Transitions) -> None:
    found = paired_interval(table)
    assert -1 - 1e-9 <= found.lower <= found.difference <= found.upper <= 1 + 1e-9
    turned = paired_interval(Transitions(table.n00, table.n10, table.n01, table.n11))
    assert (turned.lower, turned.upper) == pytest.approx((-found.upper, -found.lower), abs=1e-9)


def test_pairs_are_needed() -> None:
    with pytest.raises(StatsError, match="no pairs"):
        paired_interval(Transitions(0, 0, 0, 0, missing=3))


@given(
    st.integers(1, 7).flatmap(lambda n: st.tuples(st.lists(st.booleans(), min_size=n, max_size=n), st.integers(1, n)))
)
def test_pass_any_and_all_are_means_over_every_choice(case: tuple[list[bool], int]) -> None:
    trials, k = case
    choices = list(itertools.combinations(trials, k))
    any_of = sum(any(choice) for choice in choices) / len(choices)
    all_of = sum(all(choice) for choice in choices) / len(choices)
    assert pass_any_k([sum(trials)], [len(trials)], k).value == pytest.approx(any_of)
    assert pass_all_k([sum(trials)], [len(trials)], k).value == pytest.approx(all_of)


def test_tasks_with_too_few_valid_trials_are_counted_not_zero() -> None:
    """CASES F03: 5 tasks × 4 trials, 19 infrastructure errors and one pass is no 100 %."""
    found = pass_all_k([1, 0, 0, 0, 0], [1, 0, 0, 0, 0], 1)
    assert (found.value, found.tasks, found.all_tasks, found.coverage) == (1.0, 1, 5, 0.2)
    assert pass_all_k([1, 0], [1, 0], 2).value is None
    assert pass_any_k([3], [10_000], 1).value == pytest.approx(3e-4)
    with pytest.raises(StatsError):
        pass_any_k([1], [1], 0)
    with pytest.raises(StatsError):
        pass_any_k([2], [1], 1)


p_values = st.lists(st.floats(0, 1), max_size=20)


@given(p_values)
def test_adjusted_p_values_are_scipy_s_and_holm_rejects_as_it_steps_down(p: list[float]) -> None:
    if p:
        assert benjamini_hochberg(p) == pytest.approx(stats.false_discovery_control(p))
    adjusted = holm(p)
    order = sorted(range(len(p)), key=lambda i: p[i])
    rejected = []
    for rank, i in enumerate(order):
        if p[i] > 0.05 / (len(p) - rank):
            break
        rejected.append(i)
    near = [i for i in range(len(p)) if abs(adjusted[i] - 0.05) < 1e-9]
    assert {i for i in range(len(p)) if adjusted[i] <= 0.05} - set(near) == set(rejected) - set(near)
    assert (adjusted >= np.asarray(p)).all()


def test_untested_pairs_do_not_count_and_bad_p_values_are_refused() -> None:
    assert holm([0.01, math.nan, 0.04])[[0, 2]].tolist() == [0.02, 0.04]
    assert math.isnan(holm([0.01, math.nan])[1])
    with pytest.raises(StatsError):
        holm([1.5])


def test_a_small_cell_is_refused_a_verdict_and_told_how_many_more() -> None:
    small = verdict(Transitions(n00=20, n01=4, n10=1, n11=16))
    assert small.answer == "undecided"
    assert small.p == pytest.approx(0.375)
    assert "5 pairs differ: fewer than 6" in small.because
    assert small.more_pairs is not None
    scaled = 41 + small.more_pairs
    assert mcnemar(round(4 * scaled / 41), round(scaled / 41)).p <= 0.05
    even = verdict(Transitions(10, 3, 3, 10))
    assert (even.answer, even.more_pairs) == ("undecided", None)


def test_a_verdict_stands_only_if_missing_grades_cannot_undo_it() -> None:
    table = Transitions(n00=10, n01=20, n10=3, n11=10, missing=50)
    assert verdict(table).answer == "better"
    assert verdict(table, Interval(0.01, 0.6)).answer == "better"
    undone = verdict(table, Interval(-0.3, 0.6))
    assert (undone.answer, undone.more_pairs) == ("undecided", None)
    assert "50 pairs without a grade" in undone.because
    worse = Transitions(10, 3, 20, 10)
    assert verdict(worse).answer == "worse"
    assert verdict(worse, Interval(-0.3, 0.1)).answer == "undecided"
    with pytest.raises(StatsError):
        verdict(table, alpha=0.0)


@settings(max_examples=60)
@given(tables)
def test_the_forecast_decides_at_the_rates_seen(table: Transitions) -> None:
    more = more_pairs(table, 0.05)
    if more is not None and more > 0:
        scale = (table.n + more) / table.n
        assert mcnemar(round(table.n01 * scale), round(table.n10 * scale)).p <= 0.05
    if table.n01 == table.n10:
        assert more is None
