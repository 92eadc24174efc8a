"""Mutants: declared first, then by seed, each one different."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.mutations.choose import mutants
from harness.mutations.declared import apply_mutation
from harness.mutations.edits import Operator
from harness.records.errors import TaskError
from harness.records.task import FileTree, Mutation, Solution, TreeFile

SOLUTION = Solution(
    files=FileTree(
        files=(
            TreeFile(
                path="solve.sh", content=b"sort -u words.txt | head -3 > out\ncut -d, -f2 a.csv > b\n", mode=0o755
            ),
            TreeFile(path="fix.patch", content=b"--- a/f\n+++ b/f\n@@ -1 +1,2 @@\n-x\n+y = 1\n+z = 2\n"),
            TreeFile(path="data.bin", content=bytes(range(256))),
        )
    ),
    env={"A": "b"},
)
DECLARED = (
    Mutation(name="keeps duplicates", find="sort -u", replace="sort"),
    Mutation(name="wrong column", find="-f2", replace="-f1"),
)


def test_declared_mutations_come_first_and_change_only_their_file() -> None:
    first, second, *others = mutants(SOLUTION, DECLARED, seed=3, count=10)
    assert (first.name, first.operator, first.place) == ("keeps duplicates", Operator.DECLARED, "solve.sh")
    assert second.name == "wrong column"
    script = first.solution.files.get("solve.sh")
    assert script is not None
    assert script.content.startswith(b"sort words.txt")
    assert script.mode == 0o755
    assert first.solution.files.get("data.bin") == SOLUTION.files.get("data.bin")
    assert first.solution.env == SOLUTION.env
    assert len(others) == 8
    assert Operator.DECLARED not in {mutant.operator for mutant in others}


def test_operators_take_turns_over_scripts_and_diffs() -> None:
    operators = {mutant.operator for mutant in mutants(SOLUTION, (), seed=0, count=8)}
    assert {Operator.DROP_COMMAND, Operator.DROP_STAGE, Operator.DROP_FLAG, Operator.DROP_ADDED} <= operators


@given(st.integers(), st.integers(0, 60))
def test_mutants_are_distinct_and_follow_from_the_seed(seed: int, count: int) -> None:
    chosen = mutants(SOLUTION, DECLARED, seed=seed, count=count)
    assert chosen == mutants(SOLUTION, DECLARED, seed=seed, count=count)
    assert len(chosen) <= count
    assert len({str(mutant.solution) for mutant in chosen}) == len(chosen)
    assert len({mutant.name for mutant in chosen}) == len(chosen)
    assert SOLUTION not in [mutant.solution for mutant in chosen]
    assert chosen == mutants(SOLUTION, DECLARED, seed=seed, count=60)[:count]


def test_seeds_differ() -> None:
    assert mutants(SOLUTION, (), seed=1, count=5) != mutants(SOLUTION, (), seed=2, count=5)


def test_bytes_that_are_no_utf8_survive() -> None:
    files = FileTree(files=(TreeFile(path="solve.sh", content=b"printf 'caf\xe9 10' > out\r\n"),))
    contents = []
    for mutant in mutants(Solution(files=files), (), seed=0, count=20):
        file = mutant.solution.files.get("solve.sh")
        assert file is not None
        contents.append(file.content)
    assert b"printf 'caf\xe9 11' > out\r\n" in contents


@pytest.mark.parametrize(
    ("mutation", "message"),
    [
        (Mutation(name="m", find="tac", replace="cat"), "'tac' does not stand in solve.sh"),
        (Mutation(name="m", file="gone.py", find="a", replace="b"), "the solution has no 'gone.py'"),
        (Mutation(name="m", find="sort", replace="sort"), "it changes nothing"),
    ],
)
def test_a_declared_mutation_that_does_not_apply_is_an_error(mutation: Mutation, message: str) -> None:
    with pytest.raises(TaskError, match=message) as caught:
        apply_mutation(SOLUTION, mutation)
    assert caught.value.place == "mutation 'm'"
    assert caught.value.remedy
