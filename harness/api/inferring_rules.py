"""The rule that an archive's recorded verdicts were made by: the first known one that gives all of them again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from harness.records.errors import ConfigError
from harness.records.replays import ReplayReport

SAMPLE = 200  # episodes that a rule is tried on
_AS_IT_STOOD = "+without-end"
_RULES = {
    "tau-bench": ("tau-bench@718ffa1", "tau-bench@until-718ffa1"),
    "hal": ("tau-bench@718ffa1", "tau-bench@hal-cb7cf03", "tau-bench@until-718ffa1"),
    "tau2": ("tau2@1.0", "tau2@0.1"),
    "assay": ("conversation@1",),
}


class Rule(NamedTuple):
    """A grader by name, and the evidence that it is the recorded one."""

    grader: str
    note: str


def recorded_rule(format: str, graded_by: Callable[[str], ReplayReport], *, restoring: bool) -> Rule:
    """The rule of an archive of that format. `graded_by` replays its first episodes under a grader.

    `restoring`: what nothing ended is to be graded as it stood, or there would be nothing to restore. Raises
    ConfigError when no known rule gives all recorded verdicts again, or none was recorded.
    """
    told = []
    for name in _candidates(format, restoring=restoring):
        found = graded_by(name).reproduced
        if found is None or not found.compared:
            continue
        if found.same == found.compared:
            stood = "; what nothing ended is graded as it stood" if name.endswith(_AS_IT_STOOD) else ""
            of = f"{found.same} of {found.compared} recorded verdicts"
            return Rule(name, f"--grader {name}: it gives {of} again, of the first {SAMPLE} episodes{stood}")
        told.append(f"{name} gives {found.same} of {found.compared} again")
    why = "; ".join(told) or "no recorded verdict could be compared"
    raise ConfigError(
        f"by which rule it was graded it does not show: {why}",
        place="--grader",
        remedy=f"name it, e.g. --grader {next(_candidates(format, restoring=restoring), 'ID@VERSION')}",
    )


def _candidates(format: str, *, restoring: bool) -> Iterator[str]:
    for name in _RULES.get(format, ()):
        if restoring and format != "assay":
            yield name + _AS_IT_STOOD
        yield name
