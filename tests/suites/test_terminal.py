"""The bundled suite: large enough, sound in a sample. `make audit` does all of it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from harness.api import load_suite
from harness.api.audit_request import AuditRequest
from harness.api.audit_views import status
from harness.api.audits import audit
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


def sample(suite: Suite) -> tuple[str, ...]:
    """The middle variant of each family."""
    families: dict[str, list[str]] = {}
    for task in suite.tasks:
        families.setdefault(task.family, []).append(task.id)
    return tuple(members[len(members) // 2] for members in families.values())


@pytest.mark.docker
@pytest.mark.slow
def test_gold_passes_null_and_a_mutant_fail(suite: Suite, tmp_path: Path) -> None:
    assert load_suite("terminal").locked
    tasks = sample(suite)
    request = AuditRequest(suite="terminal", tasks=tasks, mutants=1, concurrency=3, store=str(tmp_path))
    assert audit(request).finished
    found = {one.task: (one.cause, one.detail) for one in status(request).unavailable if one.task in tasks}
    assert found == {}
