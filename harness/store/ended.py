"""Trials that ended elsewhere, many at once: chained as a pure step, then written by a thread of their own.

SQLite and the disk work without Python's lock, so the next batch is chained while the last one becomes durable. A batch
is one transaction: whatever stops an import, every trial is in the store whole or not at all.
"""

from __future__ import annotations

import sqlite3
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain
from typing import Any, NamedTuple, Protocol

from harness.records.trial import TrialPlan
from harness.store.chain import EventRow, Head, chain_bodies, empty_head
from harness.store.rows import pack_plans

_BATCH_TRIALS = 400
_BATCH_BYTES = 8 << 20
_ROWS = 1000  # of one statement
_SWITCH_S = 0.0002  # after which a busy thread lets another one have Python's lock: the writer asks for it often
_UNDER_WAY = 2  # batches: one that is written, one that waits


class EndedTrial(NamedTuple):
    """A trial that ended elsewhere, with its events' kinds and canonical bodies, in order from seq 0.

    `closing` is the event by which its run's stream commits to it: its kind, and the canonical body for the head of the
    trial's own stream and the event's seq.
    """

    plan: TrialPlan
    planned: bool  # its plan is in the store already
    kinds: Sequence[str]
    bodies: Sequence[str]
    result: str  # canonical JSON of its TrialResult
    closing: tuple[str, Callable[[Head, int], str]]


class EndedRows(NamedTuple):
    """A batch as the rows of its tables. `heads` are the ends of its runs' streams behind it."""

    tasks: dict[str, tuple[str, str, str]]  # by digest
    plans: list[tuple[Any, ...]]
    events: list[EventRow]
    results: list[tuple[str, str]]
    heads: dict[str, Head]


class EndedStore(Protocol):
    """What writes batches. Both raise StoreError."""

    def head(self, stream: str) -> Head: ...

    def add_ended(self, rows: EndedRows) -> None: ...


def ended_rows(ended: Sequence[EndedTrial], heads: dict[str, Head]) -> EndedRows:
    """The rows of trials, each followed by the event that commits its run to it. `heads` are the ends of the streams
    that have begun already, and are moved on. Raises StoreError.
    """
    rows = EndedRows({}, [], [], [], {})
    for one, texts in zip(ended, pack_plans([one.plan for one in ended]), strict=True):
        plan = one.plan
        if not one.planned:
            rows.tasks[texts.task_digest] = (texts.task_digest, plan.task.version, texts.task_body)
            place = (plan.trial, plan.run, plan.slot, plan.repeat, plan.attempt)
            rows.plans.append((*place, plan.task.id, plan.task.version, texts.task_digest, texts.body))
        # Nothing follows in the stream of a trial that has ended: its head is not kept.
        head = chain_bodies(plan.trial, one.kinds, one.bodies, heads.pop(plan.trial, None), rows.events)
        kind, closing = one.closing
        last = heads.get(plan.run) or empty_head(plan.run)
        heads[plan.run] = chain_bodies(plan.run, (kind,), (closing(head, last.seq),), last, rows.events)
        rows.heads[plan.run] = heads[plan.run]
        rows.results.append((plan.trial, one.result))
    return rows


def insert_ended(connection: sqlite3.Connection, rows: EndedRows) -> None:
    """Insert a batch into its tables. Raises sqlite3.IntegrityError where a row is there already."""
    digests = list(rows.tasks)
    known: set[str] = set()
    most = _most_rows(connection, 1)
    for start in range(0, len(digests), most):
        asked = digests[start : start + most]
        marks = ",".join("?" * len(asked))
        known.update(
            digest for (digest,) in connection.execute(f"SELECT digest FROM tasks WHERE digest IN ({marks})", asked)
        )
    _insert(
        connection,
        "tasks (digest, version, body)",
        [task for digest, task in rows.tasks.items() if digest not in known],
    )
    _insert(connection, "trials (trial, run, slot, repeat, attempt, task, task_version, task_digest, body)", rows.plans)
    _insert(connection, "events (stream, seq, kind, previous, hash, body)", rows.events)
    _insert(connection, "results (trial, body)", rows.results)


def _insert(connection: sqlite3.Connection, into: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Many rows by one statement: for each statement alone, two threads hand Python's lock to and fro."""
    most = _most_rows(connection, len(rows[0])) if rows else 1
    for start in range(0, len(rows), most):
        some = rows[start : start + most]
        one = f"({','.join('?' * len(some[0]))})"
        connection.execute(f"INSERT INTO {into} VALUES {','.join([one] * len(some))}", list(chain.from_iterable(some)))


def _most_rows(connection: sqlite3.Connection, width: int) -> int:
    """Rows of one statement: SQLite allows so many values in one, older ones 999."""
    return max(1, min(_ROWS, connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER) // width))


class EndedWriter:
    """Takes ended trials one by one, and writes them in batches. Made by :func:`writing`."""

    def __init__(self, store: EndedStore, thread: ThreadPoolExecutor) -> None:
        self._store, self._thread = store, thread
        self._heads: dict[str, Head] = {}
        self._waiting: list[EndedTrial] = []
        self._bytes = 0
        self._under_way: deque[Future[None]] = deque()

    def begin(self, stream: str) -> None:
        """Look up where a stream ends that is in the store already. Before anything is taken."""
        self._heads[stream] = self._store.head(stream)

    def take(self, one: EndedTrial, size: int) -> None:
        """Add a trial of `size` bytes. Raises StoreError, for a trial that was taken before too."""
        self._waiting.append(one)
        self._bytes += size
        if len(self._waiting) >= _BATCH_TRIALS or self._bytes >= _BATCH_BYTES:
            self._hand_over()

    def finish(self) -> None:
        """Make everything that was taken durable. Raises StoreError."""
        if self._waiting:
            self._hand_over()
        while self._under_way:
            self._under_way.popleft().result()

    def _hand_over(self) -> None:
        rows = ended_rows(self._waiting, self._heads)
        self._waiting, self._bytes = [], 0
        while len(self._under_way) >= _UNDER_WAY:
            self._under_way.popleft().result()
        before = self._under_way[-1] if self._under_way else None
        self._under_way.append(self._thread.submit(_add, self._store, rows, before))


def _add(store: EndedStore, rows: EndedRows, before: Future[None] | None) -> None:
    if before is not None:
        before.result()  # nothing is written after a batch that is missing
    store.add_ended(rows)


@contextmanager
def writing(store: EndedStore) -> Iterator[EndedWriter]:
    """A writer; when the block is over everything is durable, or it raises. Of a block that is left by an error, what
    was handed over may still be written: whole batches, in order."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, _SWITCH_S))
    try:
        with ThreadPoolExecutor(1, "ended") as thread:
            writer = EndedWriter(store, thread)
            yield writer
            writer.finish()
    finally:
        sys.setswitchinterval(before)
