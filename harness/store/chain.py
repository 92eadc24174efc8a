"""Giving drafts their place: sequence numbers, hashes and canonical bodies, as a pure step before any I/O."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from harness.records.errors import StoreError
from harness.records.event import Event, EventDraft, chain_start, fields_body, link_body
from harness.records.vocabulary import Actor, Phase
from harness.store.encoding import storable


class Head(NamedTuple):
    """Where a stream ends: the seq that comes next, and the hash that it continues."""

    seq: int
    hash: str


class StoredEvent(NamedTuple):
    """An event as its row holds it, in the order of the columns. `body` is canonical JSON, not yet believed."""

    stream: str
    seq: int
    kind: str
    previous: str
    hash: str
    body: str


EventRow = tuple[str, int, str, str, str, str]  # a StoredEvent as a plain tuple, where there are millions


_DRAFT_FIELDS = frozenset(EventDraft.model_fields)
_BODY_KEYS = _DRAFT_FIELDS | {"seq"}


def empty_head(stream: str) -> Head:
    """The head of a stream without events."""
    return Head(0, chain_start(stream))


def chain_drafts(
    drafts: Iterable[EventDraft], head_of: Callable[[str], Head], heads: dict[str, Head]
) -> tuple[list[Event], list[StoredEvent]]:
    """Events and their rows. `heads` goes before `head_of`, and is moved on. Raises StoreError."""
    events: list[Event] = []
    rows: list[StoredEvent] = []
    for draft in drafts:
        stream = draft.stream
        head = heads.get(stream) or head_of(stream)
        fields = _plain_fields(draft)
        body = fields_body(fields, head.seq)
        digest = link_body(head.hash, body)
        # Constructed without validation: the fields are a valid draft's, and this is the hot path of the store.
        events.append(Event.model_construct(seq=head.seq, previous=head.hash, hash=digest, **fields))
        rows.append(StoredEvent(stream, head.seq, draft.kind, head.hash, digest, body.decode("ascii")))
        heads[stream] = Head(head.seq + 1, digest)
    return events, rows


def chain_bodies(
    stream: str, kinds: Sequence[str], bodies: Sequence[str], head: Head | None, into: list[EventRow]
) -> Head:
    """Add the rows of events whose canonical bodies are made already, for the numbers that come next in their stream.
    `head` is where that ends, None before its first event; returns where it ends then."""
    seq, previous = head or empty_head(stream)
    for kind, body in zip(kinds, bodies, strict=True):
        digest = link_body(previous, body.encode("ascii"))
        into.append((stream, seq, kind, previous, digest, body))
        seq, previous = seq + 1, digest
    return Head(seq, previous)


def _plain_fields(draft: EventDraft) -> dict[str, Any]:
    """The fields of a draft as they read back from canonical JSON."""
    fields = {name: value for name, value in draft.__dict__.items() if name in _DRAFT_FIELDS}
    fields["payload"] = storable(draft.payload)
    clock = fields["monotonic_s"] = float(draft.monotonic_s)
    if clock - clock != 0:  # NaN and both infinities
        raise StoreError(f"the clock of an event of kind {draft.kind!r} reads {clock!r}", place=draft.stream)
    return fields


def event_of(row: StoredEvent) -> Event:
    """The event that a row holds. Raises StoreError when the row cannot be one."""
    try:
        fields: dict[str, Any] = json.loads(row.body)
        fields["actor"] = Actor(fields["actor"])
        fields["phase"] = None if fields["phase"] is None else Phase(fields["phase"])
        if fields.keys() != _BODY_KEYS:
            raise ValueError(f"its keys are {sorted(fields)}")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(
            f"event {row.seq} of stream {row.stream!r} is damaged: {error}",
            remedy="`assay verify` says what still holds",
        ) from error
    return Event.model_construct(**fields, previous=row.previous, hash=row.hash)
