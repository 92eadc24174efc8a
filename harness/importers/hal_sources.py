"""What a bare action list lacks, from files that the user names: reference actions by task, and executed calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from harness.importers.attribution import Call
from harness.importers.container import Archive
from harness.importers.reports import listed, mapping
from harness.importers.tau_bench import executed
from harness.records.archive import ArchiveError, ImportOptions

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def references_of(options: ImportOptions) -> dict[str, Mapping[str, Any]]:
    """Tasks with reference actions by id, of a list of tasks or a tau-bench archive; empty when no file was named.

    Raises ArchiveError for a file that has none or is not whole.
    """
    if options.reference is None:
        return {}
    needs = ArchiveError(
        "no tasks with reference actions",
        place=options.reference,
        remedy="name a list of {task_id, actions: [{name, kwargs}]}, or a tau-bench archive",
    )
    return _gathered(options.reference, _reference, needs)


def actions_of(task: Mapping[str, Any] | None) -> list[Call] | None:
    """A task's reference actions; None where it lists none."""
    if task is None or not isinstance(task.get("actions"), list):
        return None
    return [(str(action.get("name")), action.get("kwargs")) for action in task["actions"] if isinstance(action, dict)]


def executed_of(options: ImportOptions) -> dict[tuple[str, int], list[Call]] | None:
    """What the agent did by (task, trial), from a tau-bench archive of the same episodes; None when none was named.

    Messages that a wrapper added to the list after the recorded episode are not in it, and stay unmatched. Raises
    ArchiveError for a file that has no episode or is not whole.
    """
    if options.executed is None:
        return None
    needs = ArchiveError(
        "no recorded episodes", place=options.executed, remedy="name a tau-bench archive of the same episodes"
    )
    return _gathered(options.executed, _executed, needs)


def _reference(value: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]] | None:
    task = mapping(mapping(value.get("info")).get("task")) or value
    return (str(value["task_id"]), task) if "task_id" in value and isinstance(task.get("actions"), list) else None


def _executed(value: Mapping[str, Any]) -> tuple[tuple[str, int], list[Call]] | None:
    messages: list[Any] = [message for message in listed(value.get("traj")) if isinstance(message, dict)]
    if not messages or not isinstance(value.get("trial"), int):
        return None
    return (str(value.get("task_id")), value["trial"]), executed(messages)


def _gathered(
    path: str, entry: Callable[[Mapping[str, Any]], tuple[_Key, _Value] | None], needs: ArchiveError
) -> dict[_Key, _Value]:
    """The entries of all files at a path. Raises `needs` where there are none, and ArchiveError for a file of them that
    is not whole: what it lacks would be taken for what its source does not have."""
    archive = Archive(path)
    found: dict[_Key, _Value] = {}
    for name in archive.names:
        broken, any_here = None, len(archive.names) == 1  # in a folder lies what is not meant, too
        for member in archive.members(name):
            if member.problem and broken is None:
                place = f"{archive.place(name)}, byte {member.source.offset}"
                broken = ArchiveError(member.problem, place=place, remedy="fetch it again")
            pair = entry(mapping(member.value))
            if pair is not None:
                found[pair[0]], any_here = pair[1], True
        if broken is not None and any_here:
            raise broken
    if not found:
        raise needs
    return found
