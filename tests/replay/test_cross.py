"""The cross table: both denominators, effects in both orders, transitions, reversals, and what is the pipeline's."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.records.cross import Cell, CellName, CrossEpisode, CrossTable
from harness.records.vocabulary import Outcome
from harness.replay.cross import CrossFault, cross

P, F, U, I = Outcome.PASSED, Outcome.FAILED, Outcome.UNGRADED, Outcome.INVALID  # noqa: E741


def episodes(n: int, recorded: Sequence[Outcome] = (), agents: Sequence[str] = ("a",)) -> list[CrossEpisode]:
    return [
        CrossEpisode(str(i), f"t{i % 5}", i // 5, agents[i % len(agents)], recorded[i] if recorded else U)
        for i in range(n)
    ]


def cell(grader: str, data: str, outcomes: Sequence[Outcome], reason: str = "diverged", mode: str = "normal") -> Cell:
    reasons = tuple("" if outcome.graded else reason for outcome in outcomes)
    return Cell(CellName(grader=grader, data=data, mode=mode), tuple(outcomes), reasons)


def of_rate(passed: int, n: int = 100) -> list[Outcome]:
    return [P] * passed + [F] * (n - passed)


def worked_example() -> CrossTable:
    """SOURCES S2: 0.40, 0.46 with the new grader, 0.37 with the new data, 0.49 with both."""
    cells = [
        cell("g@1", "d1", of_rate(40)),
        cell("g@1", "d2", of_rate(37)),
        cell("g@2", "d1", of_rate(46)),
        cell("g@2", "d2", of_rate(49)),
    ]
    return cross(episodes(100), cells)


def test_the_worked_example_of_main_effects_and_interaction() -> None:
    (effect,) = worked_example().effects
    assert effect.means == (0.40, 0.46, 0.37, 0.49)
    assert effect.grader_first == pytest.approx((0.06, 0.03))
    assert effect.data_first == pytest.approx((-0.03, 0.12))
    assert effect.interaction == pytest.approx(0.06)
    assert effect.total == pytest.approx(0.09)
    assert (effect.n, effect.missing) == (100, None)


def test_a_cell_says_m_of_v_and_the_bounds_on_all_that_was_planned() -> None:
    """SOURCES S2: 50 planned, 40 valid, 28 passed: 70 % and [56 %, 76 %]."""
    table = cross(episodes(50), [cell("g@1", "d1", [P] * 28 + [F] * 12 + [I] * 10)])
    (line,) = table.cells
    assert (line.planned, line.valid, line.passed, line.rate) == (50, 40, 28, 0.7)
    assert line.bounds == (0.56, 0.76)
    assert line.without == {"diverged": 10}
    assert line.absent is None


def test_means_are_on_the_common_valid_episodes_and_on_each_cell_s_own() -> None:
    old = cell("g@1", "d1", [P, P, F, F, I])
    new = cell("g@2", "d1", [F, P, U, P, P])
    table = cross(episodes(5), [old, new])
    assert table.common == 3  # the first, second and fourth
    assert [line.common_rate for line in table.cells] == [pytest.approx(2 / 3), pytest.approx(2 / 3)]
    assert [line.rate for line in table.cells] == [0.5, 0.75]
    (moved,) = table.transitions
    assert (moved.n, moved.n01, moved.n10, moved.n11, moved.n00, moved.missing) == (3, 1, 1, 1, 0, 2)
    assert moved.net == 0.0
    assert moved.churn == pytest.approx(2 / 3)


def test_a_cell_without_any_verdict_stays_empty_with_its_reason_and_takes_nothing_from_the_others() -> None:
    table = cross(
        episodes(4),
        [
            cell("g@1", "d1", [P, P, F, F]),
            cell("g@1", "d2", [I] * 4, "mode"),
            cell("g@2", "d1", [P, P, P, F]),
            cell("g@2", "d2", [I] * 4, "mode"),
        ],
    )
    assert table.common == 4
    empty = table.cells[1]
    assert (empty.rate, empty.common_rate, empty.bounds) == (None, None, (0.0, 1.0))
    assert empty.absent == "no episode has a verdict: 4 mode"
    assert [line.new for line in table.transitions] == ["g@2 on d1, normal"]
    (effect,) = table.effects
    assert effect.means == (0.5, 0.75, None, None)
    assert effect.grader_first == (0.25, None)
    assert effect.data_first == (None, None)
    assert (effect.total, effect.interaction) == (None, None)
    assert "g@1 on d2, normal: no verdict" in str(effect.missing)


def test_transitions_name_the_tasks_that_moved() -> None:
    """77 of 800 changed is a churn of 9.625 % (SOURCES S2)."""
    old = [P] * 400 + [F] * 400
    new = [F] * 40 + [P] * 360 + [P] * 37 + [F] * 363
    table = cross(episodes(800), [cell("g@1", "d", old), cell("g@2", "d", new)])
    (line,) = table.transitions
    assert (line.n10, line.n01, line.churn) == (40, 37, 0.09625)
    assert line.net == pytest.approx(-3 / 800)
    assert {task.task for task in line.tasks} == {"t0", "t1", "t2", "t3", "t4"}
    assert sum(task.n10 for task in line.tasks) == 40
    still = cross(episodes(4), [cell("g@1", "d", [P, F, P, F]), cell("g@2", "d", [P, F, F, F])])
    assert [task.task for task in still.transitions[0].tasks] == ["t2"]


def test_reversals_and_ties_between_agents_are_counted_apart() -> None:
    agents = ("a", "b", "c")
    old = [P, F, F, P, P, F]  # a 1, b ½, c 0
    new = [F, P, P, P, P, P]  # a ½, b 1, c 1
    table = cross(episodes(6, agents=agents), [cell("g@1", "d", old), cell("g@2", "d", new)])
    (line,) = table.reversals
    assert (line.agents, line.pairs) == (3, 3)
    assert (line.reversed, line.ties_entered, line.ties_left, line.ties_kept) == (2, 1, 0, 0)
    assert table.agents == agents
    without = cross(episodes(6, agents=agents), [cell("g@1", "d", old), cell("g@2", "d", [I, P, P, I, P, P])])
    assert (without.reversals[0].agents, without.reversals[0].left_out) == (2, 1)


def test_the_pipeline_s_share_is_kept_apart_from_the_rule_s() -> None:
    recorded = [P, P, F, F, U]
    clean = cross(episodes(5, recorded), [cell("g@1", "d", [P, P, F, F, U]), cell("g@2", "d", [P, F, F, F, F])])
    assert clean.attribution is not None
    assert (clean.attribution.clean, clean.attribution.pipeline.n) == (True, 4)
    assert clean.transitions[0].n10 == 1, "the rule's own column"
    moved = cross(episodes(5, recorded), [cell("g@1", "d", [F, P, F, F, U]), cell("g@2", "d", [F, F, F, F, U])])
    assert moved.attribution is not None
    assert (moved.attribution.clean, moved.attribution.pipeline.n10) == (False, 1)
    assert "1 of 4 recorded outcomes moved before any rule" in moved.attribution.sentence
    assert moved.transitions[0].n10 == 1, "the recorded pass that the pipeline lost is not counted again"
    nothing = cross(episodes(5, recorded), [cell("g@1", "d", [I] * 5)])
    assert nothing.attribution is not None
    assert not nothing.attribution.clean
    assert cross(episodes(5), [cell("g@1", "d", [P] * 5)]).attribution is None


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(CrossFault, match="nothing to cross"):
        cross([], [])
    with pytest.raises(CrossFault, match="2 outcomes for 3 episodes"):
        cross(episodes(3), [cell("g@1", "d", [P, P])])
    with pytest.raises(CrossFault, match="g@2 on d1"):
        cross(episodes(1), [cell("g@1", "d1", [P]), cell("g@1", "d2", [P]), cell("g@2", "d2", [P])])
    with pytest.raises(CrossFault, match="doubled"):
        cross(episodes(1), [cell("g@1", "d1", [P]), cell("g@1", "d1", [P])])


outcome_lists = st.integers(1, 12).flatmap(
    lambda n: st.lists(st.lists(st.sampled_from([P, F, U, I]), min_size=n, max_size=n), min_size=4, max_size=4)
)


@given(outcome_lists)
def test_both_orders_add_up_and_counts_add_up(columns: list[list[Outcome]]) -> None:
    names = [("g@1", "d1"), ("g@1", "d2"), ("g@2", "d1"), ("g@2", "d2")]
    cells = [cell(grader, data, column) for (grader, data), column in zip(names, columns, strict=True)]
    table = cross(episodes(len(columns[0])), cells)
    for line, column in zip(table.cells, columns, strict=True):
        assert line.valid == sum(outcome.graded for outcome in column)
        assert line.valid + sum(line.without.values()) == line.planned
        assert 0 <= line.bounds[0] <= line.bounds[1] <= 1
        assert line.rate is None or line.bounds[0] <= line.rate <= line.bounds[1]
        assert (line.absent is None) == (line.valid > 0)
    (effect,) = table.effects
    for order in (effect.grader_first, effect.data_first):
        if effect.total is not None and None not in order:
            assert sum(share or 0.0 for share in order) == pytest.approx(effect.total)
    if effect.interaction is not None:
        assert effect.grader_first[1] is not None
        assert effect.data_first[0] is not None
        assert effect.interaction == pytest.approx(effect.grader_first[1] - effect.data_first[0])
    for moved in table.transitions:
        assert moved.n + moved.missing == table.episodes
