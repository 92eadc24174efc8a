"""The evidence store on disk: a folder with `evidence.db` (SQLite), `blobs/` and `leases/`.

WAL with full synchronisation: what a call has written is on disk when it returns. One connection per store
object, behind a lock, so threads may share it; several processes may write different runs at once. A stream
has one writer, the owner of its run; a second one is caught by the key of its events, not overwritten.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from harness.records.errors import StoreError
from harness.records.event import Event, EventDraft
from harness.records.grade import TrialResult
from harness.records.run import RunRow, TrialRow
from harness.records.trial import TrialPlan
from harness.store.blobs import BlobFolder
from harness.store.chain import Head, StoredEvent, chain_drafts, empty_head, event_of
from harness.store.ended import EndedRows, insert_ended
from harness.store.faults import DamagedStoreError, explained
from harness.store.leases import Leases
from harness.store.lookup import choose
from harness.store.rows import (
    PLAN_QUERY,
    TRIAL_QUERY,
    PackedPlan,
    StoredPlan,
    body_of,
    pack_plans,
    parse,
    trial_row,
    unpack_plan,
)
from harness.store.salvage import examine
from harness.store.schema import EVIDENCE_VERSION, INDEXED_KINDS, SCHEMA_VERSION, migrate, version_of

_BUSY_S = 30.0
_PAGE_BYTES = 16384  # of a new database: events are of a kilobyte, of which SQLite's own 4096 hold three
_LOG_BYTES = 16 << 20  # when the log is copied into the database
_PAGE = 500  # events read per step of an iteration: the lock is not held while the caller works


def _address(path: Path) -> str:
    """The database's URI. On a medium that cannot be written to (an archive of evidence) nobody else can change it
    either, so SQLite is told to do without the files it otherwise keeps beside it; a log that was never read in still
    needs them.
    """
    log = path.with_name(f"{path.name}-wal")
    sealed = not os.access(path.parent, os.W_OK) and not (log.exists() and log.stat().st_size)
    return f"{path.resolve().as_uri()}{'?mode=ro&immutable=1' if sealed else ''}"


class SqliteStore:
    """An :class:`harness.protocols.EvidenceStore` in `folder`, opened or created. Raises StoreError."""

    def __init__(self, folder: str | Path, *, busy_s: float = _BUSY_S) -> None:
        self.folder = Path(folder)
        self.path = self.folder / "evidence.db"
        self._lock = threading.RLock()
        self._heads: dict[str, Head] = {}
        with explained(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        self._leases = Leases(self.folder / "leases")
        self.blobs = BlobFolder(self.folder / "blobs")
        with explained(self.path):
            self._connection = sqlite3.connect(
                _address(self.path),
                uri=True,
                timeout=busy_s,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=64,
            )
        try:
            with explained(self.path):
                self._prepare()
        except DamagedStoreError as error:
            self._connection.close()
            raise DamagedStoreError(
                error.message, place=error.place, remedy=f"{examine(self.folder)}; {error.remedy}"
            ) from error
        except BaseException:
            self._connection.close()
            raise

    def _prepare(self) -> None:
        execute = self._connection.execute
        version = version_of(self._connection)
        sealed = not (os.access(self.folder, os.W_OK) and os.access(self.path, os.W_OK))
        as_it_is = sealed and version >= EVIDENCE_VERSION  # an archive of evidence, written by an earlier Assay
        if version < SCHEMA_VERSION and not as_it_is:
            # Switching to WAL and the first migration need the file alone; two creators take turns.
            with self._leases.own("\0schema"):
                execute(f"PRAGMA page_size = {_PAGE_BYTES}")  # an old one keeps its own
                execute("PRAGMA journal_mode = WAL")
                migrate(self._connection)
        execute("PRAGMA synchronous = FULL")
        execute("PRAGMA foreign_keys = ON")
        execute("PRAGMA cache_size = -8000")
        (page_bytes,) = execute("PRAGMA page_size").fetchone()
        execute(f"PRAGMA wal_autocheckpoint = {_LOG_BYTES // page_bytes}")

    def close(self) -> None:
        """Close the database. Owned runs stay owned until their block ends."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    # --- runs and plans ------------------------------------------------------------------------------

    def create_run(self, row: RunRow) -> None:
        values = (row.run, row.config_digest, body_of(row))
        with self._writing():
            if self._one("SELECT 1 FROM runs WHERE run = ?", row.run) is not None:
                raise StoreError(f"run {row.run!r} exists already", place=str(self.path))
            self._connection.execute("INSERT INTO runs (run, config_digest, body) VALUES (?, ?, ?)", values)

    def run(self, run: str) -> RunRow:
        (body,) = self._need("SELECT body FROM runs WHERE run = ?", self.run_id(run))
        return parse(RunRow, body)

    def runs(self) -> tuple[RunRow, ...]:
        """All runs, oldest first."""
        return tuple(parse(RunRow, body) for (body,) in self._all("SELECT body FROM runs ORDER BY number"))

    def plan(self, plans: Sequence[TrialPlan]) -> None:
        packed = pack_plans(plans)
        with self._writing():
            for plan, texts in zip(plans, packed, strict=True):
                self._insert_plan(plan, texts)

    def _insert_plan(self, plan: TrialPlan, texts: PackedPlan) -> None:
        self._refuse_replan(plan.trial, plan.run, plan.slot, plan.attempt)
        self._insert_task(texts, plan.task.version)
        self._connection.execute(
            "INSERT INTO trials (trial, run, slot, repeat, attempt, task, task_version, task_digest, body)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(plan.trial, plan.run, plan.slot, plan.repeat, plan.attempt),
                *(plan.task.id, plan.task.version, texts.task_digest, texts.body),
            ),
        )

    def _insert_task(self, texts: PackedPlan, version: str) -> None:
        if self._one("SELECT 1 FROM tasks WHERE digest = ?", texts.task_digest) is None:
            self._connection.execute(
                "INSERT INTO tasks (digest, version, body) VALUES (?, ?, ?)",
                (texts.task_digest, version, texts.task_body),
            )

    def _refuse_replan(self, trial: str, run: str, slot: int, attempt: int) -> None:
        if self._one("SELECT 1 FROM runs WHERE run = ?", run) is None:
            raise StoreError(f"trial {trial!r} belongs to run {run!r}, which is not in the store", place=str(self.path))
        if self._one("SELECT 1 FROM trials WHERE trial = ?", trial) is not None:
            raise StoreError(f"trial {trial!r} is planned already", place=str(self.path))
        twin = self._one("SELECT trial FROM trials WHERE run = ? AND slot = ? AND attempt = ?", run, slot, attempt)
        if twin is not None:
            taken = f"slot {slot}, attempt {attempt} of run {run!r} is trial {twin[0]!r}"
            raise StoreError(taken, place=str(self.path))

    def planned(self, trial: str) -> TrialPlan:
        """The plan of a trial as it was written, with its task and all files. Raises StoreError."""
        body, task_body = self._need(
            "SELECT t.body, k.body FROM trials t JOIN tasks k ON k.digest = t.task_digest WHERE t.trial = ?",
            self.trial_id(trial),
        )
        return unpack_plan(body, task_body)

    def trials(self, run: str) -> tuple[TrialRow, ...]:
        rows = self._all(f"{TRIAL_QUERY} WHERE t.run = ? ORDER BY t.slot, t.attempt", self.run_id(run))
        return tuple(trial_row(row) for row in rows)

    def ends(self, run: str) -> list[tuple[str, bool]]:
        """The planned trials of a run, and whether each has its result: what of :meth:`trials` fits for 100,000."""
        rows = self._all(
            "SELECT t.trial, r.trial IS NOT NULL FROM trials t LEFT JOIN results r USING (trial) WHERE t.run = ?",
            self.run_id(run),
        )
        return [(trial, bool(ended)) for trial, ended in rows]

    def trial(self, trial: str) -> TrialRow:
        return trial_row(self._need(f"{TRIAL_QUERY} WHERE t.trial = ?", self.trial_id(trial)))

    def run_id(self, asked: str) -> str:
        """The id that `asked` means: exact, a unique prefix, or `latest`. Raises StoreError with near matches."""
        if self._one("SELECT 1 FROM runs WHERE run = ?", asked) is not None:
            return asked
        ids = [str(id_) for (id_,) in self._all("SELECT run FROM runs ORDER BY number")]
        return choose("run", asked, ids, latest=True)

    def trial_id(self, asked: str) -> str:
        """The id that `asked` means: exact, or a unique prefix. Raises StoreError with near matches."""
        if self._one("SELECT 1 FROM trials WHERE trial = ?", asked) is not None:
            return asked
        return choose("trial", asked, [str(id_) for (id_,) in self._all("SELECT trial FROM trials")])

    # --- events --------------------------------------------------------------------------------------

    def append(self, drafts: Sequence[EventDraft]) -> tuple[Event, ...]:
        if not drafts:
            return ()
        with self._writing() as heads:
            events, rows = chain_drafts(drafts, self.head, heads)
            self._insert(rows)
        return tuple(events)

    def finish(self, result: TrialResult, drafts: Sequence[EventDraft]) -> tuple[Event, ...]:
        trial, body = result.trial, body_of(result)
        with self._writing() as heads:
            self._refuse_result(trial)
            events, rows = chain_drafts(drafts, self.head, heads)
            self._insert(rows)
            self._connection.execute("INSERT INTO results (trial, body) VALUES (?, ?)", (trial, body))
        return tuple(events)

    def add_ended(self, rows: EndedRows) -> None:
        """A batch of trials that ended elsewhere, in one transaction: an import has thousands at once."""
        try:
            with self._writing() as heads:
                insert_ended(self._connection, rows)
                heads.update(rows.heads)
        except StoreError as error:
            if isinstance(error.__cause__, sqlite3.IntegrityError):  # find what is in the way, to name it
                self._heads.clear()
                new = {trial for trial, *_ in rows.plans}
                for trial, run, slot, _, attempt, *_ in rows.plans:
                    self._refuse_replan(trial, run, slot, attempt)
                for trial, _ in rows.results:
                    if trial not in new:
                        self._refuse_result(trial)
                raise self._overtaken(rows.heads) from error
            raise

    def _refuse_result(self, trial: str) -> None:
        if self._one("SELECT 1 FROM trials WHERE trial = ?", trial) is None:
            raise StoreError(f"trial {trial!r} was never planned", place=str(self.path))
        if self._one("SELECT 1 FROM results WHERE trial = ?", trial) is not None:
            raise StoreError(f"trial {trial!r} has its result already", place=str(self.path))

    def events(self, stream: str, kinds: Sequence[str] | None = None) -> Iterator[Event]:
        """The events of a stream in order, of all kinds or of `kinds`; may be read while others write."""
        wanted = None if kinds is None else frozenset(kinds)
        for row in self.stored_events(stream):
            if wanted is None or row.kind in wanted:
                yield event_of(row)

    def stored_events(self, stream: str, *, kind: str | None = None) -> Iterator[StoredEvent]:
        """The rows of a stream in order of seq, as they lie in the database: for verification."""
        # A literal, because only that lets SQLite use the partial indices on these kinds.
        only = f" AND kind = '{kind}'" if kind in INDEXED_KINDS else " AND kind = ?2" if kind else ""
        query = (
            f"SELECT stream, seq, kind, previous, hash, body FROM events"
            f" WHERE stream = ?1 AND seq > ?3{only} ORDER BY seq LIMIT {_PAGE}"
        )
        last = -(2**62)  # a forged seq may be negative, and is to be seen
        while True:
            page = self._all(query, stream, kind, last)
            for row in page:
                yield StoredEvent(*row)
            if len(page) < _PAGE:
                return
            last = page[-1][1]

    def streams(self, run: str) -> tuple[str, ...]:
        """The streams that belong to a run: its own, and those named after it, planned trials or not."""
        id_ = self.run_id(run)
        rows = self._all(
            "SELECT DISTINCT stream FROM events WHERE stream = ?1 OR (stream > ?1 || '.' AND stream < ?1 || '/')"
            " UNION SELECT e.stream FROM trials t JOIN events e ON e.stream = t.trial AND e.seq = 0 WHERE t.run = ?1",
            id_,
        )
        return tuple(sorted(stream for (stream,) in rows))

    # --- rows as they lie, for verification ----------------------------------------------------------

    def stored_run(self, run: str) -> str:
        return str(self._need("SELECT body FROM runs WHERE run = ?", run)[0])

    def stored_plans(self, run: str) -> tuple[StoredPlan, ...]:
        rows = self._all(f"{PLAN_QUERY} WHERE t.run = ? ORDER BY t.slot, t.attempt", run)
        return tuple(StoredPlan(*row) for row in rows)

    def stored_plan(self, trial: str) -> StoredPlan:
        return StoredPlan(*self._need(f"{PLAN_QUERY} WHERE t.trial = ?", trial))

    def stored_result(self, trial: str) -> str | None:
        row = self._one("SELECT body FROM results WHERE trial = ?", trial)
        return None if row is None else str(row[0])

    def blob_problem(self, digest: str) -> str | None:
        return self.blobs.problem(digest)

    # --- blobs and ownership -------------------------------------------------------------------------

    def put_blob(self, data: bytes) -> str:
        return self.blobs.put(data)

    def blob(self, digest: str) -> bytes:
        return self.blobs.get(digest)

    @contextmanager
    def own(self, run: str) -> Iterator[None]:
        with self._leases.own(run):
            with self._lock:
                self._heads.clear()  # an owner before us may have written since we looked
            yield

    def owned(self, run: str) -> bool:
        return self._leases.owned(run)

    # --- what is no evidence -------------------------------------------------------------------------

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """One transaction that may write, all or nothing: for tables that are no evidence."""
        with self._writing():
            yield self._connection

    def select(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """The rows of a query that only reads."""
        return self._all(query, *values)

    def take(self, name: str) -> int | None:
        """As :meth:`own`, as a descriptor that another process can be given (:meth:`Leases.take`)."""
        return self._leases.take(name)

    def holder(self, name: str) -> dict[str, object] | None:
        """What the process that owns `name` wrote about itself, or None."""
        return self._leases.holder(name)

    # --- the connection ------------------------------------------------------------------------------

    def head(self, stream: str) -> Head:
        """Where a stream ends."""
        known = self._heads.get(stream)
        if known is None:
            row = self._one("SELECT seq, hash FROM events WHERE stream = ? ORDER BY seq DESC LIMIT 1", stream)
            known = empty_head(stream) if row is None else Head(row[0] + 1, row[1])
            self._heads[stream] = known
        return known

    def _insert(self, rows: Sequence[StoredEvent]) -> None:
        try:
            self._connection.executemany(
                "INSERT INTO events (stream, seq, kind, previous, hash, body) VALUES (?, ?, ?, ?, ?, ?)",
                rows,
            )
        except sqlite3.IntegrityError as error:
            self._heads.clear()
            raise self._overtaken({row.stream for row in rows}) from error

    def _overtaken(self, streams: Iterable[str]) -> StoreError:
        return StoreError(
            f"another process has written to {', '.join(sorted(streams))} since this one did",
            place=str(self.path),
            remedy="a run has one owner: own it before writing to it",
        )

    @contextmanager
    def _writing(self) -> Iterator[dict[str, Head]]:
        """One transaction, all or nothing; the heads put into what it yields hold once it is committed."""
        heads: dict[str, Head] = {}
        with self._lock, explained(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield heads
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:  # SQLite itself rolls back when the disk is full
                    self._connection.execute("ROLLBACK")
                raise
            self._heads.update(heads)

    def _one(self, query: str, *values: object) -> tuple[Any, ...] | None:
        with self._lock, explained(self.path):
            row: tuple[Any, ...] | None = self._connection.execute(query, values).fetchone()
            return row

    def _need(self, query: str, *values: object) -> tuple[Any, ...]:
        row = self._one(query, *values)
        if row is None:
            raise StoreError("a row that was there a moment ago is gone", place=str(self.path))
        return row

    def _all(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with self._lock, explained(self.path):
            return self._connection.execute(query, values).fetchall()
