"""Writes what happens to the store, in the words of one stream."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from typing import Any

from harness.protocols import EvidenceStore
from harness.records.event import Event, EventDraft
from harness.records.execution import Captured, ExecResult
from harness.records.grade import TrialResult
from harness.records.vocabulary import Actor, Phase
from harness.runner.redaction import Redactor

INLINE_BYTES = 4096  # longer bodies, and bytes that are not UTF-8, go to the blob folder


def utc_now() -> str:
    """Now, as ISO 8601 in UTC with microseconds."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


@dataclass
class Journal:
    """The events of one stream. Every call is durable when it returns."""

    store: EvidenceStore
    stream: str
    attempt: int = 1
    redactor: Redactor = field(default_factory=Redactor)
    wall: Callable[[], str] = utc_now
    monotonic: Callable[[], float] = time.monotonic
    phase: Phase | None = None

    def __post_init__(self) -> None:
        self._spans = count(1)

    def new_span(self) -> str:
        """A span id, unique in the stream."""
        return f"s{next(self._spans)}"

    def note(
        self,
        kind: str,
        payload: Mapping[str, Any] | None = None,
        *,
        actor: Actor = Actor.HARNESS,
        span: str | None = None,
        parent: str | None = None,
        blobs: Mapping[str, str] | None = None,
        state_digest: str | None = None,
    ) -> Event:
        """Store one event now; with the digest of the state it left, at a checkpoint."""
        draft = self.draft(kind, payload, actor=actor, span=span, parent=parent, blobs=blobs)
        if state_digest is not None:
            draft = draft.model_copy(update={"state_digest": state_digest})
        return self.store.append([draft])[0]

    def draft(
        self,
        kind: str,
        payload: Mapping[str, Any] | None = None,
        *,
        actor: Actor = Actor.HARNESS,
        span: str | None = None,
        parent: str | None = None,
        blobs: Mapping[str, str] | None = None,
    ) -> EventDraft:
        """An event, redacted, to be stored together with others."""
        return EventDraft(
            stream=self.stream,
            kind=kind,
            actor=actor,
            phase=self.phase,
            wall=self.wall(),
            monotonic_s=self.monotonic(),
            span=span,
            parent=parent,
            attempt=self.attempt,
            payload=self.redactor.value(dict(payload or {})),
            blobs=dict(blobs or {}),
        )

    def finish(self, result: TrialResult, drafts: Sequence[EventDraft]) -> tuple[Event, ...]:
        """Store the last events and the result in one transaction."""
        return self.store.finish(result, drafts)

    def keep(self, data: bytes) -> str:
        """Keep a body in the blob folder, redacted; returns its sha256."""
        return self.store.put_blob(self.redactor.data(data))

    def is_clean(self, data: bytes) -> bool:
        """Whether a body holds no known secret."""
        return self.redactor.data(data) == data

    def body(self, data: bytes, name: str, blobs: dict[str, str]) -> str | None:
        """Text to put inline, or None after storing the bytes as blob `name`."""
        if len(data) <= INLINE_BYTES:
            try:
                return data.decode()
            except UnicodeDecodeError:
                pass
        blobs[name] = self.keep(data)
        return None

    def command_payload(self, result: ExecResult) -> tuple[dict[str, Any], dict[str, str]]:
        """How a command's end is written down: facts, and both streams with what was seen and kept of them."""
        blobs: dict[str, str] = {}
        payload: dict[str, Any] = {
            "exit_code": result.exit_code,
            "duration_s": round(result.duration_s, 6),
            "timed_out": result.timed_out,
            "memory_killed": result.memory_killed,
            "stdio_held_open": result.stdio_held_open,
            "output_ended_early": result.output_ended_early,
            "processes_ended": result.processes_ended,
        }
        for name, captured in (("stdout", result.stdout), ("stderr", result.stderr)):
            payload[name] = self._stream_payload(captured, name, blobs)
        return payload, blobs

    def _stream_payload(self, captured: Captured, name: str, blobs: dict[str, str]) -> dict[str, Any]:
        described: dict[str, Any] = {"seen_bytes": captured.seen_bytes, "kept_bytes": captured.kept_bytes}
        if captured.truncated:
            described["truncated"] = True
            blobs[f"{name}.head"] = self.keep(captured.head)
            blobs[f"{name}.tail"] = self.keep(captured.tail)
        elif captured.seen_bytes:
            described["text"] = self.body(captured.head + captured.tail, name, blobs)
        return described
