"""The gold solver: runs the task's own reference solution through the interface that agents use."""

from __future__ import annotations

from harness.protocols import Episode
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

    async def run(self, episode: Episode) -> None:
        if episode.solution is None or not episode.solution.files:
            raise NoSolution("the task ships no reference solution")
        await run_solution(episode, episode.solution)


async def run_solution(episode: Episode, solution: Solution) -> ExecResult:
    """Carry a solution into the sandbox and run its script. Its exit code is recorded; the grader judges."""
    await episode.sandbox.put(solution.files, SOLUTION_FOLDER)
    return await episode.sandbox.exec(["bash", f"{SOLUTION_FOLDER}/{solution.script}"], env=solution.env)
