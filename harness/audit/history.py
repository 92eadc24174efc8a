"""A suite's audit chain: cycles, decisions and alerts, as events of the stream `audit/SUITE`.

Like every stream it is append-only and hash-chained, so that what was decided and raised stays, and a cycle's receipt
is vouched for by the events after it. Whoever writes owns the stream (:meth:`EvidenceStore.own`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any, TypeVar

from pydantic import ValidationError

from harness.protocols import EvidenceStore
from harness.records.audit import Alert, Cycle, Decision, Receipt, SentinelRun, Table
from harness.records.base import Record, canonical_json
from harness.records.errors import StoreError
from harness.records.event import Event
from harness.runner.journal import Journal, utc_now
from harness.store.rows import describe

STARTED, RAN, FINISHED = "audit.started", "audit.run", "audit.finished"
LOOKED = "audit.looked"  # the files were written, and are what the cycle measured
DECIDED = "audit.decision"
RAISED, RESOLVED, DELIVERED = "alert.raised", "alert.resolved", "alert.delivered"
SINK = "alert.sink"
CLOCK_SLACK_S = 60.0
R = TypeVar("R", bound=Record)


class AuditBusy(StoreError):
    """Somebody else writes the suite's audit chain now: a cycle, or a decision."""


def stream_of(suite: str) -> str:
    """The stream that holds a suite's audits."""
    return f"audit/{suite}"


@dataclass(frozen=True)
class Delivery:
    """That a sink has taken an alert's message, of its raising or of its resolving."""

    alert: str
    event: str  # RAISED or RESOLVED
    sink: str


@dataclass
class AuditHistory:
    """All that a suite's chain tells, oldest first."""

    suite: str
    cycles: dict[str, Cycle] = field(default_factory=dict)
    decisions: list[Decision] = field(default_factory=list)
    alerts: dict[str, Alert] = field(default_factory=dict)
    delivered: set[Delivery] = field(default_factory=set)
    sinks: dict[str, str] = field(default_factory=dict)  # since when each takes messages
    last_at: str | None = None

    @property
    def finished(self) -> tuple[Cycle, ...]:
        """Cycles that came to their end, in order."""
        return tuple(cycle for cycle in self.cycles.values() if cycle.finished is not None)

    @property
    def standing(self) -> dict[str, Alert]:
        """Alerts that have not been resolved, by the key of their finding."""
        return {alert.finding.key: alert for alert in self.alerts.values() if alert.resolved is None}

    def take(self, event: Event) -> None:
        """Fold one event in. Raises StoreError when it is damaged."""
        payload = event.payload
        self.last_at = event.wall
        if event.kind == STARTED:
            cycle = read(Cycle, payload | {"seq": event.seq})
            self.cycles[cycle.cycle] = cycle
        elif event.kind == RAN:
            cycle = self.cycles[payload["cycle"]]
            ran = read(SentinelRun, payload["run"])
            runs = (*(run for run in cycle.runs if run.run != ran.run), ran)
            self.cycles[cycle.cycle] = cycle.model_copy(update={"runs": runs})
        elif event.kind == FINISHED:
            cycle = read(Cycle, payload)
            self.cycles[cycle.cycle] = cycle.model_copy(update={"seq": self.cycles[cycle.cycle].seq})
        elif event.kind == LOOKED:
            cycle = self.cycles[payload["cycle"]]
            self.cycles[cycle.cycle] = cycle.model_copy(update={"stamp": payload["stamp"]})
        elif event.kind == DECIDED:
            self.decisions.append(read(Decision, payload | {"seq": event.seq}))
        elif event.kind == RAISED:
            self.alerts[payload["id"]] = read(Alert, payload)
        elif event.kind == RESOLVED:
            alert = self.alerts[payload["id"]]
            self.alerts[alert.id] = alert.model_copy(update={"resolved": payload["at"]})
        elif event.kind == SINK:
            self.sinks[payload["sink"]] = payload["at"]
        elif event.kind == DELIVERED:
            self.delivered.add(Delivery(payload["id"], payload["event"], payload["sink"]))


def read_history(store: EvidenceStore, suite: str) -> AuditHistory:
    """The suite's chain so far; empty when it was never audited. Raises StoreError."""
    history = AuditHistory(suite)
    for event in store.events(stream_of(suite)):
        history.take(event)
    return history


