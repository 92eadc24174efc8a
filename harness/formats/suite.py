"""A suite on disk: a folder of task folders, one such folder, or a bundled suite by name."""

from __future__ import annotations

import difflib
import importlib.resources
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness import plugins
from harness.formats.conversation import ConversationFormat
from harness.formats.family import FamilyFormat
from harness.formats.harbor import HarborFormat
from harness.formats.lock import LOCK_FILE, apply_lock, read_lock
from harness.formats.parse import parse_toml
from harness.formats.places import Where, flatten, near_match, raise_all
from harness.formats.suite_walk import SUITE_TOML, walk_suite
from harness.protocols import TaskFormat
from harness.records.errors import ConfigError, TaskError
from harness.records.suite import Suite, SuiteLock
from harness.records.task import Task

_BUILT_IN: Mapping[str, type[TaskFormat]] = {
    "conversation": ConversationFormat,
    "family": FamilyFormat,
    "harbor": HarborFormat,
}


class SuiteSettings(BaseModel):
    """The content of `suite.toml`, all of it optional."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    name: Annotated[str, Field(min_length=1)] | None = None
    description: str = ""


@dataclass(frozen=True)
class Gathered:
    """What a walk over a suite's folders found: tasks in order, and everything that was wrong."""

    tasks: tuple[Task, ...]
    errors: tuple[TaskError, ...]
    folders: tuple[Path, ...] = ()  # of tasks and families


def load_suite(
    path_or_name: str | Path,
    formats: Sequence[TaskFormat] | None = None,
    lock: SuiteLock | None = None,
    *,
    ignore_lock: bool = False,
) -> Suite:
    """The suite at a path, or the bundled one of that name (`./name` is always a path).

    A `suite.lock` in the folder pins it; a lone task or family is pinned by the lock of a folder around it that knows
    its tasks. `lock` is used instead when it is given, none with `ignore_lock` (to make one). Raises TaskError, or
    LoadErrors with all that is wrong in all folders, and ConfigError when there is no such suite.
    """
    folder = find_suite(path_or_name)
    formats = default_formats() if formats is None else formats
    single = any(form.recognises(folder) for form in formats)
    gathered = gather(folder, formats)
    raise_all(gathered.errors, str(folder))
    suite = Suite(
        name=name_of(folder),
        tasks=gathered.tasks,
        source=str(folder),
        locked=all(task.image.digest is not None for task in gathered.tasks),
    )
    if ignore_lock:
        return suite
    if lock is not None:
        return apply_lock(suite, lock, str(folder), whole=not single)
    lock_path = _lock_path(folder, suite, single)
    if lock_path is None:
        return suite
    return apply_lock(suite, read_lock(lock_path), str(lock_path), whole=lock_path.parent == folder)


def name_of(folder: Path) -> str:
    """The name of the suite in a folder, without loading it. Raises TaskError for a `suite.toml` that is wrong."""
    return _settings(folder).name or folder.resolve().name


def default_formats() -> tuple[TaskFormat, ...]:
    """The built-in formats, then those that other distributions register."""
    others = [name for name in plugins.names("formats") if name not in _BUILT_IN]
    return tuple(make() for make in (*_BUILT_IN.values(), *(plugins.load("formats", name) for name in others)))


def find_suite(path_or_name: str | Path) -> Path:
    """The folder of a suite. Raises ConfigError with near matches."""
    if isinstance(path_or_name, str) and os.sep not in path_or_name and path_or_name in bundled_suites():
        return bundled_suites()[path_or_name]
    path = Path(path_or_name)
    if path.is_dir():
        return path
    if path.exists():
        raise ConfigError("a suite is a folder, and this is a file", place=str(path))
    beside = [entry.name for entry in path.parent.iterdir() if entry.is_dir()] if path.parent.is_dir() else []
    hint = near_match(path.name, [*bundled_suites(), *beside])
    remedy = f"{hint} bundled: {', '.join(bundled_suites()) or 'none'}; or give a folder".strip()
    raise ConfigError(f"no suite at {str(path_or_name)!r}", remedy=remedy)


