"""Episodes of an archive as they are stored, but for the names of their trials: an archive is decoded once.

What a trial is called depends on the whole archive (its digest, its plan); all else of its stream is known as soon as
its episode has been read. So the bodies of its events are made then, and wait in a temporary file.

The stream of an imported trial: its plan, where it came from (`import.source`, with every claim and its evidence), what
happened, its end. Nothing of it was measured here, so the harness's own clock reads 0 and times are the source's.
"""

from __future__ import annotations

import hashlib
import marshal
import pickle
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise
from json.encoder import encode_basestring_ascii as quoted
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import Any, BinaryIO, NamedTuple, cast

from harness.api.archive_account import SPENDING_KINDS, Spending, result_of, with_usage
from harness.records.archive import ArchiveEpisode, ArchiveTask, Step
from harness.records.base import canonical_json, canonical_text, digest_of, sha256_of
from harness.records.task import FileTree, Grading, ImagePin, Limits, Task, TreeFile
from harness.records.trial import TrialState
from harness.records.vocabulary import Actor, Network, Outcome, Phase
from harness.store.encoding import storable
from harness.store.faults import explained

SOURCE, RESULT, _STATE = "import.source", "trial.result", "trial.state"
HERE = "\x00"  # stands for the trial's name: canonical JSON has no control characters
_INLINE = 4096  # characters of a system prompt: the same one comes with every episode
_IN_MEMORY_BYTES = 16 << 20
_MOST_TASKS, _MOST_TASK_BYTES = 5000, 64 << 20  # kept in memory; those beyond lie with their episodes
_LONG, _STRIDE = 3900, 1950  # digits of an integer that the store tags
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,199}")
_NOT_ID = re.compile(r"[^A-Za-z0-9._/-]+")
_UNSUPPORTED = ("imported from an archive, which holds no environment to run it in",)


class Ready(NamedTuple):
    """An episode ready to be stored; :data:`HERE` stands for the name of its trial.

    `bodies` are the canonical bodies of its events up to the last, one a line, `kinds` their kinds. The last is made
    from `result`, the canonical JSON of its TrialResult, which its run may yet have to contradict. `blobs` are texts
    that are kept apart.
    """

    run: str  # ArchiveRun.key
    task: Task
    repeat: int
    attempt: int
    outcome: Outcome
    size: int  # bytes of source
    kinds: tuple[str, ...]
    bodies: str
    result: str
    blobs: tuple[str, ...]


def legal_task_id(id_: str) -> str:
    """An id as ours may be: the source's own where that is one, else made from it with a digest to tell it apart."""
    if _ID.fullmatch(id_):
        return id_
    plain = _NOT_ID.sub("-", id_).strip("-./_")[:180]
    return f"{plain or 'task'}-{hashlib.sha256(id_.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def task_of(task: ArchiveTask, suite: str) -> Task:
    """A task to be shown and compared, not run. Its version covers the instruction and the embedded definition."""
    files: tuple[TreeFile, ...] = ()
    if task.definition is not None:
        files = (TreeFile(path="task.json", content=canonical_json(storable(task.definition))),)
    return Task(
        id=legal_task_id(task.id),
        family=legal_task_id(suite),
        instruction=task.instruction,
        image=ImagePin(reference=""),
        limits=Limits(network=Network.NONE),
        grading=Grading(grader="imported@1", tests=FileTree(files=files)),
        metadata={"imported_id": task.id},
        unsupported=_UNSUPPORTED,
    )


def suite_version(tasks: Mapping[str, str]) -> str:
    """As a suite's own: over the ids and versions of its tasks."""
    return digest_of(sorted(tasks.items()))


class Where(NamedTuple):
    """The less common fields of an event. `apart`: the text of its payload's `content`, kept as a blob."""

    phase: Phase | None = None
    wall: str = ""
    span: str | None = None
    parent: str | None = None
    apart: str | None = None


_NOWHERE = Where()


def unmeasured_body(kind: str, actor: Actor, seq: int, payload: str, where: Where = _NOWHERE) -> str:
    """The canonical body of an event of which nothing was measured here, with :data:`HERE` for its stream; `payload` is
    canonical JSON. The same bytes as :func:`harness.records.event.event_body` gives, several times as fast.
    """
    phase, wall, span, parent, apart = where
    blobs = "{}" if apart is None else canonical_text({"content": sha256_of(apart.encode("utf-8", "surrogatepass"))})
    first, second = _fixed(kind, actor)
    return (
        f'{first}{blobs}{second}{"null" if parent is None else quoted(parent)},"payload":{payload}'
        f',"phase":{_word(phase)},"seq":{seq},"span":{"null" if span is None else quoted(span)}'
        f',"state_digest":null,"stream":"{HERE}","wall":{quoted(wall)}}}'
    )


@lru_cache(maxsize=256)
def _fixed(kind: str, actor: Actor) -> tuple[str, str]:
    return f'{{"actor":{quoted(actor)},"attempt":1,"blobs":', f',"kind":{quoted(kind)},"monotonic_s":0.0,"parent":'


@lru_cache(maxsize=16)
def _word(phase: Phase | None) -> str:
    return "null" if phase is None else quoted(phase)


