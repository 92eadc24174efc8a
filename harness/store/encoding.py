"""The boundary between Python values and stored JSON: what JSON cannot hold is tagged, never dropped.

A NaN that became null, or a set that became a list in an order of its own, would be evidence changed in
silence. So: a non-finite float is `{"$float": "nan"}` (or "inf", "-inf"), bytes are `{"$base64": "…"}`, an
integer of more than 4,000 digits is `{"$int": "0x…"}`, a set is a sorted list, a key that is no string is its
text. Tagged values stay tagged when they are read back. Everything else that JSON lacks is refused.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from enum import Enum
from numbers import Integral, Real
from pathlib import PurePath
from typing import Any

from harness.records.base import Record, canonical_json
from harness.records.errors import StoreError

_LONGEST_INTEGER_BITS = 13_000  # about 3,900 digits: Python refuses to print more than 4,300


class UnstorableError(StoreError):
    """A value has no form in stored JSON."""


def storable(value: Any, place: str = "payload") -> Any:
    """`value` as plain JSON builtins, equal to what reading it back gives. Idempotent.

    Raises UnstorableError, naming the place inside the value, for what cannot be stored.
    """
    try:
        return _plain(value)
    except _Unstorable as error:
        where = ".".join([place, *reversed(error.path)])
        raise UnstorableError(
            error.problem, place=where, remedy="give plain JSON values, or keep it as a blob"
        ) from None
    except RecursionError:
        raise UnstorableError(
            "the value is nested too deeply to store", place=place, remedy="keep it as a blob"
        ) from None


class _Unstorable(Exception):
    """Collects the path to the culprit on its way up, so that good values pay nothing for it."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.path: list[str] = []


def _plain(value: Any) -> Any:
    kind = type(value)
    if kind is str or value is None or kind is bool:
        return value
    if kind is int:
        return value if value.bit_length() < _LONGEST_INTEGER_BITS else {"$int": hex(value)}
    if kind is float:
        return value if math.isfinite(value) else {"$float": repr(value)}
    if kind is dict:
        return _plain_mapping(value)
    if kind is list or kind is tuple:
        return [_plain(item) for item in value]
    return _plain_uncommon(value)


def _plain_uncommon(value: Any) -> Any:
    """Subclasses and less usual types, after the exact builtins have been tried."""
    if isinstance(value, Record):
        return _plain(dict(value))
    if isinstance(value, Enum):
        return _plain(value.value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"$base64": base64.b64encode(bytes(value)).decode()}
    if isinstance(value, Integral):
        return _plain(int(value))
    if isinstance(value, Real):
        return _plain(float(value))
    if isinstance(value, Mapping):
        return _plain_mapping(value)
    if isinstance(value, AbstractSet):
        return sorted((_plain(item) for item in value), key=canonical_json)
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, PurePath):
        return str(value)
    raise _Unstorable(f"a {type(value).__name__} cannot be stored")


def _plain_mapping(value: Mapping[Any, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for key, item in value.items():
        name = key if type(key) is str else _key_text(key)
        if name in plain:
            raise _Unstorable(f"two keys become {name!r} in JSON")
        kind = type(item)
        if kind is str or item is None or kind is bool:  # most values, without a call
            plain[name] = item
            continue
        try:
            plain[name] = _plain(item)
        except _Unstorable as error:
            error.path.append(name)
            raise
    return plain


def _key_text(key: Any) -> str:
    if isinstance(key, Enum):
        key = key.value
    return str.__str__(key) if isinstance(key, str) else str(key)
