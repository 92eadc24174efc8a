"""The base of every record, canonical JSON and content digests.

Canonical JSON: keys sorted, no white space, ASCII only, no NaN or infinity. ASCII escapes keep every
string, lone surrogates and U+2028 included, so that a digest never depends on an encoder's mood.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict

# Built once: json.dumps with options builds an encoder per call, a third of the cost of a small event.
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


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
    return _CANONICAL.encode(value).encode("ascii")


def sha256_of(data: bytes) -> str:
    """The content digest of bytes, as `sha256:` and 64 hexadecimal digits."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def digest_of(value: Any) -> str:
    """The content digest of a JSON-able value or a record, over its canonical JSON."""
    plain = value.plain() if isinstance(value, Record) else value
    return sha256_of(canonical_json(plain))
