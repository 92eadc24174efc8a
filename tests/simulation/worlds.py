"""Small suites for tests of the simulation."""

from __future__ import annotations

from typing import Any

from harness.records.task import FileTree, ImagePin, Mutation, Solution, Task, TreeFile

LEVELS = ("easy", "medium", "hard")


def make_task(number: int, family: str = "demo", **changes: Any) -> Task:
    """A task whose solution writes its own number to `answer`, and whose mutation writes another."""
    script = f"# the whole of it\necho {number} > answer\n".encode()
    values: dict[str, Any] = {
        "id": f"{family}/{number:03d}",
        "family": family,
        "instruction": f"Write {number} to `answer`.\n\nNothing  else; family {family}.\n",
        "image": ImagePin(reference="demo:1"),
        "difficulty": LEVELS[number % 3],
        "solution": Solution(files=FileTree(files=(TreeFile(path="solve.sh", content=script),))),
        "mutations": (Mutation(name="another number", find=f"echo {number}", replace=f"echo {number + 1}"),),
        **changes,
    }
    return Task(**values)


def make_tasks(count: int, families: int = 10) -> tuple[Task, ...]:
    """Tasks of several families and all difficulties."""
    return tuple(make_task(number, f"family-{number % families}") for number in range(count))
