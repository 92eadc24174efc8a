"""Which episodes an archive should hold and does not. Pure.

What a source says it planned is a plan. Where it says nothing and the file is cut off, its complete part may show one:
trials (or tasks) that are all alike, but for the one at which it breaks off. How much more is missing cannot be known
then, so that the count is a least one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from harness.records.archive import CUT, ArchiveRun, Finding
from harness.replay.recorded import run_prefix

TaskRepeat = tuple[str, int]
_Row = TypeVar("_Row")
_Entry = TypeVar("_Entry")


class Parts(NamedTuple):
    """What of an archive could not be read: `lost` parts, of which one cut is one however often it is told."""

    lost: int
    cut: bool


@dataclass(frozen=True)
class Missing:
    """Episodes of one archive that are not there. `named` by run, task and trial; `unnamed` are further parts that
    could not be read. `at_least`: there may be more."""

    named: tuple[tuple[str, TaskRepeat], ...] = ()
    unnamed: int = 0
    at_least: bool = False

    @property
    def count(self) -> int:
        return len(self.named) + self.unnamed

    @property
    def names(self) -> tuple[str, ...]:
        """TASK/TRIAL, with the run before it where a file may hold several."""
        return tuple(f"{run_prefix(run)}{task}/{repeat}" for run, (task, repeat) in self.named)


def parts_of(unread: Iterable[Finding]) -> Parts:
    """What the findings come to."""
    rules = [finding.rule for finding in unread]
    return Parts(sum(rule != CUT for rule in rules) + (CUT in rules), CUT in rules)


def missing_of(
    runs: Iterable[ArchiveRun], found: Mapping[str, Mapping[TaskRepeat, TaskRepeat]], parts: Parts
) -> Missing:
    """What is missing of an archive's runs. `found`: the trials that are there, by the run's key: as each is labelled,
    and as what it counts (the same, or of the task that its content names)."""
    named: list[tuple[str, TaskRepeat]] = []
    stated = True
    for run in runs:
        stated = stated and run.states_plan
        named += [(run.key, slot) for slot in gaps_of(run, found.get(run.key, {}), cut=parts.cut)]
    return Missing(
        named=tuple(named),
        unnamed=max(0, parts.lost - len(named)) if not (stated and parts.cut) else 0,
        at_least=parts.cut and not stated,
    )


def gaps_of(run: ArchiveRun, found: Mapping[TaskRepeat, TaskRepeat], *, cut: bool) -> list[TaskRepeat]:
    """The trials of a run that are not there, trial by trial: by its plan, or, of a file that was cut off, by the rows
    that its complete part makes."""
    if run.tasks:
        repeats = run.repeats or max((repeat + 1 for _, repeat in found), default=1)
        return lacking({(task, repeat) for repeat in range(repeats) for task in run.tasks}, found)
    return _sorted(unfinished_row(set(found.values()))) if cut else []


def lacking(plan: set[TaskRepeat], found: Mapping[TaskRepeat, TaskRepeat]) -> list[TaskRepeat]:
    """What of a plan no trial counts as. Where several count as the same one, that is more than the plan has room for:
    then as many as no label names, and these before others."""
    gaps = _sorted(plan.difference(found.values()))
    return _sorted(sorted(gaps, key=found.__contains__)[: len(plan.difference(found))])


def unfinished_row(found: Collection[TaskRepeat]) -> list[TaskRepeat]:
    """What the last row of a grid lacks that was written trial by trial, or task by task: all rows but one are alike,
    and that one is a part of such a row. Nothing where the trials make no such grid."""
    by_trial: dict[int, set[str]] = {}
    by_task: dict[str, set[int]] = {}
    for task, repeat in found:
        by_trial.setdefault(repeat, set()).add(task)
        by_task.setdefault(task, set()).add(repeat)
    short_trial, short_task = _short(by_trial), _short(by_task)
    if short_trial is not None:
        repeat, lacking = short_trial
        return [(task, repeat) for task in lacking]
    return [(short_task[0], repeat) for repeat in short_task[1]] if short_task is not None else []


def _short(rows: Mapping[_Row, set[_Entry]]) -> tuple[_Row, set[_Entry]] | None:
    """The one row that is shorter than all others, which are alike, and what it lacks of them."""
    whole = max(rows.values(), key=len, default=set())
    short = [row for row, entries in rows.items() if entries != whole]
    if len(rows) < 2 or len(short) != 1 or not rows[short[0]] < whole:
        return None
    return short[0], whole - rows[short[0]]


def _sorted(slots: Iterable[TaskRepeat]) -> list[TaskRepeat]:
    """Trial by trial, tasks that are numbers by value."""
    return sorted(slots, key=lambda slot: (slot[1], int(slot[0]) if slot[0].isdecimal() else 0, slot[0]))
