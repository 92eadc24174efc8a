"""Choose mutants of a reference solution: the declared ones first, then others by seed."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.mutations.declared import apply_mutation
from harness.mutations.diff import diff_edits, looks_like_diff
from harness.mutations.edits import Edit, Operator, apply_edit, distinct
from harness.mutations.literals import literal_edits
from harness.mutations.shell import shell_edits
from harness.records.base import digest_of
from harness.records.task import Mutation, Solution, TreeFile

_SHELLS = (".sh", ".bash")
_CODE = (".py", ".awk", ".sql", ".jq", ".sed", ".pl")
_DIFFS = (".patch", ".diff")


@dataclass(frozen=True, slots=True)
class Mutant:
    """A wrong reference. `place` is a file of the solution, with the line for an operator's."""

    name: str
    solution: Solution
    operator: Operator
    place: str


def mutants(solution: Solution, declared: Sequence[Mutation], *, seed: int, count: int) -> tuple[Mutant, ...]:
    """Up to `count` distinct mutants, none equal to the original; the same for the same arguments.

    The declared mutations come first, in their order. The rest is drawn so that the operators take turns. Raises
    TaskError for a declared mutation that does not apply.
    """
    chosen: list[Mutant] = []
    seen = {_content(solution)}
    for mutant in _in_order(solution, declared, seed):
        if len(chosen) >= count:
            break
        content = _content(mutant.solution)
        if content not in seen:
            seen.add(content)
            chosen.append(mutant)
    return tuple(chosen)


def edits_of(file: TreeFile) -> tuple[Edit, ...]:
    """All single mutations of one file of a solution; none for one that is neither script, diff nor code."""
    text = _text(file)
    first_line = text.partition("\n")[0]
    if file.path.endswith(_SHELLS) or (first_line.startswith("#!") and "sh" in first_line):
        return shell_edits(text)
    if file.path.endswith(_DIFFS) or looks_like_diff(text):
        return diff_edits(text)
    if file.path.endswith(_CODE):
        return distinct(literal_edits(text), text)
    return ()


def _in_order(solution: Solution, declared: Sequence[Mutation], seed: int) -> Iterator[Mutant]:
    for mutation in declared:
        yield Mutant(mutation.name, apply_mutation(solution, mutation), Operator.DECLARED, mutation.file)
    for file, edit in _taking_turns(solution, random.Random(seed)):
        changed = apply_edit(_text(file), edit).encode("utf-8", "surrogateescape")
        files = solution.files.with_file(file.model_copy(update={"content": changed}))
        place = f"{file.path}:{edit.line}"
        yield Mutant(
            f"{edit.operator} {place} ({edit.detail})",
            solution.model_copy(update={"files": files}),
            edit.operator,
            place,
        )


def _taking_turns(solution: Solution, rng: random.Random) -> Iterator[tuple[TreeFile, Edit]]:
    """Every edit once: shuffled within its operator, one operator after the other."""
    piles: dict[Operator, list[tuple[TreeFile, Edit]]] = {}
    for file in solution.files.files:
        for edit in edits_of(file):
            piles.setdefault(edit.operator, []).append((file, edit))
    order = sorted(piles)
    rng.shuffle(order)
    for operator in order:
        rng.shuffle(piles[operator])
    while any(piles.values()):
        for operator in order:
            if piles[operator]:
                yield piles[operator].pop()


def _text(file: TreeFile) -> str:
    return file.content.decode("utf-8", "surrogateescape")


def _content(solution: Solution) -> str:
    return digest_of(solution.files.digests())
