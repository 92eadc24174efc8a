"""The bundled conversations: enough of each kind, and sound: gold passes, doing nothing and every mutant fail."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from harness.api.environments import environment_of, episode_graders, user_of
from harness.api.suites import load_suite
from harness.mutations.choose import mutants
from harness.protocols import Solver
from harness.records.grade import TrialResult
from harness.records.suite import Suite
from harness.records.task import Task
from harness.records.trial import SolverSpec
from harness.records.vocabulary import Outcome
from harness.runner.services import Services
from harness.runner.trial import Trial
from harness.store.memory import MemoryStore
from solvers.mutated import Mutated
from solvers.noop import Noop
from solvers.reference import Reference
from tests.runner.scenes import make_plan, make_row, make_services

pytestmark = pytest.mark.anyio
REFERENCE = SolverSpec(name="reference", actor="reference", uses_solution=True)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def suite() -> Suite:
    return load_suite("airline")


def test_it_has_enough_of_each_kind(suite: Suite) -> None:
    assert len(suite.tasks) >= 40
    assert Counter(task.requires_write for task in suite.tasks)[False] >= 15
    assert Counter(task.requires_write for task in suite.tasks)[True] >= 25
    talks = [task.conversation for task in suite.tasks if task.conversation is not None]
    assert len(talks) == len(suite.tasks)
    assert sum(any(action.actor == "user" for action in talk.actions) for talk in talks) >= 5
    assert sum(talk.user is None for talk in talks) >= 2
    assert suite.locked


def test_no_user_says_what_is_to_be_found_out(suite: Suite) -> None:
    for task in suite.tasks:
        talk = task.conversation
        assert talk is not None
        if talk.user is not None and not task.requires_write:
            said = f"{talk.user.opening} {' '.join(talk.user.facts.values())}"
            assert not [output for output in talk.outputs if output in said.split()], task.id


def test_every_task_has_what_an_honest_task_needs(suite: Suite) -> None:
    for task in suite.tasks:
        assert task.solution.files, task.id
        assert task.mutations, task.id
        assert None not in (task.budget.wall_s, task.budget.tokens, task.budget.steps), task.id
        assert not task.unsupported, task.id


def services_for(suite: Suite, solver: Solver) -> Services:
    graders = episode_graders(suite)
    made = make_services(solver)
    return replace(made, environment=environment_of, episode_grader=graders.__getitem__, user=user_of)


async def attempt(suite: Suite, solver: Solver, spec: SolverSpec, task: Task) -> TrialResult:
    services = services_for(suite, solver)
    plan = make_plan(task, solver=spec)
    assert isinstance(services.store, MemoryStore)
    services.store.create_run(make_row([task]))
    services.store.plan([plan])
    return await Trial(plan, services).run()


async def test_gold_passes_every_task(suite: Suite) -> None:
    found = {task.id: await attempt(suite, Reference(), REFERENCE, task) for task in suite.tasks}
    assert {id_: (one.outcome, one.detail) for id_, one in found.items() if one.outcome is not Outcome.PASSED} == {}


async def test_doing_nothing_passes_none(suite: Suite) -> None:
    found = {task.id: await attempt(suite, Noop(), SolverSpec(name="noop"), task) for task in suite.tasks}
    assert {id_: one.outcome for id_, one in found.items() if one.outcome is not Outcome.FAILED} == {}


async def test_every_mutant_fails(suite: Suite) -> None:
    survived = []
    for task in suite.tasks:
        for mutant in mutants(task.solution, task.mutations, seed=0, count=20):
            spec = REFERENCE.model_copy(update={"options": {"mutant": mutant.name}})
            result = await attempt(suite, Mutated(), spec, task)
            if result.outcome is not Outcome.FAILED:
                survived.append((task.id, mutant.name, result.outcome, result.detail))
    assert survived == []
