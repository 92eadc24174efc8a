"""The operators on the solutions that come with Assay: several mutants of each, all scripts that a shell can read."""

from __future__ import annotations

import subprocess

import pytest

from harness.formats.suite import bundled_suites, default_formats, gather
from harness.mutations.choose import mutants
from harness.records.task import Task

BUNDLED = gather(bundled_suites()["terminal"], default_formats()).tasks
FIRST_OF_FAMILY = {task.family: task for task in reversed(BUNDLED)}


@pytest.mark.parametrize("family", sorted(FIRST_OF_FAMILY))
def test_mutants_of_a_bundled_solution_are_well_formed(family: str) -> None:
    task: Task = FIRST_OF_FAMILY[family]
    made = mutants(task.solution, task.mutations, seed=1, count=20)
    assert len(made) >= len(task.mutations) + 3
    for mutant in made:
        script = mutant.solution.files.get(mutant.solution.script)
        assert script is not None
        check = subprocess.run(["bash", "-n"], input=script.content, capture_output=True, check=False)
        assert check.returncode == 0, (mutant.name, check.stderr)
