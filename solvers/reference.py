"""The gold solver: runs the task's own reference solution through the interface that agents use."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from harness.protocols import Episode, Given, SolverConversation
from harness.records.errors import ConfigError
from harness.records.execution import ExecResult
from harness.records.task import Solution

SOLUTION_FOLDER = "/solution"


class NoSolution(Exception):
    """The task ships no reference solution."""


class Reference:
    """Puts `solution/` at /solution and runs its script with bash in the workdir, as Harbor does."""

    name = "reference"
    version = "1"
    actor = "reference"
    uses_solution = True
    isolation = "inline"
    converses = True

    @staticmethod
    def check_options(options: Mapping[str, Any]) -> None:
        """Raises ConfigError: there are none."""
        if options:
            raise ConfigError(f"the reference solver has no option {next(iter(options))!r}; it takes none")

    @staticmethod
    def check_solutions(options: Mapping[str, Any], given: Mapping[str, Given]) -> tuple[str, ...]:
        """Says which tasks have no solution. Raises ConfigError when none has one."""
        return without_solution(given)

    async def run(self, episode: Episode) -> None:
        if episode.solution is None or not episode.solution.files:
            raise NoSolution("the task ships no reference solution")
        await run_solution(episode, episode.solution)


def without_solution(given: Mapping[str, Given]) -> tuple[str, ...]:
    """A note on the tasks that ship no solution, if there are any. Raises ConfigError when none of them does."""
    lacking = [task for task, has in given.items() if has.solution is None or not has.solution.files]
    if lacking and len(lacking) == len(given):
        raise ConfigError(
            "no task of this run ships a reference solution", remedy="choose other tasks or another solver"
        )
    if lacking:
        return (f"{len(lacking)} of {len(given)} tasks ship no reference solution ({lacking[0]}, …): no grade there",)
    return ()


async def run_solution(episode: Episode, solution: Solution) -> ExecResult | None:
    """Carry a solution into the sandbox and run its script, or lead the conversation that it writes down. Its exit
    code is recorded; the grader judges."""
    if episode.conversation is not None:
        await converse_by(episode.conversation, solution)
        return None
    await episode.sandbox.put(solution.files, SOLUTION_FOLDER)
    return await episode.sandbox.exec(["bash", f"{SOLUTION_FOLDER}/{solution.script}"], env=solution.env)


async def converse_by(conversation: SolverConversation, solution: Solution) -> None:
    """Do and say what the solution's script has, a JSON object a line; once the user has ended it, no more."""
    script = solution.files.get(solution.script)
    for line in script.content.decode("utf-8", "surrogatepass").splitlines() if script is not None else ():
        step = json.loads(line)
        if "say" in step:
            await conversation.say(step["say"])
        else:
            await conversation.call(step["call"], step["arguments"], namespace=step.get("namespace", "agent"))