class AuditChain:
    """Writes a suite's chain, and keeps `history` up to date with it."""

    def __init__(self, store: EvidenceStore, suite: str, history: AuditHistory) -> None:
        self.store, self.history = store, history
        self._journal = Journal(store, stream_of(suite), wall=lambda: utc_now())

    def note(self, kind: str, payload: dict[str, Any], blobs: dict[str, str] | None = None) -> None:
        self.history.take(self._journal.note(kind, payload, blobs=blobs))

    def put(self, record: Record) -> str:
        """Keep a record as a blob of canonical JSON; its digest."""
        return self.store.put_blob(canonical_json(record.plain()))


@contextmanager
def owned_chain(store: EvidenceStore, suite: str) -> Iterator[AuditChain]:
    """The right to write a suite's chain. Raises AuditBusy if somebody else has it, StoreError on a clock gone back."""
    if store.owned(stream_of(suite)):
        raise AuditBusy(
            f"an audit of suite {suite!r} is under way in another process, or in this one",
            remedy="wait for its end: two cycles at once would measure each other",
        )
    with store.own(stream_of(suite)):
        history = read_history(store, suite)
        check_clock(history, utc_now())
        yield AuditChain(store, suite, history)


def check_clock(history: AuditHistory, now: str) -> None:
    """Ages and trends mean nothing on a clock that went back. Raises StoreError."""
    if history.last_at is not None and seconds_between(now, history.last_at) > CLOCK_SLACK_S:
        raise StoreError(
            f"the clock says {now[:19]}, but the suite's last audit event is of {history.last_at[:19]}",
            remedy="set the clock; the evidence stays as it is",
        )


def seconds_between(earlier: str, later: str) -> float:
    """From one moment to another, both in ISO 8601; negative when they are the other way round."""
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()


def read_table(store: EvidenceStore, cycle: Cycle) -> Table:
    """The table of a finished cycle. Raises StoreError."""
    if cycle.table is None:
        raise StoreError(f"cycle {cycle.cycle} did not come to its end", remedy="run `assay audit all` again")
    return _table(store.blob(cycle.table))


@lru_cache(maxsize=4)
def _table(data: bytes) -> Table:
    """Thousands of rows take a while to read, and a command looks at the newest table more than once."""
    return read_json(Table, data)


def read_receipt(store: EvidenceStore, cycle: Cycle) -> Receipt:
    """The receipt of a finished cycle. Raises StoreError."""
    if cycle.receipt is None:
        raise StoreError(f"cycle {cycle.cycle} has no receipt", remedy="run `assay audit all` again")
    return read_json(Receipt, store.blob(cycle.receipt))


def receipt_problems(store: EvidenceStore, cycle: Cycle) -> tuple[str, ...]:
    """In what the evidence is no longer what the receipt bound. A run may have been added to, never changed."""
    receipt = read_receipt(store, cycle)
    problems = []
    if receipt.table != cycle.table:
        problems.append("the table is not the receipt's")
    for ran in receipt.runs:
        heads = {event.seq: event.hash for event in store.events(ran.run)}
        if heads.get(ran.events - 1) != ran.head:
            problems.append(f"the stream of run {ran.run} is not the one that was measured")
        if store.run(ran.run).config_digest != ran.config_digest:
            problems.append(f"run {ran.run} has another configuration")
    return tuple(problems)


def newest_tables(store: EvidenceStore, cycles: Iterable[Cycle]) -> Iterator[Table]:
    """Tables of finished cycles, newest first, read one by one as they are asked for."""
    for cycle in sorted(cycles, key=lambda cycle: cycle.seq, reverse=True):
        if cycle.table is not None:
            yield read_table(store, cycle)


def read_json(kind: type[R], data: bytes) -> R:
    """A record from stored JSON. Raises StoreError."""
    try:
        return kind.model_validate_json(data)
    except ValidationError as error:
        raise StoreError(f"a stored {kind.__name__} is damaged: {describe(error)}") from error


def read(kind: type[R], plain: Any) -> R:
    """A record from an event's payload. Raises StoreError."""
    try:
        return kind.model_validate(plain)
    except ValidationError as error:
        raise StoreError(f"a stored {kind.__name__} is damaged: {describe(error)}") from error
