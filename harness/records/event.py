"""Events: the only way anything that happened is written down.

Events are append-only and hash-chained per stream. A stream is a trial's id, or the run's own id for what
concerns the run (plan, adaptive choices). Each event's hash covers the one before, so a changed, dropped
or reordered event breaks the chain at a place that can be named.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from json.encoder import encode_basestring_ascii as quoted
from typing import Any

from harness.records.base import Record, canonical_text
from harness.records.vocabulary import Actor, Phase

_EMPTY = hashlib.sha256()


class EventDraft(Record):
    """What happened, before the store gives it its place in the chain.

    `payload` is JSON-able. `blobs` maps a name to the sha256 of a body in the blob folder. `monotonic_s` is
    the harness's monotonic clock, comparable within one process only; `wall` is UTC in ISO 8601.
    """

    stream: str
    kind: str  # dotted, e.g. "trial.state", "exec", "model.call"; OpenTelemetry GenAI names inside payloads
    actor: Actor
    phase: Phase | None = None
    wall: str
    monotonic_s: float
    span: str | None = None
    parent: str | None = None
    attempt: int = 1
    payload: dict[str, Any] = {}
    blobs: dict[str, str] = {}
    state_digest: str | None = None


class Event(EventDraft):
    """A stored event: a draft with its sequence number (from 0), and the chain."""

    seq: int
    previous: str
    hash: str


def chain_start(stream: str) -> str:
    """The hash that the first event of a stream continues."""
    return hashlib.sha256(b"assay-event-chain/1:" + stream.encode("utf-8", "surrogatepass")).hexdigest()


def event_body(draft: EventDraft, seq: int) -> bytes:
    """The canonical JSON of an event without its chain: what is hashed, and what a store keeps.

    The payload must be plain JSON: a store first tags what is not (NaN, bytes). Raises ValueError or TypeError.
    """
    return fields_body({name: getattr(draft, name) for name in EventDraft.model_fields}, seq)


def fields_body(fields: Mapping[str, Any], seq: int) -> bytes:
    """:func:`event_body` from the fields of a draft by name.

    Put together field by field, in the order of their names: most are short and of one known type.
    """
    attempt, clock, blobs = fields["attempt"], fields["monotonic_s"], fields["blobs"]
    return (
        f'{{"actor":{quoted(fields["actor"])},"attempt":{attempt if type(attempt) is int else canonical_text(attempt)}'
        f',"blobs":{canonical_text(blobs) if blobs else "{}"},"kind":{quoted(fields["kind"])}'
        f',"monotonic_s":{repr(clock) if type(clock) is float and clock - clock == 0 else canonical_text(clock)}'
        f',"parent":{_text(fields["parent"])},"payload":{canonical_text(fields["payload"])}'
        f',"phase":{_text(fields["phase"])},"seq":{seq},"span":{_text(fields["span"])}'
        f',"state_digest":{_text(fields["state_digest"])},"stream":{quoted(fields["stream"])}'
        f',"wall":{quoted(fields["wall"])}}}'
    ).encode("ascii")


def _text(value: str | None) -> str:
    return "null" if value is None else quoted(value)


def link_body(previous: str, body: bytes) -> str:
    """The hash of an event: sha256 over the previous hash, a line feed, and the event's canonical JSON."""
    link = _EMPTY.copy()  # half the price of a new one
    link.update(previous.encode() + b"\n")
    link.update(body)
    return link.hexdigest()


def link(draft: EventDraft, seq: int, previous: str) -> str:
    """The hash that `draft` has as number `seq` after an event with hash `previous`."""
    return link_body(previous, event_body(draft, seq))
