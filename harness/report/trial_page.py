"""A trial for a terminal and for a program: its result, its events, and on demand what was said and printed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from harness.protocols import EvidenceStore
from harness.records.base import sha256_of
from harness.records.errors import StoreError
from harness.records.event import Event
from harness.records.run import TrialRow
from harness.report.bodies import Body, bodies_of, is_binary, readable
from harness.report.text import LONGEST_LINE, ending_text
from harness.report.words import printable

SHOWN_CHARACTERS = 8000  # of one body in a page; `--log NAME` prints all of it
_TAIL_SHARE = 0.25  # of what is shown, the end: errors stand there
_INDENT = "      │ "


def result_text(row: TrialRow) -> str:
    """Which trial it is and how it ended, with its flags."""
    lines = [f"{row.trial}  task {printable(row.task)}  attempt {row.attempt}  {row.state.value}"]
    if row.result is not None:
        result = row.result
        lines.append(ending_text(result.outcome, result.reason, result.stop, (result.stop_detail, result.detail)))
        lines += [f"  flag: {printable(flag)}" for flag in result.flags]
    return "\n".join(lines)


def event_text(event: Event) -> str:
    """One event on one line: sequence, time, phase, actor, kind, and the start of its payload."""
    payload = json.dumps(event.payload, ensure_ascii=True)
    head = f"{event.seq:4} {event.wall[11:23]} {event.phase or '-':11} {event.actor:11} {event.kind:24}"
    room = LONGEST_LINE - len(head)
    return head + " " + (payload if len(payload) <= room else payload[: room - 1] + "…")


def full_text(event: Event, store: EvidenceStore) -> str:
    """An event with its bodies below it, each cut to SHOWN_CHARACTERS with a note. A blob that cannot be read is said
    in its place."""
    lines = [event_text(event)]
    for body in bodies_of(event):
        lines += _body_lines(body, store)
    return "\n".join(lines)


def _body_lines(body: Body, store: EvidenceStore) -> Iterator[str]:
    where = f"  {body.digest}" if body.digest is not None else ""
    try:
        data = body.read(store)
    except StoreError as error:
        yield f"    ── {body.name}  CANNOT BE READ: {error}"
        return
    if is_binary(data):
        yield f"    ── {body.name}  {len(data):,} bytes, binary{where}"
        return
    yield f"    ── {body.name}  {len(data):,} bytes{where}"
    shown, left_out = cut(readable(body, data))
    head, tail = shown
    yield from (_INDENT + line for line in head.splitlines())
    if left_out:
        yield f"    ── {left_out:,} characters left out here: --log {body.name} prints all"
        yield from (_INDENT + line for line in tail.splitlines())


def cut(text: str, most: int = SHOWN_CHARACTERS) -> tuple[tuple[str, str], int]:
    """The beginning and the end of a text, at most `most` characters together, and how many are left out between."""
    if len(text) <= most:
        return (text, ""), 0
    tail = int(most * _TAIL_SHARE)
    return (text[: most - tail], text[len(text) - tail :]), len(text) - most


def plain_bodies(bodies: Iterable[Body], store: EvidenceStore, *, whole: bool) -> list[dict[str, Any]]:
    """Bodies for `--json`: `text` decoded with replacement, cut unless `whole` (`left_out` counts characters).

    `text` is null and `problem` says why where a blob cannot be read; with `whole` that raises StoreError.
    """
    return [_plain(body, store, whole) for body in bodies]


def _plain(body: Body, store: EvidenceStore, whole: bool) -> dict[str, Any]:
    plain: dict[str, Any] = {"name": body.name, "event": body.seq, "kind": body.kind, "part": body.part}
    empty = {"sha256": body.digest, "bytes": None, "text": None, "left_out": 0, "problem": None}
    try:
        data = body.read(store)
    except StoreError as error:
        if whole:
            raise
        return plain | empty | {"problem": str(error)}
    text = data.decode("utf-8", "replace")
    (head, tail), left_out = ((text, ""), 0) if whole else cut(text)
    shown = {"text": head + tail, "left_out": left_out, "bytes": len(data), "sha256": body.digest or sha256_of(data)}
    return plain | empty | shown


def all_bodies(events: Sequence[Event]) -> tuple[Body, ...]:
    return tuple(body for event in events for body in bodies_of(event))