def payload_text(payload: Any) -> str:
    """The canonical JSON of a payload as the store keeps it. Raises StoreError for what cannot be stored.

    Most are plain already; only what is not is brought into plain form first.
    """
    try:
        text = canonical_text(payload)
    except (ValueError, TypeError, RecursionError):
        return canonical_text(storable(payload))
    if len(text) > _LONG:
        # A number that has to be tagged covers two of these characters in a row.
        samples = text[::_STRIDE]
        if any(one.isdigit() and two.isdigit() for one, two in pairwise(samples)):
            return canonical_text(storable(payload))
    return text


@contextmanager
def spooling(folder: Path) -> Iterator[Spool]:
    """A :class:`Spool` whose file lies in `folder`, on the disk that the episodes will be stored on."""
    with SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES, dir=str(folder)) as file:
        yield Spool(folder, cast("BinaryIO", file))


class Spool:
    """Takes episodes one by one, and gives them back in order once the last has come."""

    def __init__(self, folder: Path, file: BinaryIO) -> None:
        self._folder, self._file = folder, file
        self._tasks: list[Task] = []
        self._known: dict[tuple[str, str, int], tuple[ArchiveTask, int, Task]] = {}
        self._task_bytes = 0

    def take(self, episode: ArchiveEpisode, steps: Sequence[Step], suite: str) -> Task:
        """Keep an episode; its task, as it will be stored. Raises StoreError for what cannot be stored."""
        number, task = self._task(episode.task, suite)
        kinds, bodies, blobs, result = _stream(episode, steps, task)
        packed = (
            *(episode.run, pickle.dumps(task) if number is None else number, episode.repeat, episode.attempt),
            *(episode.outcome.value, episode.source.length, kinds, bodies, result, blobs),
        )
        data = marshal.dumps(packed)
        with explained(self._folder):
            self._file.write(len(data).to_bytes(8) + data)
        return task

    def __iter__(self) -> Iterator[Ready]:
        with explained(self._folder):
            self._file.seek(0)
        while size := self._read(8):
            run, task, repeat, attempt, outcome, *rest = marshal.loads(self._read(int.from_bytes(size)))
            known = pickle.loads(task) if isinstance(task, bytes) else self._tasks[task]
            yield Ready(run, known, repeat, attempt, Outcome(outcome), *rest)

    def _read(self, size: int) -> bytes:
        with explained(self._folder):
            return self._file.read(size)

    def _task(self, task: ArchiveTask, suite: str) -> tuple[int | None, Task]:
        # Keyed by the definition's identity: importers share one object among the episodes of a task, and it is kept.
        key = (suite, task.id, id(task.definition))
        known = self._known.get(key)
        if known is not None and known[0].definition is task.definition and known[0].instruction == task.instruction:
            return known[1], known[2]
        made = task_of(task, suite)
        self._task_bytes += len(task.instruction) + sum(len(file.content) for file in made.grading.tests.files)
        if len(self._tasks) >= _MOST_TASKS or self._task_bytes > _MOST_TASK_BYTES:
            return None, made
        self._tasks.append(made)
        self._known[key] = (task, len(self._tasks) - 1, made)
        return len(self._tasks) - 1, made


def _stream(
    episode: ArchiveEpisode, steps: Sequence[Step], task: Task
) -> tuple[tuple[str, ...], str, tuple[str, ...], str]:
    """Kinds and bodies of an episode's events up to its result, the texts kept apart, and the result."""
    planned = {"to": TrialState.PLANNED.value, "task": task.id, "task_version": task.version}
    kinds = [_STATE, SOURCE]
    bodies = [
        unmeasured_body(_STATE, Actor.HARNESS, 0, canonical_text(planned)),
        unmeasured_body(SOURCE, Actor.HARNESS, 1, payload_text(_source(episode))),
    ]
    blobs: list[str] = []
    spending = Spending()
    for number, step in enumerate(steps, start=2):
        kind, actor, payload, phase, wall, span, parent = step
        if payload.get("usage_raw") is not None:
            payload = with_usage(payload)
        span = span or (f"s{number - 1}" if kind == "model.call" else None)
        if actor is Actor.AGENT and kind in SPENDING_KINDS:
            spending.take(kind, payload, span, parent)
        apart = None
        if phase is Phase.SETUP and isinstance(payload.get("content"), str) and len(payload["content"]) > _INLINE:
            apart = payload["content"]
            payload = {key: value for key, value in payload.items() if key != "content"}
            blobs.append(apart)
        where = Where(phase, wall, span, parent, apart)
        bodies.append(unmeasured_body(kind, actor, number, payload_text(payload), where))
        kinds.append(kind)
    result = canonical_text(result_of(episode, spending.account(), trial=HERE).model_dump())
    result = result.replace(f'"trial":{quoted(HERE)}', f'"trial":"{HERE}"', 1)
    done = canonical_text({"to": TrialState.DONE.value})
    bodies.append(unmeasured_body(_STATE, Actor.HARNESS, len(bodies), done))
    return (*kinds, _STATE), "\n".join(bodies), tuple(blobs), result


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