def bundled_suites() -> dict[str, Path]:
    """The suites that come with Assay, by name: in an installed package, or in a checkout's `tasks/`."""
    package = Path(str(importlib.resources.files("harness")))
    roots = (package / "data" / "tasks", package.parent / "tasks")
    # Beside an installed package anybody's `tasks` might lie; a checkout is known by its project file.
    root = roots[0] if roots[0].is_dir() else roots[1] if (package.parent / "pyproject.toml").is_file() else None
    if root is None or not root.is_dir():
        return {}
    return {entry.name: entry for entry in sorted(root.iterdir()) if (entry / SUITE_TOML).is_file()}


def select(suite: Suite, patterns: Iterable[str]) -> Suite:
    """The tasks whose id matches a glob, or whose family is named, in the suite's order; all without patterns.

    Raises ConfigError for a pattern that matches nothing, with near matches.
    """
    patterns = tuple(patterns)
    if not patterns:
        return suite
    chosen: set[str] = set()
    ids = {task.id for task in suite.tasks}
    families: dict[str, set[str]] = {}
    for task in suite.tasks:
        families.setdefault(task.family, set()).add(task.id)
    for pattern in patterns:
        matched = families.get(pattern, set()) | ({pattern} & ids)
        if any(sign in pattern for sign in "*?["):  # thousands of plain ids are looked up, not compared
            matched |= {id_ for id_ in ids if fnmatchcase(id_, pattern)}
        if not matched:
            words = sorted(ids | families.keys())
            near = difflib.get_close_matches(pattern, words, n=3, cutoff=0.5)
            remedy = f"near: {', '.join(near)}" if near else f"the suite has {len(suite.tasks)} tasks, see `suite list`"
            raise ConfigError(f"no task of {suite.name} matches {pattern!r}", remedy=remedy)
        chosen |= matched
    tasks = tuple(task for task in suite.tasks if task.id in chosen)
    locked = all(task.image.digest is not None for task in tasks)
    return suite.model_copy(update={"tasks": tasks, "locked": locked})


def gather(folder: Path, formats: Sequence[TaskFormat]) -> Gathered:
    """Load every task folder at or below `folder`; no fault of one keeps another from being read."""
    tasks: list[Task] = []
    errors: list[TaskError] = []
    walk = walk_suite(folder, formats)
    for form, task_folder in walk.found:
        try:
            tasks.extend(form.load(task_folder))
        except TaskError as error:
            errors.extend(flatten(error))
    errors = [*errors, *walk.errors]
    first: dict[str, Task] = {}
    for task in tasks:
        if task.id in first:
            other = first[task.id].source
            errors.append(
                TaskError(f"task id {task.id!r} is also that of {other}", place=task.source, remedy="rename one")
            )
        first.setdefault(task.id, task)
    return Gathered(tuple(tasks), tuple(errors), tuple(folder for _, folder in walk.found))


def _settings(folder: Path) -> SuiteSettings:
    path = folder / SUITE_TOML
    if not path.is_file():
        return SuiteSettings()
    _, values = parse_toml(path.read_bytes(), Where(str(folder)), SUITE_TOML)
    try:
        return SuiteSettings.model_validate(values)
    except ValidationError as error:
        detail = error.errors()[0]
        key = ".".join(map(str, detail["loc"]))
        known = ", ".join(SuiteSettings.model_fields)
        raise TaskError(f"{key}: {detail['msg']}", place=str(path), remedy=f"known keys: {known}") from error


def _lock_path(folder: Path, suite: Suite, single: bool) -> Path | None:
    if (folder / LOCK_FILE).is_file():
        return folder / LOCK_FILE
    if not single:
        return None
    for path in locks_around(folder):
        if {task.id for task in suite.tasks} <= read_lock(path).tasks.keys():
            return path
    return None


def locks_around(folder: Path) -> tuple[Path, ...]:
    """The locks in the folders around a suite, one of which may pin it if it is a lone task or family."""
    paths = (parent / LOCK_FILE for parent in list(folder.resolve().parents)[:2])
    return tuple(path for path in paths if path.is_file())
