"""Everything that is wrong, doubtful or exposed about a suite, at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from harness.formats.family import read_family, unused_keys
from harness.formats.findings import Finding, Level, told_together
from harness.formats.harbor import VARIANTS
from harness.formats.lint_rules import findings_about
from harness.formats.places import flatten
from harness.formats.suite import Gathered, default_formats, find_suite, gather, load_suite
from harness.protocols import TaskFormat
from harness.records.base import digest_of
from harness.records.errors import TaskError
from harness.records.task import FileTree, Task


def lint(path_or_name: str | Path, formats: Sequence[TaskFormat] | None = None) -> tuple[Finding, ...]:
    """All findings about a suite, task or family, the worst first. Raises ConfigError when there is none there."""
    folder = find_suite(path_or_name)
    formats = default_formats() if formats is None else formats
    gathered = gather(folder, formats)
    findings = [_load_finding(error) for error in gathered.errors]
    findings += [finding for task in gathered.tasks for finding in findings_about(task)]
    findings += _unused(gathered)
    findings += _duplicates(gathered.tasks)
    findings += _lock_findings(folder, formats, gathered)
    return told_together(findings)


def _load_finding(error: TaskError) -> Finding:
    return Finding(Level.ERROR, "load", error.place, error.message, error.remedy)


def _lock_findings(folder: Path, formats: Sequence[TaskFormat], gathered: Gathered) -> Iterator[Finding]:
    if gathered.errors:
        return  # a lock of what cannot be loaded says nothing
    try:
        suite = load_suite(folder, formats)
    except TaskError as error:
        for single in flatten(error):
            yield Finding(Level.ERROR, "lock", single.place, single.message, single.remedy)
        return
    for task in suite.tasks:
        if task.image.digest is None and task.conversation is None:  # environments are pinned by what is here
            message = f"image {task.image.reference!r} is not pinned: a run refuses it"
            yield Finding(
                Level.WARNING, "image-unlocked", task.source, message, "run `assay suite lock`", subject=suite.name
            )


def _unused(gathered: Gathered) -> Iterator[Finding]:
    for folder in gathered.folders:
        table = folder / VARIANTS
        if not table.is_file():
            continue
        try:
            family = read_family(folder)
        except TaskError:
            continue  # told already, as what kept it from loading
        for key in unused_keys(family):
            message = f"no template uses the variants' key {key!r}"
            yield Finding(Level.WARNING, "variant-key-unused", str(table), message, "remove it, or use it")


def _duplicates(tasks: Iterable[Task]) -> Iterator[Finding]:
    """Tasks that are the same work under several ids: they count as one measurement, not as many."""
    groups: dict[str, list[Task]] = {}
    for task in tasks:
        if task.solution.files and task.grading.tests:
            groups.setdefault(_content_digest(task.solution.files, task.grading.tests), []).append(task)
    for group in groups.values():
        by_place: dict[str, list[Task]] = {}
        for task in group:
            environment = _content_digest(task.environment.files, task.environment.setup_files)
            by_place.setdefault(f"{environment} {task.image.reference} {task.environment.env}", []).append(task)
        for same in by_place.values():
            if len(same) > 1:
                message = f"the same solution, tests and environment: {_names(same)}"
                yield Finding(Level.WARNING, "duplicate", same[0].source, message, "keep one")
        if len(by_place) > 1:
            message = f"the same solution and tests, in other environments: {_names(group)}"
            yield Finding(Level.NOTE, "same-solution", group[0].source, message)


def _content_digest(*trees: FileTree) -> str:
    return digest_of([tree.digests() for tree in trees])


def _names(tasks: Sequence[Task]) -> str:
    more = f" and {len(tasks) - 4} more" if len(tasks) > 4 else ""
    return ", ".join(task.id for task in tasks[:4]) + more
