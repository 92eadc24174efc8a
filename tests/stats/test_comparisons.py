"""Weighted comparisons, boards, frontiers, break-even prices."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.stats import (
    Candidate,
    Episodes,
    Interval,
    StatsError,
    Weighting,
    board,
    break_even,
    frontier,
    mcnemar,
    paired_interval,
    transitions,
    weighted_comparison,
)

NAN = math.nan


def two_models() -> tuple[Episodes, Episodes]:
    """Model x has three episodes of task 1 in A; model y one each. A is better with x, B with y."""
    a = Episodes.of(["t1", "t1", "t1", "t1", "t2"], [1, 1, 1, 0, 0], ["x", "x", "x", "y", "y"])
    b = Episodes.of(["t1", "t1", "t2"], [0, 1, 1], ["x", "y", "y"])
    return a, b


def test_the_difference_depends_on_the_declared_weights() -> None:
    a, b = two_models()
    # Cells (t1, x): 1 − 0 = 1; (t1, y): 0 − 1 = −1; (t2, y): 0 − 1 = −1.
    by = {scheme: weighted_comparison(a, b, Weighting(scheme)) for scheme in ("task", "model", "episode")}
    assert by["task"].difference == pytest.approx(0.5 * 0 + 0.5 * -1)
    assert by["model"].difference == pytest.approx(0.5 * 1 + 0.5 * -1)
    assert by["episode"].difference == pytest.approx((4 * 1 + 2 * -1 + 2 * -1) / 8)
    own = weighted_comparison(a, b, Weighting("own", {"x": 3.0, "y": 1.0}))
    assert own.difference == pytest.approx(0.75 * 1 + 0.25 * -1)
    tasks = weighted_comparison(a, b, Weighting("own", {"t2": 1.0}))
    assert tasks.difference == -1
    assert tasks.interval is None  # one task with weight: nothing to resample
    assert all(one.a - one.b == pytest.approx(one.difference) for one in by.values())


def test_what_is_on_one_side_only_or_ungraded_is_left_out_and_counted() -> None:
    a = Episodes.of(["t1", "t2", "t3", "t4"], [1, 0, NAN, 1])
    b = Episodes.of(["t1", "t2", "t3", "t5"], [0, 0, 1, 1])
    found = weighted_comparison(a, b)
    assert (found.tasks, found.cells, found.only_a, found.only_b, found.ungraded) == (2, 2, 1, 1, 1)
    assert found.difference == 0.5
    with pytest.raises(StatsError, match="in common"):
        weighted_comparison(Episodes.of(["a"], [1]), Episodes.of(["b"], [1]))
    with pytest.raises(StatsError, match="no weight"):
        weighted_comparison(a, b, Weighting("own", {"elsewhere": 1.0}))
    with pytest.raises(StatsError, match="negative"):
        weighted_comparison(a, b, Weighting("own", {"t1": -1.0}))
    with pytest.raises(StatsError, match="one of the two"):
        weighted_comparison(*two_models(), Weighting("own", {"t1": 1.0, "x": 1.0}))


def test_unnamed_tasks_never_merge_nor_match() -> None:
    """CASES S15."""
    a = Episodes.of([None, None, "t"], [1, 0, 1], side="a")
    b = Episodes.of([None, "t"], [1, 0], side="b")
    found = weighted_comparison(a, b)
    assert (found.tasks, found.only_a, found.only_b) == (1, 2, 1)


def test_repeats_of_a_task_are_no_independent_tasks() -> None:
    """CASES S15: five identical trials of 100 tasks give the interval of 100 tasks."""
    random = np.random.default_rng(3)
    x, y = (random.random((2, 100)) < 0.6).astype(float)
    names = [f"t{n}" for n in range(100)]
    once = weighted_comparison(Episodes.of(names, x), Episodes.of(names, y))
    five = weighted_comparison(Episodes.of(names * 5, np.tile(x, 5)), Episodes.of(names * 5, np.tile(y, 5)))
    assert five.interval == once.interval
    assert five.difference == once.difference
    assert once.interval is not None
    newcombe = paired_interval(transitions(y, x))
    assert (once.interval.lower, once.interval.upper) == pytest.approx((newcombe.lower, newcombe.upper), abs=0.03)


def test_the_bootstrap_keeps_pairs_together() -> None:
    """Two agents that agree everywhere differ by nothing in every draw, however much tasks differ."""
    names, values = [f"t{n}" for n in range(50)], [n % 2 for n in range(50)]
    same = weighted_comparison(Episodes.of(names, values), Episodes.of(names, values))
    assert same.interval == Interval(0, 0)
    assert same.share_above == 0.5


def test_the_interval_covers_at_its_level() -> None:
    """CASES S11: point and interval belong to one estimator, here weighted unequally."""
    random = np.random.default_rng(11)
    covered = 0
    names = [f"t{n}" for n in range(60)]
    weights = Weighting("own", {name: 1.0 + (n % 3) for n, name in enumerate(names)})
    for trial in range(300):
        easy = random.random(60)
        a = (random.random(60) < np.minimum(easy + 0.1, 1)).astype(float)
        b = (random.random(60) < easy).astype(float)
        found = weighted_comparison(Episodes.of(names, a), Episodes.of(names, b), weights, draws=600, seed=trial)
        truth = 0.1 - 0.1**2 / 2  # E[min(u + 0.1, 1)] − E[u] for uniform u
        covered += found.interval is not None and found.interval.holds(truth)
    assert 0.91 <= covered / 300 <= 0.98


values = st.sampled_from([0.0, 1.0, NAN])


@given(st.integers(1, 8).flatmap(lambda n: st.tuples(*[st.lists(values, min_size=n, max_size=n)] * 2)))
def test_missing_grades_filled_in_any_way_stay_within_the_identified_bounds(
    two: tuple[list[float], list[float]],
) -> None:
    names = [f"t{n // 2}" for n in range(len(two[0]))]
    try:
        found = weighted_comparison(Episodes.of(names, two[0]), Episodes.of(names, two[1]), draws=10)
    except StatsError:
        return
    for fill in (0.0, 1.0):
        a, b = (np.nan_to_num(side, nan=value) for side, value in zip(two, (fill, 1 - fill), strict=True))
        full = weighted_comparison(Episodes.of(names, a), Episodes.of(names, b), draws=10)
        end = found.identified.upper if fill else found.identified.lower
        assert full.difference == pytest.approx(end)


matrix = st.tuples(st.integers(2, 5), st.integers(1, 8)).flatmap(
    lambda shape: st.lists(st.lists(values, min_size=shape[1], max_size=shape[1]), min_size=shape[0], max_size=shape[0])
)


@given(matrix)
def test_a_board_is_every_pair_on_its_own(rows: list[list[float]]) -> None:
    found = board(rows)
    for k, (i, j) in enumerate(zip(found.first, found.second, strict=True)):
        table = transitions(rows[j], rows[i])
        assert (found.common[k], found.only_first[k], found.only_second[k]) == (table.n, table.n01, table.n10)
        if table.n == 0:
            assert math.isnan(found.p[k])
            continue
        alone = paired_interval(table)
        assert found.difference[k] == pytest.approx(alone.difference)
        assert (found.lower[k], found.upper[k]) == pytest.approx((alone.lower, alone.upper))
        assert found.p[k] == pytest.approx(mcnemar(table.n01, table.n10).p)
        assert found.holm[k] >= found.false_discovery[k] >= found.p[k] - 1e-12


def test_a_board_knows_whom_missing_grades_cannot_turn() -> None:
    found = board(np.array([[1, 1, 1, 1], [0, 0, 0, NAN], [1, 1, NAN, NAN]]))
    assert found.surely_apart.tolist() == [True, False, True]
    assert found.order.tolist() == [0, 2, 1]
    assert found.coverage.tolist() == [1, 0.75, 0.5]
    wrong: list[list[list[float]]] = [[[1, 0]], [[], []], [[0.5, 1], [1, 1]], [[2, 1], [1, 1]]]
    for bad in wrong:
        with pytest.raises(StatsError):
            board(bad)


def test_the_frontier_by_points_as_the_paper_shows_it() -> None:
    """A 0.58 at 40, B 0.56 at 60: A dominates. With A booked at 80, B becomes a cheap choice."""
    right = frontier([Candidate.exact("A", 0.58, 40), Candidate.exact("B", 0.56, 60)])
    assert [(point.standing, point.by) for point in right] == [("frontier", ()), ("dominated", ("A",))]
    wrong = frontier([Candidate.exact("A", 0.58, 80), Candidate.exact("B", 0.56, 60)])
    assert [point.standing for point in wrong] == ["frontier", "frontier"]


def test_intervals_make_dominance_possible_rather_than_sure() -> None:
    a = Candidate("A", 0.58, 40, Interval(0.50, 0.66), Interval(40, 40))
    b = Candidate("B", 0.56, 60, Interval(0.48, 0.64), Interval(60, 60))
    unknown = Candidate("C", 0.70, None, Interval(0.68, 0.72), Interval(10, math.inf))
    found = {point.name: point for point in frontier([a, b, unknown])}
    assert found["B"].standing == "perhaps"
    assert found["B"].on_points is False
    assert set(found["B"].by) == {"A", "C"}
    assert (found["A"].standing, found["A"].by, found["A"].on_points) == ("perhaps", ("C",), True)
    assert (found["C"].standing, found["C"].on_points) == ("frontier", None)
    with pytest.raises(StatsError, match="NaN"):
        frontier([Candidate("A", NAN, 1, Interval(0, 1), Interval(1, 1))])


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=8))
def test_the_frontier_of_points_is_what_nothing_beats(points: list[tuple[int, int]]) -> None:
    found = frontier([Candidate.exact(str(n), q / 5, c) for n, (q, c) in enumerate(points)])
    for (q, c), point in zip(points, found, strict=True):
        beaten = any(p >= q and k <= c and (p, k) != (q, c) for p, k in points)
        assert point.on_points is not beaten
        assert point.standing == ("dominated" if beaten else "frontier")


@given(st.floats(0.001, 1), st.floats(0.001, 100), st.floats(0, 1), st.floats(0, 1))
def test_the_break_even_price_lies_in_its_bounds(gain: float, cost: float, wide_gain: float, wide_cost: float) -> None:
    gains = Interval(gain * (1 - wide_gain / 2), gain * (1 + wide_gain))
    costs = Interval(cost * (1 - wide_cost / 2), cost * (1 + wide_cost))
    found = break_even(gain, cost, gains, costs)
    assert found.value == pytest.approx(gain / cost)
    assert found.bounds is not None
    assert found.bounds.lower - 1e-9 <= gain / cost <= found.bounds.upper + 1e-9
    turned = break_even(-gain, -cost, Interval(-gains.upper, -gains.lower), Interval(-costs.upper, -costs.lower))
    assert turned.bounds is not None
    assert turned.value == pytest.approx(gain / cost)
    assert turned.bounds.lower == pytest.approx(found.bounds.lower)
    assert turned.reading.startswith("B below")


def test_dominance_needs_no_price() -> None:
    assert break_even(0.1, -1).reading.startswith("A at any price")
    assert break_even(-0.1, 1).reading.startswith("B at any price")
    assert break_even(0, 0).reading == "the two are equal"
    assert break_even(0.1, 0).value is None
