"""Restoring the ungraded: recorded verdicts stay, a stratum is restored when its graded members bear it out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.records.vocabulary import Outcome
from harness.replay.restore import MATCHED, NONE_RECORDED, Candidate, restore

P, F, U, I = Outcome.PASSED, Outcome.FAILED, Outcome.UNGRADED, Outcome.INVALID  # noqa: E741


def some(
    count: int, recorded: Outcome, replayed: Outcome | None, end: str = "stop", checkpoint: str = MATCHED
) -> list[Candidate]:
    made = f"{end}-{recorded.value}-{replayed.value if replayed else 'none'}-{checkpoint}"
    return [Candidate(f"{made}-{n}", end, True, checkpoint, recorded, replayed) for n in range(count)]


def test_the_worked_example_stays_an_interval_where_nothing_is_restored() -> None:
    """SOURCES S2: 100 planned, 50 graded, 30 passed: [30 %, 80 %]."""
    report, outcomes = restore([*some(30, P, P), *some(20, F, F), *some(50, U, None)], 100)
    assert report.before == report.after == (0.30, 0.80)
    assert outcomes == {}
    assert report.strata[0].why.startswith("the bound of their fidelity")


def test_a_stratum_that_is_borne_out_is_restored() -> None:
    """59 agreements are the fewest whose one-sided 95 % bound reaches 0.95: 0.05 ** (1 / 59) is 0.9505."""
    graded = [*some(40, P, P), *some(19, F, F)]
    report, outcomes = restore([*graded, *some(6, U, P), *some(4, U, F), *some(2, U, None)], 71)
    assert (report.restored, report.restored_passed) == (10, 6)
    assert report.before == (40 / 71, 52 / 71)
    assert report.after == (46 / 71, 48 / 71)
    assert sorted(set(outcomes.values())) == [F, P]
    assert report.strata[0].lower == pytest.approx(0.05 ** (1 / 59))
    fewer, _ = restore([*graded[:-1], *some(6, U, P)], 64)
    assert fewer.restored == 0


def test_strata_stand_for_themselves() -> None:
    report, outcomes = restore(
        [*some(80, P, P), *some(5, U, P), *some(5, U, P, end="steps"), *some(5, U, P, checkpoint=NONE_RECORDED)], 95
    )
    assert len(outcomes) == 5
    assert {line.why for line in report.strata if line.ungraded and not line.restored} == {
        "no graded episode is like them"
    }


def test_a_lower_threshold_is_the_users_to_state() -> None:
    report, _ = restore([*some(9, P, P), *some(1, P, F), *some(3, U, P)], 13, threshold=0.6)
    assert report.restored == 3  # 9 of 10: bound 0.606
    stricter, _ = restore([*some(9, P, P), *some(1, P, F), *some(3, U, P)], 13, threshold=0.61)
    assert stricter.restored == 0


def test_recorded_verdicts_are_kept_whatever_their_replay_says() -> None:
    report, outcomes = restore([*some(10, P, F), *some(10, F, P)], 20, threshold=0.0)
    assert report.after == (0.5, 0.5)
    assert outcomes == {}
    assert report.strata[0].agree == 0


def test_graded_episodes_whose_replay_has_no_verdict_bear_nothing_out() -> None:
    report, _ = restore([*some(80, P, None), *some(5, U, P)], 85)
    assert report.strata[0].graded == 0
    assert report.restored == 0


@given(st.lists(st.tuples(st.sampled_from([P, F, U, I]), st.sampled_from([P, F, None])), min_size=1), st.floats(0, 1))
def test_restoring_only_narrows_the_interval(kinds: list[tuple[Outcome, Outcome | None]], threshold: float) -> None:
    candidates = [Candidate(str(n), "stop", False, MATCHED, *kind) for n, kind in enumerate(kinds)]
    report, outcomes = restore(candidates, len(candidates) + 1, threshold)
    assert report.before[0] <= report.after[0] <= report.after[1] <= report.before[1]
    assert all(not candidates[int(name)].recorded.graded for name in outcomes)
    assert report.restored == len(outcomes)
