"""Scores on the achievable denominator: never without an audit, never with what means nothing."""

from __future__ import annotations

import pytest

from harness.api.audit_views import decide
from harness.api.ceilings import ceiling_of
from harness.api.request import AdaptiveRequest
from harness.api.scores import score
from harness.api.stores import estimate_of
from harness.records.audit import Cause, DecisionKind, Policy
from harness.records.score import TaskState
from harness.report.scores import comparison_text
from harness.report.summary import summarise

from .worlds import FAIL, PASS, Files, Laboratory

pytestmark = pytest.mark.anyio


def numbered(count: int, **special: Files) -> dict[str, Files]:
    return {f"t{n}": Files(do=f"Task {n}") for n in range(count)} | special


async def test_without_a_cycle_there_are_bounds_and_no_score(laboratory: Laboratory) -> None:
    laboratory.write(numbered(4))
    run = (await laboratory.run(below=3)).run
    found = score(run).score
    assert (found.measured, found.score, found.achievable) == (False, None, None)
    assert found.raw_interval == (0.75, 0.75)
    assert "none: ceiling not measured; between [75.0, 75.0] % of all 4 tasks passed" in comparison_text(score(run))
    assert found.notes == ("suite 'demo' was never audited: assay audit all --suite demo",)


async def test_gold_alone_is_no_denominator(laboratory: Laboratory) -> None:
    laboratory.write(numbered(2))
    await laboratory.audit(sentinels=("gold",))
    assert not score((await laboratory.run(below=1)).run).score.measured


async def test_a_pass_on_an_unavailable_task_counts_nowhere(laboratory: Laboratory) -> None:
    dead = Files(do="Task 0", check=f"grep -q 42 /app/answer && test ! -f /solution/solve.sh && {PASS} || {FAIL}\n")
    laboratory.write(numbered(4) | {"free": Files(do="Task 0", check=f"{PASS}\n"), "gone": dead})
    await laboratory.audit()
    run = (await laboratory.run(below=2)).run
    found = score(run).score
    assert (found.tasks, found.achievable, found.unavailable) == (6, 4, 2)
    assert found.causes == {Cause.NULL_PASSED: 1, Cause.TESTS_FAILED: 1}
    assert (found.raw_passed, found.passed, found.passes_elsewhere) == (4, 2, 2)
    assert found.score == 0.5
    assert {one.task for one in found.states if one.state is TaskState.UNAVAILABLE} == {"free", "gone"}
    text = comparison_text(score(run))
    assert "50.0 % = 2/4 of the achievable" in text
    assert "4 of 6 achievable, 2 unavailable (33.3 %)" in text
    assert "2 passes on unavailable tasks count nowhere" in text


async def test_the_summary_of_a_run_names_the_ceiling(laboratory: Laboratory) -> None:
    laboratory.write(numbered(2))
    before = (await laboratory.run(below=1)).run
    assert summarise(laboratory.store, before, estimate_of, ceiling_of).ceiling == "not measured"
    report = await laboratory.audit()
    assert report.cycle is not None
    said = summarise(laboratory.store, before, estimate_of, ceiling_of).ceiling
    assert said.startswith("50.0 % of what was achievable; 2 of 2 achievable, 0 unavailable (0.0 %), by cycle")
    gold = report.cycle.runs[0].run
    assert ceiling_of(gold, laboratory.store) == "this run is of those that measure it"


async def test_the_nearest_cycle_of_the_runs_own_version_counts(laboratory: Laboratory) -> None:
    laboratory.write(numbered(2))
    first = await laboratory.audit()
    early = (await laboratory.run(below=1)).run
    laboratory.pass_time(days=5)
    Files(do="Task 1", check=f"{PASS}\n").write(laboratory.suite / "t1")
    laboratory.lock()
    second = await laboratory.audit()
    late = (await laboratory.run(below=1)).run
    assert first.cycle is not None
    assert second.cycle is not None
    assert (score(early).score.cycle, score(late).score.cycle) == (first.cycle.cycle, second.cycle.cycle)
    told = score(late, early)
    assert told.diagnosis is None
    assert told.incomparable is not None
    assert told.incomparable.startswith("the series broke: suite version ")
    assert "not comparable" in comparison_text(told)


