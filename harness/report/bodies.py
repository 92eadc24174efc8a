"""What was said and printed in a trial: the texts and bytes that its events carry, by name.

A body is called after its event and its part of it: `12.stdout` is what the command of event 12 printed. Short bodies
lie in the event, long ones in the blob folder under their sha256.
"""

from __future__ import annotations

import difflib
import json
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from harness.protocols import EvidenceStore
from harness.records.errors import StoreError
from harness.records.event import Event
from harness.report.words import printable

# What an event carries in its payload as text, unless it was so long that it became a blob of the same name.
_TEXTS = {
    "model.request": ("new_messages", "tools"),
    "model.call": ("message",),
    "model.failed": ("error",),
    "solver.note": ("body",),
    "message": ("content",),  # of imported trials, as the next one
    "tool.result": ("content",),
    "interaction.ended": ("error",),
    "solver.unmade": ("error",),
    "harness.error": ("error",),
    "grader.error": ("error",),
}
_MOST_NAMED = 40
_LOOKED_AT_BYTES = 8000


@dataclass(frozen=True)
class Body:
    """One text or sequence of bytes of an event. `text` where it lies in the event, else `digest` names its blob."""

    seq: int
    kind: str
    part: str
    text: str | None = None
    digest: str | None = None

    @property
    def name(self) -> str:
        return f"{self.seq}.{self.part}"

    def answers_to(self, asked: str) -> bool:
        """Whether `asked` means this body: its name, its event's number or kind, its part, or kind and part."""
        names = (str(self.seq), self.kind, self.part, self.name, f"{self.kind}.{self.part}")
        # A long stream is kept as a head and a tail: `12.stdout` means both.
        return asked in names or any(name.startswith(f"{asked}.") for name in names[2:])

    def read(self, store: EvidenceStore) -> bytes:
        """The body itself. Raises StoreError when its blob is missing or damaged."""
        if self.digest is not None:
            return store.blob(self.digest)
        return (self.text or "").encode("utf-8", "surrogatepass")


def bodies_of(event: Event) -> tuple[Body, ...]:
    """The bodies of an event: those in its payload first, then its blobs."""
    inline = tuple(Body(event.seq, event.kind, part, text=text) for part, text in _inline(event.kind, event.payload))
    blobs = tuple(Body(event.seq, event.kind, part, digest=digest) for part, digest in event.blobs.items())
    return inline + blobs


def _inline(kind: str, payload: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if kind == "exec.started" and isinstance(payload.get("argv"), list):
        yield "command", _command([str(part) for part in payload["argv"]])
    for part in _TEXTS.get(kind, ()):
        if isinstance(payload.get(part), str):
            yield part, payload[part]
    for stream in ("stdout", "stderr"):
        described = payload.get(stream)
        if isinstance(described, dict) and isinstance(described.get("text"), str):
            yield stream, described["text"]


def _command(argv: list[str]) -> str:
    """A shell line as it was written, any other command as one would type it."""
    return argv[2] if len(argv) == 3 and argv[0] in ("bash", "sh") and argv[1] == "-c" else shlex.join(argv)


def named(bodies: Iterable[Body], asked: str) -> tuple[Body, ...]:
    """The bodies that `asked` means, in order. Raises StoreError that lists what there is."""
    bodies = tuple(bodies)
    found = tuple(body for body in bodies if body.answers_to(asked))
    if not found:
        names = [body.name for body in bodies]
        kinds = sorted({f"{body.kind}.{body.part}" for body in bodies})
        near = difflib.get_close_matches(asked, [*names, *kinds], n=3, cutoff=0.5)
        hint = f"near: {', '.join(near)}; " if near else ""
        more = ", …" if len(names) > _MOST_NAMED else ""
        remedy = f"{hint}there are {', '.join(names[:_MOST_NAMED]) or 'none'}{more}; or one of {', '.join(kinds)}"
        raise StoreError(f"the trial has no body called {asked!r}", remedy=remedy)
    return found


def digest_named(bodies: Iterable[Body], asked: str) -> str:
    """The one blob of a trial that a sha256, or a unique beginning of it, means. Raises StoreError."""
    wanted = asked.removeprefix("sha256:").lower()
    digests = sorted({body.digest for body in bodies if body.digest is not None})
    found = [digest for digest in digests if wanted and digest.removeprefix("sha256:").startswith(wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        raise StoreError(f"{asked!r} begins {len(found)} blobs of this trial", remedy="write more of the sha256")
    raise StoreError(
        f"no blob of this trial is {asked!r}", remedy=f"it has {len(digests)}: `assay trial TRIAL --full` shows them"
    )


def is_binary(data: bytes) -> bool:
    """Whether a body is no text: an archive, an image."""
    return b"\0" in data[:_LOOKED_AT_BYTES]


def readable(body: Body, data: bytes) -> str:
    """A body as a person reads it: decoded with replacement, printable; chat messages as a conversation."""
    text = data.decode("utf-8", "replace")
    if body.part in ("new_messages", "message"):
        try:
            said = json.loads(text)
            messages = said if isinstance(said, list) else [said]
            text = "\n".join(_message(message) for message in messages)
        except (ValueError, AttributeError, TypeError):
            pass  # not a conversation after all: shown as it is
    return printable(text)


def _message(message: Mapping[str, Any]) -> str:
    lines = [f"[{message.get('role', '?')}] {_content(message.get('content'))}".rstrip()]
    for call in message.get("tool_calls") or ():
        function = call.get("function") or {}
        lines.append(f"  calls {function.get('name')}({function.get('arguments')})")
    return "\n".join(lines)


def _content(content: Any) -> str:
    if content is None:
        return ""
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
