"""What of a change is the agent's: the parts add up, and repeats are no further tasks."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.audit.diagnose import diagnose
from harness.records.audit import Cause
from harness.records.score import Score, TaskScore, TaskState, Verdict

RATES = st.sampled_from([None, 0.0, 1 / 3, 1.0])
TASKS = st.lists(st.tuples(RATES, st.booleans(), RATES, st.booleans()), min_size=1, max_size=30)


def scored(run: str, tasks: Sequence[tuple[float | None, bool]]) -> Score:
    states = tuple(
        TaskScore(task=f"t{n}", state=TaskState.UNAVAILABLE, rate=rate, cause=Cause.TESTS_FAILED)
        if not available
        else TaskScore(task=f"t{n}", state=TaskState.PASSED if rate == 1 else TaskState.FAILED, rate=rate)
        for n, (rate, available) in enumerate(tasks)
    )
    return Score(
        run=run, agent="a", suite="s", suite_version="v", created="", measured=True, tasks=len(tasks), states=states
    )


@given(TASKS)
def test_the_parts_add_up_to_the_change(tasks: list[tuple[float | None, bool, float | None, bool]]) -> None:
    then, now = [(a, b) for a, b, _, _ in tasks], [(c, d) for _, _, c, d in tasks]
    found = diagnose(scored("then", then), scored("now", now))
    parts = found.died_change + found.opened_change + found.elsewhere_change + found.gained - found.lost
    assert parts == pytest.approx(found.change)
    assert found.change == pytest.approx(sum(a or 0.0 for a, _ in now) - sum(a or 0.0 for a, _ in then))
    assert len(found.died) == sum(b and not d for _, b, _, d in tasks)
    if found.interval is not None:
        assert found.difference is not None
        assert found.interval[0] - 1e-12 <= found.difference <= found.interval[1] + 1e-12


def test_both_may_change() -> None:
    then: Sequence[tuple[float, bool]] = [(1.0, True)] * 60
    now: Sequence[tuple[float, bool]] = [(0.0, True)] * 20 + [(1.0, True)] * 35 + [(0.0, False)] * 5
    found = diagnose(scored("then", then), scored("now", now))
    assert (found.verdict, found.lost, len(found.died)) == (Verdict.BOTH, 20, 5)
    assert diagnose(scored("a", then), scored("b", then)).verdict is Verdict.NONE
    opened = diagnose(scored("a", now), scored("b", [(1.0, True)] * 60))
    assert (opened.opened_change, opened.gained) == (5, 20)
    assert "5 opened (+5)" in opened.sentence


def test_repeats_are_averaged_per_task() -> None:
    then: Sequence[tuple[float, bool]] = [(2 / 3, True), (1 / 3, True)] * 10
    now: Sequence[tuple[float, bool]] = [(1 / 3, True), (2 / 3, True)] * 10
    found = diagnose(scored("then", then), scored("now", now))
    assert found.common == 20
    assert (found.gained, found.lost) == pytest.approx((10 / 3, 10 / 3))
    assert found.interval is not None
    assert found.interval[0] < 0 < found.interval[1]
    assert found.verdict is Verdict.NONE
