"""Giving drafts their place: sequence numbers, hashes and canonical bodies, as a pure step before any I/O."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from harness.records.errors import StoreError
from harness.records.event import Event, EventDraft, chain_start, event_body, link_body
from harness.records.vocabulary import Actor, Phase
from harness.store.encoding import storable


@dataclass(frozen=True)
class Head:
    """Where a stream ends: the seq that comes next, and the hash that it continues."""

    seq: int
    hash: str


@dataclass(frozen=True)
class StoredEvent:
    """An event as its row holds it. `body` is canonical JSON; nothing in it has been believed yet."""

    stream: str
    seq: int
    kind: str
    previous: str
    hash: str
    body: str


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
        plain = _plain_draft(draft)
        body = event_body(plain, head.seq)
        digest = link_body(head.hash, body)
        events.append(Event.model_construct(**plain.__dict__, seq=head.seq, previous=head.hash, hash=digest))
        rows.append(StoredEvent(stream, head.seq, draft.kind, head.hash, digest, body.decode("ascii")))
        heads[stream] = Head(head.seq + 1, digest)
    return events, rows


def _plain_draft(draft: EventDraft) -> EventDraft:
    """The draft as it reads back from its canonical JSON."""
    fields = {name: getattr(draft, name) for name in EventDraft.model_fields}
    fields["payload"] = storable(draft.payload)
    fields["monotonic_s"] = _finite(float(draft.monotonic_s), draft)
    return EventDraft.model_construct(**fields)


def _finite(value: float, draft: EventDraft) -> float:
    if value - value != 0:  # NaN and both infinities
        raise StoreError(f"the clock of an event of kind {draft.kind!r} reads {value!r}", place=draft.stream)
    return value


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


_BODY_KEYS = set(EventDraft.model_fields) | {"seq"}
