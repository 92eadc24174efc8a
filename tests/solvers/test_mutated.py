"""The wrong reference: which mutant is chosen, and that it is run as the reference is."""

from __future__ import annotations

from typing import Any

import pytest

from harness.records.errors import ConfigError
from harness.records.task import FileTree, Mutation, Solution, TreeFile
from solvers.mutated import Mutated, NoMutant, choose
from solvers.reference import NoSolution, Reference
from tests.solvers.scenes import StageSandbox, make_episode

pytestmark = pytest.mark.anyio

SCRIPT = b"sort -u in.txt | head -n 5 > out.txt\ncp helper.awk done\n"
SOLUTION = Solution(
    files=FileTree(
        files=(TreeFile(path="solve.sh", content=SCRIPT), TreeFile(path="helper.awk", content=b"{ print $2 }\n"))
    ),
    env={"LANG": "C"},
)
DECLARED = (
    Mutation(name="keeps duplicates", find="sort -u", replace="sort"),
    Mutation(name="prints another column", file="helper.awk", find="$2", replace="$1"),
)


async def attempt(options: dict[str, Any], **changes: Any) -> tuple[StageSandbox, list[tuple[str, Any]]]:
    sandbox, notes = StageSandbox(), []
    episode = make_episode(
        sandbox,
        options=options,
        note=lambda kind, payload: notes.append((kind, payload)),
        **{"solution": SOLUTION, "mutations": DECLARED, **changes},
    )
    await Mutated().run(episode)
    return sandbox, notes


def content(sandbox: StageSandbox, path: str = "solve.sh") -> bytes:
    file = sandbox.trees["/solution"].get(path)
    assert file is not None
    return file.content


@pytest.mark.parametrize("asked", [{}, {"mutant": 0}, {"mutant": "0"}, {"mutant": "keeps duplicates"}])
async def test_the_first_declared_mutant(asked: dict[str, Any]) -> None:
    sandbox, notes = await attempt(asked)
    assert content(sandbox) == SCRIPT.replace(b"sort -u", b"sort")
    assert notes == [("mutant", {"name": "keeps duplicates", "operator": "declared", "place": "solve.sh"})]


async def test_a_mutant_is_run_as_the_reference_is() -> None:
    sandbox, _ = await attempt({"mutant": "1"})
    reference = StageSandbox()
    await Reference().run(make_episode(reference, solution=SOLUTION))
    assert (sandbox.commands, sandbox.asked) == (reference.commands, reference.asked)
    assert sandbox.asked[0]["env"] == {"LANG": "C"}
    assert content(sandbox, "helper.awk") == b"{ print $1 }\n"
    assert content(sandbox) == SCRIPT
    assert (Mutated.actor, Mutated.uses_solution) == (Reference.actor, Reference.uses_solution)


async def test_beyond_the_declared_ones_they_are_generated_by_seed() -> None:
    by_number = {}
    for number in range(2, 6):
        sandbox, notes = await attempt({"mutant": number})
        again, _ = await attempt({"mutant": number})
        assert content(sandbox) == content(again)
        by_number[notes[0][1]["name"]] = sandbox.trees["/solution"]
    assert len(by_number) == 4
    assert SOLUTION.files not in by_number.values()
    for name, tree in by_number.items():
        named, _ = await attempt({"mutant": name}, seed=99)  # a name finds it whatever the seed
        assert named.trees["/solution"] == tree


@pytest.mark.parametrize("value", [-1, "", " ", 1.5, True, None, [0]])
async def test_what_is_neither_number_nor_name_is_refused(value: Any) -> None:
    with pytest.raises(ConfigError, match="neither a number from 0 nor a name"):
        await attempt({"mutant": value})


async def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(ConfigError, match="no option 'mutants'"):
        Mutated.check_options({"mutants": 1})


async def test_what_does_not_exist_is_said() -> None:
    with pytest.raises(NoMutant, match="did you mean 'keeps duplicates'"):
        await attempt({"mutant": "keeps duplicate"})
    with pytest.raises(NoMutant, match="so there is no number 99999"):
        await attempt({"mutant": 99_999})
    bare = Solution(files=FileTree(files=(TreeFile(path="solve.sh", content=b"\n"),)))
    with pytest.raises(NoMutant, match="it has none"):
        choose(make_episode(StageSandbox(), options={"mutant": "x"}, solution=bare))
    with pytest.raises(NoSolution):
        await attempt({}, solution=Solution())
    with pytest.raises(NoSolution):
        await attempt({}, solution=None)
