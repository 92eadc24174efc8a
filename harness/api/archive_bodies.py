"""Canonical bodies of imported events, of which nothing was measured here: an archive has millions of them.

The same bytes as the store makes of an event, several times as fast: the fixed parts are made once.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from json.encoder import encode_basestring_ascii as quoted
from typing import Any

from harness.records.archive import Step
from harness.records.base import canonical_text, sha256_of
from harness.records.vocabulary import Actor, Phase
from harness.store.encoding import storable

_LONG, _STRIDE = 3900, 1950  # digits of an integer that the store tags


def unmeasured_body(stream: str, step: Step, seq: int, payload: str, apart: str | None = None) -> str:
    """The canonical body of an event of which nothing was measured here, as :func:`harness.records.event.event_body`
    gives it. `payload` is canonical JSON; `apart` is the text of the payload's `content`, where that is kept as a blob.
    """
    kind, actor, _, phase, wall, span, parent = step
    blobs = "{}" if apart is None else canonical_text({"content": sha256_of(apart.encode("utf-8", "surrogatepass"))})
    first, second, third, last = _fixed(kind, actor, phase, stream)
    return (
        f'{first}{blobs}{second}{"null" if parent is None else quoted(parent)},"payload":{payload}{third}{seq},"span":'
        f"{'null' if span is None else quoted(span)}{last}{quoted(wall)}}}"
    )


def harness_body(stream: str, kind: str, seq: int, payload: str) -> str:
    """:func:`unmeasured_body` of what the harness itself notes of an import."""
    return unmeasured_body(stream, Step(kind, Actor.HARNESS, {}, None), seq, payload)


@lru_cache(maxsize=64)
def _fixed(kind: str, actor: Actor, phase: Phase | None, stream: str) -> tuple[str, str, str, str]:
    return (
        f'{{"actor":{quoted(actor)},"attempt":1,"blobs":',
        f',"kind":{quoted(kind)},"monotonic_s":0.0,"parent":',
        f',"phase":{"null" if phase is None else quoted(phase)},"seq":',
        f',"state_digest":null,"stream":{quoted(stream)},"wall":',
    )


def payload_text(payload: Any) -> str:
    """The canonical JSON of a payload as the store keeps it. Raises StoreError for what cannot be stored.

    Most are plain already; only what is not is brought into plain form first.
    """
    try:
        text = canonical_text(payload)
    except (ValueError, TypeError, RecursionError):
        return canonical_text(storable(payload))
    if len(text) > _LONG:
        # A number that has to be tagged covers two of these characters in a row.
        samples = text[::_STRIDE]
        if any(one.isdigit() and two.isdigit() for one, two in pairwise(samples)):
            return canonical_text(storable(payload))
    return text
