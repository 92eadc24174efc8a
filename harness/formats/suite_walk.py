"""Finds the task folders of a suite: every folder at or below its own, hidden ones and links to folders left out.

A link to a folder is never entered, wherever it leads: back up it goes round for ever, sideways it gives the same task
twice (and a pair of such links doubles the walk at every level), and out of the suite it reads what nobody meant.
"""

from __future__ import annotations

import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.formats.lock import LOCK_FILE
from harness.formats.places import near_match
from harness.protocols import TaskFormat
from harness.records.errors import TaskError

SUITE_TOML = "suite.toml"
_PROSE = ("readme", "license", "licence", "notice", "changelog")
_SUITE_FILES = (SUITE_TOML, LOCK_FILE)
_MOST_TOLD = 3


def walk_suite(top: Path, formats: Sequence[TaskFormat]) -> SuiteWalk:
    """Look at `top` and all folders below. What is wrong with one of them is in `errors`, never raised."""
    walk = SuiteWalk(top, tuple(formats))
    pending = [top]
    while pending:
        folder = pending.pop()
        try:
            pending += reversed(walk.look_at(folder))
        except OSError as error:
            walk.errors.append(TaskError(f"cannot be read: {error.strerror}", place=str(folder)))
    walk.conclude()
    return walk


@dataclass
class SuiteWalk:
    """What a walk found: task folders with their formats, in order, and everything that was wrong."""

    top: Path
    formats: tuple[TaskFormat, ...]
    found: list[tuple[TaskFormat, Path]] = field(default_factory=list)
    errors: list[TaskError] = field(default_factory=list)
    _recognised: bool = False
    _strays: list[TaskError] = field(default_factory=list)  # of folders that hold files and no task
    _suites: list[Path] = field(default_factory=list)  # suites of their own, below
    _hints: list[str] = field(default_factory=list)

    def look_at(self, folder: Path) -> list[Path]:
        """Note what a folder is; returns the folders below it to look at, in order. Raises OSError."""
        matching = [form for form in self.formats if form.recognises(folder)]
        self._recognised |= bool(matching)
        if len(matching) == 1:
            self.found.append((matching[0], folder))
        elif matching:
            names = ", ".join(form.name for form in matching)
            self.errors.append(TaskError(f"several formats claim this folder: {names}", place=str(folder)))
        else:
            return self._look_into(folder)
        return []

    def conclude(self) -> None:
        """In a suite a folder of mere files is a task that went wrong; where no folder is a task there is no suite."""
        if self._recognised:
            inner = "a suite within a suite"
            remedy = "give it by its own path, or move it out"
            self.errors += self._strays
            self.errors += [TaskError(inner, place=str(folder), remedy=remedy) for folder in self._suites]
        else:
            self.errors.append(self._no_suite())

    def _look_into(self, folder: Path) -> list[Path]:
        entries = sorted(entry for entry in folder.iterdir() if not _ignored(entry.name))
        kinds = {entry: _kind(entry) for entry in entries}
        files = [entry.name for entry in entries if kinds[entry] == "other"]
        if folder != self.top and any(name in _SUITE_FILES for name in files):
            self._suites.append(folder)
            return []
        odd = [name for name in files if name not in _SUITE_FILES and not name.lower().startswith(_PROSE)]
        hint = _hint(odd)
        if hint:
            self._hints.append(f"{folder}: {hint}")
        if odd and folder != self.top:
            known = ", ".join(form.name for form in self.formats)
            remedy = hint or f"known formats: {known}; a task has a task.toml"
            self._strays.append(
                TaskError(f"files but no task ({', '.join(odd[:3])})", place=str(folder), remedy=remedy)
            )
            return []
        self.errors += [self._link_error(entry) for entry in entries if kinds[entry] in ("folder link", "dead link")]
        return [entry for entry in entries if kinds[entry] == "folder"]

    def _link_error(self, link: Path) -> TaskError:
        if not link.exists():
            return TaskError("the link leads nowhere, or to itself", place=str(link), remedy="remove the link")
        target = link.resolve()
        if link.parent.resolve().is_relative_to(target):
            return TaskError("the link leads back to a folder above it", place=str(link), remedy="remove the link")
        if target.is_relative_to(self.top.resolve()):
            message = f"the link leads to another folder of the suite, {target.name}, which counts already"
            return TaskError(message, place=str(link), remedy="remove the link")
        return TaskError("the link leads out of the suite", place=str(link), remedy="put the folder itself there")

    def _no_suite(self) -> TaskError:
        looked = "neither it nor a folder below it has a task.toml, a variants.toml or a conversation.toml"
        remedy = "give the folder of a task, a family or a suite, or a bundled suite's name"
        if self._suites:
            remedy = f"give a suite by its own path: {', '.join(map(str, self._suites[:_MOST_TOLD]))}"
        elif self._hints:
            remedy = "; ".join(self._hints[:_MOST_TOLD])
        return TaskError(f"no task folder here: {looked}", place=str(self.top), remedy=remedy)


def _kind(entry: Path) -> str:
    mode = entry.lstat().st_mode
    if stat.S_ISLNK(mode):
        if entry.is_dir():
            return "folder link"
        return "other" if entry.exists() else "dead link"
    return "folder" if stat.S_ISDIR(mode) else "other"


def _hint(strays: Sequence[str]) -> str:
    """What a folder of files may have been meant as."""
    if "task.yaml" in strays:
        return "this is Terminal-Bench's first format: move it to task.toml"
    return near_match("task.toml", [name for name in strays if name.endswith(".toml")])


def _ignored(name: str) -> bool:
    return name.startswith(".") or name == "__pycache__"
