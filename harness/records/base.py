"""The base of every record, canonical JSON and content digests.

Canonical JSON: keys sorted, no white space, ASCII only, no NaN or infinity. ASCII escapes keep every
string, lone surrogates and U+2028 included, so that a digest never depends on an encoder's mood.
"""

from __future__ import annotations

import hashlib
import json
import json.encoder
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict

_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
# The C encoder behind it, made once: `encode` makes a new one per call, a third of the cost of a small event. It does
# not note what it is inside of, so a value that holds itself ends in RecursionError, and goes to the other.
_MAKE_ENCODER = getattr(json.encoder, "c_make_encoder", None)
_CHUNKS: Callable[[Any, int], Iterable[str]] | None = _MAKE_ENCODER and _MAKE_ENCODER(
    None, _CANONICAL.default, json.encoder.encode_basestring_ascii, None, ":", ",", True, False, False
)


class Record(BaseModel):
    """A frozen, strict-keyed value. Two records are equal when their fields are."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_bytes="base64", val_json_bytes="base64")

    def plain(self) -> dict[str, Any]:
        """This record as JSON-able builtins: enums by value, bytes as base64, tuples as lists."""
        return self.model_dump(mode="json")

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with some fields changed. What was derived from the old fields and cached does not come along."""
        copied = super().model_copy(update=update, deep=deep)
        for name in copied.__dict__.keys() - type(self).model_fields.keys():
            del copied.__dict__[name]
        return copied


def canonical_json(value: Any) -> bytes:
    """Serialise JSON-able `value` to its one canonical byte form.

    Raises ValueError for NaN or infinity, TypeError for what JSON cannot hold.
    """
    return canonical_text(value).encode("ascii")


def canonical_text(value: Any) -> str:
    """:func:`canonical_json` as text, ASCII only."""
    if _CHUNKS is None:
        return _CANONICAL.encode(value)
    try:
        return "".join(_CHUNKS(value, 0))
    except RecursionError:
        return _CANONICAL.encode(value)


def sha256_of(data: bytes) -> str:
    """The content digest of bytes, as `sha256:` and 64 hexadecimal digits."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def digest_of(value: Any) -> str:
    """The content digest of a JSON-able value or a record, over its canonical JSON."""
    plain = value.plain() if isinstance(value, Record) else value
    return sha256_of(canonical_json(plain))
