"""Events: the only way anything that happened is written down.

Events are append-only and hash-chained per stream. A stream is a trial's id, or the run's own id for what
concerns the run (plan, adaptive choices). Each event's hash covers the one before, so a changed, dropped
or reordered event breaks the chain at a place that can be named.
"""

from __future__ import annotations

import hashlib
from typing import Any

from harness.records.base import Record, canonical_json
from harness.records.vocabulary import Actor, Phase


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


def link(draft: EventDraft, seq: int, previous: str) -> str:
    """The hash of an event: sha256 over the previous hash and the canonical JSON of the event with its seq."""
    body = canonical_json({**draft.model_dump(mode="json", exclude={"seq", "previous", "hash"}), "seq": seq})
    return hashlib.sha256(previous.encode() + b"\n" + body).hexdigest()
