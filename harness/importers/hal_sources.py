"""What a bare action list lacks, from files that the user names: reference actions by task, and executed calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.importers.attribution import Call
from harness.importers.container import Archive
from harness.importers.reports import listed, mapping
from harness.importers.tau_bench import executed
from harness.records.archive import ArchiveError, ImportOptions


def references_of(options: ImportOptions) -> dict[str, Mapping[str, Any]]:
    """Tasks with reference actions by id, of a list of tasks or a tau-bench archive; empty when no file was named."""
    if options.reference is None:
        return {}
    archive = Archive(options.reference)
    found: dict[str, Mapping[str, Any]] = {}
    for name in archive.names:
        for member in archive.members(name):
            value = mapping(member.value)
            task = mapping(mapping(value.get("info")).get("task")) or value
            if "task_id" in value and isinstance(task.get("actions"), list):
                found[str(value["task_id"])] = task
    if not found:
        raise ArchiveError(
            "no tasks with reference actions",
            place=options.reference,
            remedy="name a list of {task_id, actions: [{name, kwargs}]}, or a tau-bench archive",
        )
    return found


def actions_of(task: Mapping[str, Any] | None) -> list[Call] | None:
    """A task's reference actions; None where it lists none."""
    if task is None or not isinstance(task.get("actions"), list):
        return None
    return [(str(action.get("name")), action.get("kwargs")) for action in task["actions"] if isinstance(action, dict)]


def executed_of(options: ImportOptions) -> dict[tuple[str, int], list[Call]] | None:
    """What the agent did by (task, trial), from a tau-bench archive of the same episodes; None when none was named.

    Messages that a wrapper added to the list after the recorded episode are not in it, and stay unmatched.
    """
    if options.executed is None:
        return None
    archive = Archive(options.executed)
    found: dict[tuple[str, int], list[Call]] = {}
    for name in archive.names:
        for member in archive.members(name):
            value = mapping(member.value)
            messages: list[Any] = [m for m in listed(value.get("traj")) if isinstance(m, dict)]
            if messages and isinstance(value.get("trial"), int):
                found[str(value.get("task_id")), value["trial"]] = executed(messages)
    if not found:
        raise ArchiveError(
            "no recorded episodes", place=options.executed, remedy="name a tau-bench archive of the same episodes"
        )
    return found
