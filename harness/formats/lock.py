"""`suite.lock`: every image by digest, every file by sha256, every setting and the grader's version."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from harness.formats.places import raise_all
from harness.records.errors import TaskError
from harness.records.suite import ImageLock, Suite, SuiteLock, TaskLock
from harness.records.task import ImagePin, Task

LOCK_FILE = "suite.lock"
_NO_IMAGE = ImagePin(reference="-")
_SHOWN_IDS = 5


@dataclass(frozen=True, slots=True)
class ImageNeed:
    """An image that a suite needs: to be looked up by `reference`, or built from `build_context` when that is set."""

    reference: str
    build_context: str | None
    tasks: tuple[str, ...]


def images_needed(suite: Suite) -> tuple[ImageNeed, ...]:
    """The distinct images of the suite's tasks, by reference."""
    tasks: dict[str, list[Task]] = {}
    for task in suite.tasks:
        tasks.setdefault(task.image.reference, []).append(task)
    return tuple(
        ImageNeed(reference, users[0].build_context, tuple(task.id for task in users))
        for reference, users in sorted(tasks.items())
    )


def files_digest(task: Task) -> str:
    """Digest of every file and setting of a task but its image."""
    return task.model_copy(update={"image": _NO_IMAGE}).version


def make_lock(suite: Suite, images: Mapping[str, ImageLock]) -> SuiteLock:
    """The lock of a suite whose images (by reference) are known. Raises TaskError for an image that is not."""
    missing = [need for need in images_needed(suite) if need.reference not in images]
    raise_all(
        TaskError(
            f"no digest for image {need.reference!r} of {need.tasks[0]}", place=suite.source, remedy="resolve it first"
        )
        for need in missing
    )
    return SuiteLock(
        suite=suite.name,
        images={need.reference: images[need.reference] for need in images_needed(suite)},
        tasks={task.id: _task_lock(task, images[task.image.reference]) for task in suite.tasks},
    )


def _task_lock(task: Task, image: ImageLock) -> TaskLock:
    return TaskLock(
        image=task.image.reference,
        grader=task.grading.grader,
        files=files_digest(task),
        version=_pinned(task, image).version,
    )


def _pinned(task: Task, image: ImageLock) -> Task:
    pin = ImagePin(
        reference=task.image.reference, repository=image.repository, digest=image.digest, platform=image.platform
    )
    return task.model_copy(update={"image": pin})


def lock_text(lock: SuiteLock) -> str:
    """The one text of a lock: keys sorted, a line per value, so that a change is a small diff."""
    return json.dumps(lock.model_dump(mode="json", by_alias=True), sort_keys=True, indent=1) + "\n"


def write_lock(path: Path, lock: SuiteLock) -> None:
    """Put the lock there whole or not at all. Raises TaskError when the folder cannot be written."""
    try:
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=".lock-", delete=False) as file:
            try:
                file.write(lock_text(lock))
                file.flush()
                os.fsync(file.fileno())
                os.chmod(file.name, 0o644)
                os.replace(file.name, path)
            except BaseException:
                os.unlink(file.name)
                raise
    except OSError as error:
        raise TaskError(f"the lock cannot be written: {error.strerror}", place=str(path)) from error


def read_lock(path: Path) -> SuiteLock:
    """The lock in a file. Raises TaskError when it is none of this version."""
    remedy = "make a new one with `assay suite lock`"
    try:
        lock = SuiteLock.model_validate_json(path.read_bytes())
    except OSError as error:
        raise TaskError(f"the lock cannot be read: {error.strerror}", place=str(path)) from error
    except ValidationError as error:
        detail = error.errors()[0]
        key = ".".join(map(str, detail["loc"]))
        raise TaskError(
            f"not a suite lock: {key} {detail['msg']}".replace("  ", " "), place=str(path), remedy=remedy
        ) from error
    for task_id, task in lock.tasks.items():
        if task.image not in lock.images:
            raise TaskError(f"image {task.image!r} of {task_id} is not in the lock", place=str(path), remedy=remedy)
    return lock


def apply_lock(suite: Suite, lock: SuiteLock, place: str, *, whole: bool) -> Suite:
    """The suite with its images pinned by the lock.

    `whole`: the suite is all that the lock is about, so that a task it has too many is an error too. Raises
    TaskError, or LoadErrors with one error per way in which tasks are not what was locked, naming them.
    """
    stale: dict[str, list[str]] = {}
    for task in suite.tasks:
        problem = _staleness(task, lock)
        if problem is not None:
            stale.setdefault(problem, []).append(task.id)
    if whole:
        gone = sorted(lock.tasks.keys() - {task.id for task in suite.tasks})
        if gone:
            stale["locked and no longer there"] = gone
    remedy = f"if that is meant, run `assay suite lock {suite.source}`"
    raise_all(
        (
            TaskError(f"stale lock: {problem}: {_some(ids)}", place=place, remedy=remedy)
            for problem, ids in stale.items()
        ),
        place,
    )
    tasks = tuple(_pinned(task, lock.images[lock.tasks[task.id].image]) for task in suite.tasks)
    return suite.model_copy(update={"tasks": tasks, "locked": True})


def _staleness(task: Task, lock: SuiteLock) -> str | None:
    """In what a task is not what was locked, or None."""
    locked = lock.tasks.get(task.id)
    if locked is None:
        return "not in the lock"
    if locked.image != task.image.reference:
        return f"locked with image {locked.image!r}, now it says {task.image.reference!r}"
    if locked.grader != task.grading.grader:
        return f"locked with grader {locked.grader}, now it says {task.grading.grader}"
    if locked.files != files_digest(task):
        return "the files or settings are not those that were locked"
    pinned = _pinned(task, lock.images[locked.image])
    if task.image.digest is not None and task.image.digest != pinned.image.digest:
        return "it names another image digest than its lock"
    if locked.version != pinned.version:
        return "it has another version than its lock says"
    return None


def _some(ids: list[str]) -> str:
    shown = ", ".join(ids[:_SHOWN_IDS])
    return shown if len(ids) <= _SHOWN_IDS else f"{shown} and {len(ids) - _SHOWN_IDS} more"