async def test_a_run_of_a_part_is_scored_by_the_audit_of_the_whole(laboratory: Laboratory) -> None:
    laboratory.write(numbered(3))
    await laboratory.audit()
    part = await laboratory.audit(tasks=("t1",))
    assert part.cycle is not None
    assert part.achievable == 3  # the rest is carried over
    narrowed = part.cycle.runs[1].run  # the null run is an ordinary run of one task
    found = score(narrowed).score
    assert (found.measured, found.tasks, found.score) == (True, 1, 0.0)


async def test_a_stale_audit_is_none(laboratory: Laboratory) -> None:
    laboratory.write(numbered(2))
    await laboratory.audit()
    laboratory.pass_time(days=15)
    run = (await laboratory.run(below=1)).run
    assert not score(run).score.measured
    assert score(run, policy=Policy(stale_days=16)).score.measured


async def test_a_retired_task_is_in_no_denominator_from_then_on(laboratory: Laboratory) -> None:
    laboratory.write(numbered(4))
    await laboratory.audit()
    before = (await laboratory.run(below=2)).run
    decide(laboratory.request(), DecisionKind.RETIRE, "t0", "the service was shut down")
    after = (await laboratory.run(below=2)).run
    assert (score(before).score.achievable, score(before).score.score) == (4, 0.5)
    found = score(after).score
    assert (found.tasks, found.achievable, found.retired, found.passed) == (3, 3, 1, 1)
    incomparable = score(after, before).incomparable
    assert incomparable is not None
    assert "retire of t0: the service was shut down" in incomparable
    decide(laboratory.request(), DecisionKind.REPAIR, "t0", "it is back")
    assert score((await laboratory.run(below=2)).run).score.achievable == 4


async def test_tasks_without_a_grade_are_fails_and_passes_in_the_interval(laboratory: Laboratory) -> None:
    laboratory.write(numbered(4) | {"mute": Files(do="Task 9", check=f"test -f /app/answer && {PASS}\n")})
    await laboratory.audit()
    found = score((await laboratory.run(below=2)).run).score
    assert (found.achievable, found.ungraded) == (5, 1)
    assert found.score == 0.5
    assert found.interval == (0.4, 0.6)


@pytest.mark.parametrize(
    ("gold_mb", "ungraded", "value", "interval"),
    [(10, 0, 0.0, (0.0, 0.0)), (240, 2, None, (0.0, 1.0))],
    ids=["gold is far from the limit", "gold is near it"],
)
async def test_tests_out_of_memory_are_judged_by_golds_use(
    laboratory: Laboratory, gold_mb: int, ungraded: int, value: float | None, interval: tuple[float, float]
) -> None:
    laboratory.write(numbered(2))
    laboratory.memory_bytes = gold_mb * 1024 * 1024  # of 256
    assert (await laboratory.audit()).achievable == 2
    found = score((await laboratory.run(below=2, leave="/app/hog")).run).score
    assert (found.ungraded, found.failed, found.score, found.interval) == (ungraded, 2 - ungraded, value, interval)
    assert ("the tests of 2 attempt(s) ran out of memory" in " ".join(found.notes)) == (ungraded == 0)


async def test_an_adaptive_run_is_estimated_over_its_achievable_tasks(laboratory: Laboratory) -> None:
    """The agent passes the three tasks that are free and half of the others: without the free ones, about a half."""
    free = {f"free{n}": Files(do="Task 0", check=f"{PASS}\n") for n in range(3)}
    laboratory.write(numbered(8) | free)
    await laboratory.audit()
    asked = AdaptiveRequest(stop=9, policy="random", seed=3)
    run = (await laboratory.run(adaptive=asked, below=4)).run
    found = score(run).score
    assert (found.tasks, found.achievable, found.unavailable) == (11, 8, 3)
    executed = [one for one in found.states if one.state in (TaskState.PASSED, TaskState.FAILED)]
    passed = sum(one.state is TaskState.PASSED for one in executed)
    assert found.unexecuted + len(executed) == 8
    assert found.unexecuted > 0
    assert found.score is not None
    assert found.interval is not None
    assert found.raw_score is not None
    lower, upper = passed / 8, (passed + found.unexecuted) / 8
    assert lower < found.score < upper
    assert found.interval[0] <= found.score <= found.interval[1]
    assert found.score < found.raw_score  # three certain passes count no more
    text = comparison_text(score(run))
    assert "of the achievable (estimate (" in text
    assert "% of the estimate" in text
