"""A suite: a named set of tasks, and the lock that pins it."""

from __future__ import annotations

from functools import cached_property
from typing import Self

from pydantic import Field, model_validator

from harness.records.base import Record, digest_of
from harness.records.task import DIGEST_PATTERN, Task

LOCK_SCHEMA = "assay-suite-lock/1"


class ImageLock(Record):
    """A pinned image: `repository@digest` when pulled, or the config digest of a local build."""

    digest: str = Field(pattern=DIGEST_PATTERN)
    repository: str | None = None
    platform: str


class TaskLock(Record):
    """What a task was when it was locked."""

    image: str  # key into SuiteLock.images
    grader: str
    files: str = Field(pattern=DIGEST_PATTERN)  # over every file's sha256 and every setting
    version: str = Field(pattern=DIGEST_PATTERN)


class SuiteLock(Record):
    """The content of `suite.lock`."""

    schema_name: str = Field(default=LOCK_SCHEMA, alias="schema")
    suite: str
    images: dict[str, ImageLock]
    tasks: dict[str, TaskLock]

    @model_validator(mode="after")
    def _known_schema(self) -> Self:
        if self.schema_name != LOCK_SCHEMA:
            raise ValueError(f"lock schema {self.schema_name!r} is not known; this version reads {LOCK_SCHEMA!r}")
        return self


class Suite(Record):
    """A named, ordered set of tasks with distinct ids. `locked`: every image pin has a digest."""

    name: str
    tasks: tuple[Task, ...]
    source: str = ""
    locked: bool = False

    @model_validator(mode="after")
    def _distinct_ids(self) -> Self:
        ids = [task.id for task in self.tasks]
        twice = sorted({id_ for id_ in ids if ids.count(id_) > 1}) if len(set(ids)) != len(ids) else []
        if twice:
            raise ValueError(f"duplicate task id(s): {', '.join(twice)}")
        return self

    @cached_property
    def version(self) -> str:
        """Digest over the ids and versions of the tasks, in order of id."""
        return digest_of(sorted((task.id, task.version) for task in self.tasks))

    def task(self, task_id: str) -> Task:
        """The task with that id. Raises KeyError."""
        for task in self.tasks:
            if task.id == task_id:
                return task
        raise KeyError(task_id)
