"""Episodes of an archive between their reading and their writing: an archive is decoded once.

What a trial is called depends on the whole archive (its digest, its plan). So what was read waits in a temporary file
until the last episode has come; its events are made on the way out, while the store writes those before.
"""

from __future__ import annotations

import marshal
import pickle
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import Any, BinaryIO, NamedTuple, cast

from harness.api.archive_account import Ending, ending_of
from harness.api.archive_bodies import payload_text
from harness.api.archive_reading import task_of
from harness.records.archive import ArchiveEpisode, ArchiveTask, Step
from harness.records.task import Task
from harness.records.vocabulary import Actor, Phase
from harness.store.faults import explained

_IN_MEMORY_BYTES = 16 << 20
_PIECE_BYTES = 1 << 20  # written at once
_MOST_TASKS, _MOST_TASK_BYTES = 1000, 32 << 20  # kept in memory; those beyond lie with their episodes
_ACTORS, _PHASES = tuple(Actor), (None, *Phase)
_ACTOR_NUMBERS = {actor: number for number, actor in enumerate(_ACTORS)}
_PHASE_NUMBERS = {phase: number for number, phase in enumerate(_PHASES)}


class Kept(NamedTuple):
    """An episode as it comes back. `source` is the payload of its event `import.source`, as canonical JSON."""

    run: str  # ArchiveRun.key
    task: Task
    repeat: int
    attempt: int
    place: str
    size: int  # bytes of source
    source: str
    ending: Ending
    steps: list[Step]


@contextmanager
def spooling(folder: Path) -> Iterator[Spool]:
    """A :class:`Spool` whose file lies in `folder`, on the disk that the episodes will be stored on."""
    with SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES, dir=str(folder)) as file, ThreadPoolExecutor(1) as thread:
        yield Spool(folder, cast("BinaryIO", file), thread)


class Spool:
    """Takes episodes one by one, and gives them back in order once the last has come.

    They are written by a thread of its own: the system copies without Python's lock.
    """

    def __init__(self, folder: Path, file: BinaryIO, thread: ThreadPoolExecutor) -> None:
        self._folder, self._file, self._thread = folder, file, thread
        self._tasks = _Tasks()
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._under_way: Future[None] | None = None

    def task(self, task: ArchiveTask, suite: str) -> Task:
        """A task as it will be stored."""
        return self._tasks.number(task, suite)[1]

    def take(self, episode: ArchiveEpisode, steps: Sequence[Step], suite: str) -> None:
        """Keep an episode. Raises StoreError, UnstorableError for what cannot be stored."""
        number, task = self._tasks.number(episode.task, suite)
        data = _packed(
            (
                episode.run,
                pickle.dumps(task) if number is None else number,
                episode.repeat,
                episode.attempt,
                episode.place,
                episode.source.length,
                payload_text(_source(episode)),
                tuple(ending_of(episode)),
                [
                    (kind, _ACTOR_NUMBERS[actor], payload, _PHASE_NUMBERS[phase], wall, span, parent)
                    for kind, actor, payload, phase, wall, span, parent in steps
                ],
            ),
            steps,
        )
        self._waiting += (len(data).to_bytes(8), data)
        self._waiting_bytes += len(data)
        if self._waiting_bytes > _PIECE_BYTES:
            self._hand_over()

    def __iter__(self) -> Iterator[Kept]:
        self._hand_over()
        self._written()
        with explained(self._folder):
            self._file.seek(0)
        while size := self._read(8):
            data = self._read(int.from_bytes(size))
            run, task, repeat, attempt, place, length, source, ending, steps = _unpacked(data)
            known = pickle.loads(task) if isinstance(task, bytes) else self._tasks.kept[task]
            found = [
                Step(kind, _ACTORS[actor], payload, _PHASES[phase], wall, span, parent)
                for kind, actor, payload, phase, wall, span, parent in steps
            ]
            yield Kept(run, known, repeat, attempt, place, length, source, Ending(*ending), found)

    def _hand_over(self) -> None:
        self._written()
        self._under_way = self._thread.submit(self._file.writelines, self._waiting)
        self._waiting, self._waiting_bytes = [], 0

    def _written(self) -> None:
        """Wait for what was handed over. Raises StoreError."""
        if self._under_way is not None:
            with explained(self._folder):
                self._under_way.result()

    def _read(self, size: int) -> bytes:
        with explained(self._folder):
            return self._file.read(size)


class _Tasks:
    """Tasks of the archive as ours, made once for all their episodes."""

    def __init__(self) -> None:
        self.kept: list[Task] = []
        self._known: dict[tuple[str, str, int], tuple[ArchiveTask, int, Task]] = {}
        self._bytes = 0
        self._last: tuple[ArchiveTask, str, Task] | None = None

    def number(self, task: ArchiveTask, suite: str) -> tuple[int | None, Task]:
        """The task, and its place among those that are kept; None for one beyond."""
        # Keyed by the definition's identity: importers share one object among the episodes of a task, and it is kept.
        key = (suite, task.id, id(task.definition))
        known = self._known.get(key)
        if known is not None and known[0].definition is task.definition and known[0].instruction == task.instruction:
            return known[1], known[2]
        if self._last is not None and self._last[0] is task and self._last[1] == suite:
            return None, self._last[2]
        made = task_of(task, suite)
        size = len(task.instruction) + sum(len(file.content) for file in made.grading.tests.files)
        if len(self.kept) >= _MOST_TASKS or self._bytes + size > _MOST_TASK_BYTES:
            self._last = (task, suite, made)
            return None, made
        self._bytes += size
        self.kept.append(made)
        self._known[key] = (task, len(self.kept) - 1, made)
        return len(self.kept) - 1, made


def _packed(value: tuple[Any, ...], steps: Sequence[Step]) -> bytes:
    """A letter for how, and the bytes; plain values, which nearly all are, the fast way. Raises StoreError."""
    try:
        return b"m" + marshal.dumps(value)
    except ValueError:  # a date, an enum, a number of a library's own, or nested as deep as that
        for step in steps:
            payload_text(step.payload)
    return b"p" + pickle.dumps(value)


def _unpacked(data: bytes) -> Any:
    rest = memoryview(data)[1:]
    return marshal.loads(rest) if data[:1] == b"m" else pickle.loads(rest)


def _source(episode: ArchiveEpisode) -> dict[str, Any]:
    """Where an episode came from, and what is claimed of it on what evidence."""
    claims = {name: getattr(episode, name) for name in ("grading", "termination", "mode", "attribution")}
    return {
        "source": episode.source.plain(),
        "task": episode.task.id,
        "claims": {name: claim.plain() for name, claim in claims.items()},
        "criteria": episode.criteria,
        "stated": episode.stated,
        "usage_raw": episode.usage,
        "started": episode.started,
        "finished": episode.finished,
        "findings": [finding.plain() for finding in episode.findings],
    }
