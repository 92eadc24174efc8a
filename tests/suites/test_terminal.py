"""The bundled suite: large enough, sound in a sample. `make audit` does all of it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from benchmarks.audit import Check, checks, sampled
from harness.api import RunRequest, load_suite, run
from harness.formats.suite import load_suite as load_from_disk
from harness.records.suite import Suite
from harness.records.vocabulary import GradingEnvironment


@pytest.fixture(scope="module")
def suite() -> Suite:
    return load_from_disk("terminal", ignore_lock=True)


def test_it_is_large_and_varied(suite: Suite) -> None:
    families = Counter(task.family for task in suite.tasks)
    assert len(families) >= 26
    assert len(suite.tasks) >= 520
    assert Counter(task.difficulty for task in suite.tasks).keys() == {"easy", "medium", "hard"}


def test_every_task_has_what_an_honest_task_needs(suite: Suite) -> None:
    for task in suite.tasks:
        assert task.solution.files, task.id
        assert task.mutations, task.id
        assert task.grading.tests, task.id
        assert None not in (task.budget.wall_s, task.budget.tokens, task.budget.steps), task.id
        assert not task.unsupported, task.id


def test_no_two_tasks_ask_the_same(suite: Suite) -> None:
    asked = Counter(task.instruction for task in suite.tasks)
    assert asked.most_common(1)[0][1] == 1, asked.most_common(1)[0][0]


def test_a_few_families_end_with_a_service_and_a_few_are_graded_afresh(suite: Suite) -> None:
    services = {task.family for task in suite.tasks if task.grading.keep_services}
    fresh = {task.family for task in suite.tasks if task.grading.environment is GradingEnvironment.FRESH}
    assert len(services) >= 2
    assert len(fresh) >= 3


def sample() -> list[Check]:
    """One variant of each family: gold, null, and its first declared mutant."""
    return checks(sampled(load_from_disk("terminal", ignore_lock=True).tasks, 1))[:3]


@pytest.mark.docker
@pytest.mark.slow
@pytest.mark.parametrize("check", sample(), ids=lambda check: check.name)
def test_gold_passes_null_and_mutants_fail(check: Check, tmp_path: Path) -> None:
    assert load_suite("terminal").locked
    request = RunRequest(
        suite="terminal",
        solver=check.solver,
        solver_options=check.options,
        tasks=check.tasks,
        concurrency=3,
        store=str(tmp_path),
    )
    summary = run(request)
    wrong = {line.task: (line.outcome, line.reason, line.detail) for line in summary.trials}
    assert {task: why for task, why in wrong.items() if why[0] is not check.right} == {}
    assert len(summary.trials) == len(check.tasks)
