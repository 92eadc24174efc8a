"""What every solver promises: those that ship, the tests' own, and one from a user's file."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from harness import plugins
from harness.api.wiring import SolverPlugin, find_solver, make_solver
from harness.protocols import Episode, Given, Solver
from harness.records.errors import ConfigError, Revoked
from harness.records.execution import ExecResult
from harness.records.task import FileTree, Mutation, Solution, TreeFile
from harness.testing import ScriptedModel, calls, says
from tests.solvers.scenes import StageSandbox, make_episode

pytestmark = pytest.mark.anyio

ACTORS = Path(__file__).parents[1] / "integration" / "actors.py"
OPTIONS: dict[str, dict[str, Any]] = {"command": {"command": "my-agent"}}
SHIPPED = plugins.names("solvers")
EVERY = (*SHIPPED, f"{ACTORS}:Obedient", f"{ACTORS}:Talkative")
SCRIPT = FileTree(files=(TreeFile(path="solve.sh", content=b"echo 42 > answer\n"),))
SOLUTION = Solution(files=SCRIPT)
MUTATIONS = (Mutation(name="another number", find="42", replace="41"),)


@pytest.fixture(params=EVERY, ids=lambda name: str(name).rpartition("/")[2])
def plugin(request: pytest.FixtureRequest) -> SolverPlugin:
    return find_solver(request.param, OPTIONS.get(request.param, {}))


def script() -> ScriptedModel:
    return ScriptedModel(calls(("bash", {"command": "ls"})), says("done"))


def stage(plugin: SolverPlugin, sandbox: StageSandbox, **changes: Any) -> Episode:
    """An episode as the harness would give it to this solver."""
    given: dict[str, Any] = {"options": plugin.spec.options, "instruction": "echo 42 > answer\n"}
    if plugin.spec.uses_solution:
        given |= {"solution": SOLUTION, "mutations": MUTATIONS}
    return make_episode(sandbox, script() if plugin.needs_model else None, **{**given, **changes})


async def acted(plugin: SolverPlugin) -> list[Any]:
    sandbox = StageSandbox()
    await make_solver(plugin).run(stage(plugin, sandbox))
    return [*sandbox.commands, *sandbox.trees.values()]


def test_it_is_a_solver_and_says_what_it_is(plugin: SolverPlugin) -> None:
    solver = make_solver(plugin)
    assert isinstance(solver, Solver)
    assert solver.name
    assert plugin.spec.actor in ("agent", "reference")
    assert plugin.spec.uses_solution is (plugin.spec.actor == "reference")
    assert "/" not in plugin.label


async def test_it_returns_when_it_is_done_and_two_of_it_share_nothing(plugin: SolverPlugin) -> None:
    assert await acted(plugin) == await acted(plugin)


async def test_its_options_stay_as_they_are(plugin: SolverPlugin) -> None:
    options = copy.deepcopy(plugin.spec.options)
    await make_solver(plugin).run(stage(plugin, StageSandbox(), options=options))
    assert options == plugin.spec.options


async def test_a_gate_that_has_closed_ends_it(plugin: SolverPlugin) -> None:
    """Behind a closed gate nothing happens; a solver that went on for ever would hold its trial."""
    asked: list[object] = []

    def refuse(command: object) -> ExecResult:
        asked.append(command)
        raise Revoked("the budget is used up")

    episode = stage(plugin, StageSandbox(refuse))
    if plugin.spec.name == "noop":
        await make_solver(plugin).run(episode)
        assert not asked
    else:
        with pytest.raises(Revoked):
            await make_solver(plugin).run(episode)
        assert len(asked) == 1


@pytest.mark.parametrize("name", SHIPPED)
def test_an_option_that_none_of_ours_has_is_refused_at_once(name: str) -> None:
    with pytest.raises(ConfigError, match="has no option 'nonsense'"):
        find_solver(name, {**OPTIONS.get(name, {}), "nonsense": "1"})


@pytest.mark.parametrize("options", [{}, {"command": ""}, {"command": " "}, {"command": 3}, {"command": "a\0b"}])
def test_a_command_that_is_none_is_refused_at_once(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        find_solver("command", options)


def with_given(name: str, options: dict[str, Any], *given: Given) -> tuple[str, ...]:
    check = find_solver(name, options).make.check_solutions
    found: tuple[str, ...] = check(options, {f"t{number}": item for number, item in enumerate(given)})
    return found


HAS, HAS_NONE = Given(SOLUTION, MUTATIONS), Given(None)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("reference", {}),
        ("mutated", {}),
        ("mutated", {"mutant": "another number"}),
        ("mutated", {"mutant": "1"}),
    ],
)
def test_tasks_that_can_be_solved_are_nothing_to_talk_about(name: str, options: dict[str, Any]) -> None:
    assert with_given(name, options, HAS, HAS) == ()


@pytest.mark.parametrize("name", ["reference", "mutated"])
def test_tasks_without_a_solution_are_told_or_refused_when_there_is_no_other(name: str) -> None:
    (note,) = with_given(name, {}, HAS, HAS_NONE)
    assert note.startswith("1 of 2 tasks ship no reference solution (t1")
    with pytest.raises(ConfigError, match="no task of this run ships a reference solution"):
        with_given(name, {}, HAS_NONE, HAS_NONE)


def test_a_mutant_that_no_task_has_is_refused_and_one_that_some_lack_is_told() -> None:
    plain = Given(SOLUTION)
    (note,) = with_given("mutated", {"mutant": "another number"}, HAS, plain)
    assert note.startswith("1 of 2 tasks have no mutant called 'another number' (t1")
    with pytest.raises(
        ConfigError, match=r"no task of this run has a mutant called 'another numbr'.*did you mean 'another number'"
    ):
        with_given("mutated", {"mutant": "another numbr"}, HAS, HAS)
    with pytest.raises(ConfigError, match=r"has a mutant number 999 .*0 is the first"):
        with_given("mutated", {"mutant": "999"}, HAS, plain)


def test_a_declared_mutation_that_does_not_apply_is_its_own_tasks_fault() -> None:
    broken = Given(SOLUTION, (Mutation(name="gone", find="nowhere", replace="x"),))
    (note,) = with_given("mutated", {"mutant": "another number"}, HAS, broken)
    assert "1 of 2" in note
