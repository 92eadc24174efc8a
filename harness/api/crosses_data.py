"""Versions of task data: which tasks episodes are graded by, and which data version their environment is opened in.

A version is written `[LABEL=]PART[+PART]`, a part being `recorded` (the tasks as the archive has them), a data version
of the environment by name, or a file of tasks.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from harness.records.base import Record, digest_of
from harness.records.environment import Capabilities
from harness.records.errors import ConfigError
from harness.records.replay import RecordedEpisode
from harness.store.encoding import storable

AS_RECORDED = "recorded"
_KEYS = ("id", "task_id")


class NoTask(ConfigError):
    """The data has no task of that name."""


@dataclass(frozen=True)
class DataVersion:
    """One version. `tasks` None: each episode's own definition; `environment` empty: the environment's default.

    `ids` says under which name the data has a task of the archive, where the two differ.
    """

    name: str
    environment: str = ""
    tasks: Mapping[str, Any] | None = None
    ids: Mapping[str, str] = field(default_factory=dict)

    def task(self, episode: RecordedEpisode) -> Any:
        """The definition to grade by. Raises NoTask."""
        if self.tasks is None:
            return episode.definition
        name = self.ids.get(episode.task, episode.task)
        if name not in self.tasks:
            raise NoTask(f"it has no task {name!r}", place=f"--data {self.name}")
        return self.tasks[name]

    @cached_property
    def digest(self) -> str:
        """Of the tasks and the data version's name; of recorded tasks see :func:`digest_with`."""
        return digest_of({"environment": self.environment, "tasks": storable(self.tasks), "ids": dict(self.ids)})


def definition_digest(definition: Any) -> str:
    """The digest of a task's definition."""
    return digest_of(definition.plain() if isinstance(definition, Record) else storable(definition))


def digest_with(version: DataVersion, recorded: Collection[tuple[str, str]], capabilities: Capabilities) -> str:
    """The digest of a version as it was used: its environment's code and data, and the tasks. `recorded`: names and
    digests of the definitions that the episodes have, which are the tasks of a version without a file of them."""
    used = version.environment or next(iter(capabilities.data), "")
    environment = [capabilities.environment, capabilities.code, used]
    tasks = sorted(map(list, recorded)) if version.tasks is None else None
    return digest_of({"environment": environment, "version": version.digest, "recorded": tasks})


def data_versions(
    texts: Sequence[str], capabilities: Capabilities, task_map: str | Path | None = None
) -> tuple[DataVersion, ...]:
    """The versions that the command line names; none: `recorded`. Raises ConfigError."""
    ids = read_task_map(task_map) if task_map is not None else {}
    found = tuple(_version(text, capabilities, ids) for text in texts or (AS_RECORDED,))
    names = [version.name for version in found]
    if len(set(names)) < len(names):
        raise ConfigError(f"--data names {names} twice", remedy="give each a label of its own: LABEL=VERSION")
    return found


def _version(text: str, capabilities: Capabilities, ids: Mapping[str, str]) -> DataVersion:
    label, given, rest = text.partition("=")
    parts = (rest if given else text).split("+")
    environment, tasks = "", None
    for part in parts:
        if part in capabilities.data:
            environment = part
        elif part != AS_RECORDED:
            tasks = read_tasks(part, capabilities)
    name = label if given else "+".join(part if part in capabilities.data else Path(part).name for part in parts)
    return DataVersion(name, environment, tasks, ids if tasks is not None else {})


def read_tasks(path: str | Path, capabilities: Capabilities | None = None) -> dict[str, Any]:
    """Task definitions by id: a list of objects with `id` or `task_id`, an object of them by id, or either under
    `tasks`; gzipped or not. Raises ConfigError."""
    file = Path(path)
    if not file.is_file():
        versions = ", ".join(capabilities.data) if capabilities is not None else ""
        known = f"the environment's data versions are {versions}; " if versions else ""
        raise ConfigError(f"--data {path} is no file", remedy=f"{known}or give {AS_RECORDED}, or a file of tasks")
    stated = _read(file)
    if isinstance(stated, dict) and "tasks" in stated:
        stated = stated["tasks"]
    if isinstance(stated, dict):
        return {str(name): task for name, task in stated.items()}
    tasks: dict[str, Any] = {}
    for number, task in enumerate(stated if isinstance(stated, list) else [None]):
        key = next((key for key in _KEYS if isinstance(task, dict) and key in task), None)
        if key is None:
            raise ConfigError("holds no tasks: each needs an id or task_id", place=f"{file}: entry {number}")
        if str(task[key]) in tasks:
            raise ConfigError(f"task {task[key]!r} is there twice", place=f"{file}: entry {number}")
        tasks[str(task[key])] = task
    return tasks


def read_task_map(path: str | Path) -> dict[str, str]:
    """Names of the archive's tasks in the data: an object of texts, alone or beside a note. Raises ConfigError."""
    stated = _read(Path(path))
    if isinstance(stated, dict):
        inner = [value for value in stated.values() if isinstance(value, dict)]
        stated = inner[0] if len(inner) == 1 else stated
        if all(isinstance(value, (str, int)) for value in stated.values()):
            return {str(name): str(value) for name, value in stated.items()}
    raise ConfigError("is no object of task names", place=f"--task-map {path}", remedy='write {"archive": "data", …}')


def _read(file: Path) -> Any:
    try:
        data = file.read_bytes()
        return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    except (OSError, EOFError, ValueError) as error:
        raise ConfigError(f"cannot be read: {error}", place=str(file)) from error
