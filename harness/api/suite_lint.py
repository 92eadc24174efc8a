"""Lint of a suite, with what is only seen by trying: whether the reference actions of its conversations go through.

Everything else is read from the files (:mod:`harness.formats.lint`). A conversation needs no engine: its reference is
carried out here, each in an instance of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

from harness.api.environments import environment_of
from harness.formats.findings import Finding, Level, told_together
from harness.formats.lint import lint
from harness.formats.suite import default_formats, find_suite, gather
from harness.grading.episodes.criteria import criteria_of
from harness.grading.episodes.reference import carry_out
from harness.protocols import Environment
from harness.records.conversation import Conversation
from harness.records.environment import Opening
from harness.records.errors import AssayError
from harness.records.task import Task
from harness.runner.conversing import close_with


def lint_suite(path_or_name: str | Path) -> tuple[Finding, ...]:
    """All findings about a suite, task or family, the worst first. Raises ConfigError when there is none there."""
    findings = lint(path_or_name)
    tasks = gather(find_suite(path_or_name), default_formats()).tasks
    return told_together([*findings, *reference_findings(tasks)])


def reference_findings(tasks: Iterable[Task]) -> Iterator[Finding]:
    """What the reference actions of conversations come to in their environments."""
    worlds: dict[tuple[str, str], Environment | AssayError] = {}
    with ExitStack() as stack:
        for task in tasks:
            talk = task.conversation
            if talk is None:
                continue
            key = (talk.environment, talk.folder)
            if key not in worlds:
                worlds[key] = _opened(talk, stack)
            yield from _tried(task, talk, worlds[key])


def _opened(talk: Conversation, stack: ExitStack) -> Environment | AssayError:
    try:
        made = environment_of(talk)
        close_with(stack, made)
        made.capabilities  # noqa: B018  # a carrier is started by this
    except AssayError as error:
        return error
    return made


def _tried(task: Task, talk: Conversation, world: Environment | AssayError) -> Iterator[Finding]:
    if isinstance(world, AssayError):
        yield _finding(
            task, Level.WARNING, "reference-untried", f"no reference action was tried: {world.message}", world.remedy
        )
        return
    try:
        with world.open(Opening(talk.mode, talk.data, talk.initial)) as session:
            before = session.digest() if world.capabilities.digest else ""
            carried = carry_out(session, criteria_of(talk).actions or ())
            after = session.digest() if world.capabilities.digest else ""
    except AssayError as error:
        yield _finding(task, Level.ERROR, "reference-fault", f"the reference cannot be carried out: {error}")
        return
    for what in carried.missing:
        yield _finding(task, Level.ERROR, "reference-tool", what, "name a tool of the environment, and its side")
    for what in carried.failed:
        yield _finding(task, Level.WARNING, "reference-refused", what, "mend its arguments, or leave it out")
    if task.requires_write and before == after and before and not carried.missing:
        message = "requires_write = true, and the reference leaves the state as it was"
        yield _finding(task, Level.WARNING, "reference-idle", message, "add the action, or set requires_write = false")
    elif not task.requires_write and before != after:
        message = "requires_write = false, and the reference changes the state"
        yield _finding(task, Level.WARNING, "reference-writes", message, "set requires_write = true")


def _finding(task: Task, level: Level, code: str, message: str, remedy: str = "") -> Finding:
    return Finding(level, code, task.source or task.id, message, remedy, subject=task.family)
