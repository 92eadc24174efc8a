"""Mutants: which wrong solutions a cycle tries, and what is known of those that the grader passed."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from harness.audit.measure import Measured, settled, spoiled
from harness.mutations.choose import Mutant, mutants
from harness.mutations.edits import Operator
from harness.protocols import EvidenceStore
from harness.records.audit import Cause, Evidence, Sentinel, Survivor
from harness.records.base import digest_of
from harness.records.errors import TaskError
from harness.records.run import TrialRow
from harness.records.task import Solution, Task
from harness.records.vocabulary import Outcome
from harness.runner.run import trial_seed

MOST_DIFF = 4000  # characters of one survivor's diff


def mutants_of(task: Task, seed: int, count: int) -> tuple[Mutant, ...]:
    """The first `count` mutants of a task, numbered as the mutated solver numbers them in a run of that seed.

    None where the task has no solution, or a declared mutation does not apply: that is for `assay suite lint`.
    """
    if not task.solution.files:
        return ()
    try:
        return mutants(task.solution, task.mutations, seed=trial_seed(seed, task.id, 0), count=count)
    except TaskError:
        return ()


def measure_mutants(
    store: EvidenceStore,
    runs: Mapping[int, str],
    tried: Mapping[str, tuple[Mutant, ...]],
    tasks: Mapping[str, Task],
    fingerprints: Mapping[str, str],
    which: Measured,
) -> dict[str, Evidence]:
    """Evidence by task from the mutated runs, by the number of the mutant that each tried."""
    trials: dict[str, list[tuple[int, TrialRow]]] = {}
    for number, run in sorted(runs.items()):
        for task, rows in settled(store.trials(run)).items():
            seen = [row for row in rows if row.result is not None and not spoiled(row.result)]
            trials.setdefault(task, []).extend((number, row) for row in seen)
    return {
        name: _evidence(store, tasks[name], tried[name], found, fingerprints[name], which)
        for name, found in trials.items()
        if found
    }


def _evidence(
    store: EvidenceStore,
    task: Task,
    tried: tuple[Mutant, ...],
    trials: list[tuple[int, TrialRow]],
    fingerprint: str,
    which: Measured,
) -> Evidence:
    passed = [(number, row) for number, row in trials if row.result and row.result.outcome is Outcome.PASSED]
    survivors = tuple(
        Survivor(
            number=number,
            name=tried[number].name,
            declared=tried[number].operator is Operator.DECLARED,
            digest=solution_digest(tried[number].solution),
            trial=row.trial,
            diff=solution_diff(task.solution, tried[number].solution),
            output=_output(store, row.trial),
        )
        for number, row in passed
    )
    return Evidence(
        sentinel=Sentinel.MUTANT,
        cycle=which.cycle,
        at=which.at,
        fingerprint=fingerprint,
        passed=len(passed),
        graded=sum(row.result is not None and row.result.outcome.graded for _, row in trials),
        attempts=len(trials),
        cause=Cause.MUTANT_PASSED if passed else None,
        detail=f"{len(passed)} of {len(trials)} wrong solutions passed" if passed else "",
        trials=tuple(row.trial for _, row in trials),
        survivors=survivors,
    )


def _output(store: EvidenceStore, trial: str) -> str | None:
    """The blob of what the grader printed, or None."""
    for event in store.events(trial, ["grade"]):
        return event.blobs.get("stdout") or event.blobs.get("stderr")
    return None


def solution_digest(solution: Solution) -> str:
    """What makes two mutants of a task the same."""
    return digest_of(solution.files.digests())


def solution_diff(reference: Solution, mutant: Solution) -> str:
    """What differs between two solutions, as a unified diff without its header's noise."""
    lines: list[str] = []
    before = {file.path: file.content for file in reference.files.files}
    for file in mutant.files.files:
        old = before.get(file.path, b"")
        if old != file.content:
            lines += difflib.unified_diff(
                _lines(old), _lines(file.content), f"reference/{file.path}", f"mutant/{file.path}", n=1, lineterm=""
            )
    text = "\n".join(lines)
    return text if len(text) <= MOST_DIFF else f"{text[:MOST_DIFF]}\n[… {len(text) - MOST_DIFF} more characters]"


def _lines(content: bytes) -> list[str]:
    return content.decode("utf-8", "backslashreplace").splitlines()


def most_mutants(tried: Iterable[tuple[Mutant, ...]]) -> int:
    """The highest number of mutants that any task has."""
    return max((len(found) for found in tried), default=0)
