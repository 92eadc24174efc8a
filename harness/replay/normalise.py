"""Normalisations: differences between two answers that are declared not to matter, each by name.

An answer that is JSON is compared as a tree whose numbers keep the text they were written with, so that what each rule
forgives can be told apart. What is no JSON is equal to itself alone, or to another form of the same timestamp.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from harness.records.errors import ConfigError

_INSTANT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d([.,]\d{1,6})?)?(Z|[+-]\d\d(:?\d\d)?)?")
_LONGEST_NUMBER = 400  # digits that are worth the arithmetic


@dataclass(frozen=True, slots=True)
class Written:
    """A number of a JSON text as it is written there, and in the form that it is compared in."""

    form: str
    text: str = field(compare=False)


Tree = Any  # Written | str | list[Tree] | Fields


@dataclass(frozen=True, slots=True)
class Fields:
    """An object's fields in their order; a key may occur twice."""

    pairs: tuple[tuple[str, Tree], ...]

    def each(self, change: Callable[[Tree], Tree]) -> Fields:
        """The object with every value changed."""
        return Fields(tuple((key, change(value)) for key, value in self.pairs))


@dataclass(frozen=True)
class Normalisation:
    """A rule that brings a tree into a form in which what it forgives is gone."""

    name: str
    what: str
    form: Callable[[Tree], Tree]


def tree_of(text: str) -> Tree:
    """The tree of a JSON text. Raises ValueError for what is none, or is nested too deeply to look at."""
    try:
        return _DECODER.decode(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _fields(pairs: list[tuple[str, Tree]]) -> Fields:
    return Fields(tuple(pairs))


def _written(text: str) -> Written:
    return Written(text, text)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_fields, parse_int=_written, parse_float=_written, parse_constant=_written
)


def _leaves(tree: Tree, change: Callable[[Any], Any]) -> Tree:
    """The tree with every leaf changed; keys are no leaves."""
    if isinstance(tree, Fields):
        return tree.each(lambda value: _leaves(value, change))
    if isinstance(tree, list):
        return [_leaves(value, change) for value in tree]
    return change(tree)


def layout(tree: Tree) -> Tree:
    """White space between JSON's tokens, and how its strings are escaped: gone with the parsing."""
    return tree


def key_order(tree: Tree) -> Tree:
    """The order of an object's keys. A key that occurs twice keeps the order of its values."""
    if isinstance(tree, Fields):
        return Fields(tuple(sorted(tree.each(key_order).pairs, key=lambda pair: pair[0])))
    if isinstance(tree, list):
        return [key_order(value) for value in tree]
    return tree


def number_form(tree: Tree) -> Tree:
    """How a number is written: 250, 250.0 and 2.5e2 are one. Exact, without floating point; -0 is 0."""
    return _leaves(tree, _number)


def _number(leaf: Any) -> Any:
    if not isinstance(leaf, Written) or len(leaf.text) > _LONGEST_NUMBER:
        return leaf
    try:
        value = Decimal(leaf.text)
    except InvalidOperation:
        return leaf
    if not value.is_finite() or abs(value.adjusted()) > _LONGEST_NUMBER:
        return leaf
    sign, digits, exponent = value.as_tuple()
    written = "".join(map(str, digits)).lstrip("0")
    bare = written.rstrip("0")
    assert isinstance(exponent, int)  # of a finite number
    form = f"{'-' if sign else ''}{bare}e{exponent + len(written) - len(bare)}" if bare else "0"
    return Written(form, leaf.text)


def timestamp_format(tree: Tree) -> Tree:
    """How an instant is written in ISO 8601: `T` or a space, seconds or fractions that are 0, `Z` or an offset.

    A time without an offset is no instant of one with; a date alone is no timestamp.
    """
    return _leaves(tree, _instant)


def _instant(leaf: Any) -> Any:
    if not isinstance(leaf, str) or not _INSTANT.fullmatch(leaf):
        return leaf
    try:
        moment = datetime.fromisoformat(leaf)
    except ValueError:
        return leaf
    return (moment.astimezone(UTC) if moment.tzinfo is not None else moment).isoformat()


def renamed(old: str, new: str) -> Normalisation:
    """A field that is called otherwise in one of two versions of the data. Never applied unless asked for."""

    def form(tree: Tree) -> Tree:
        if isinstance(tree, Fields):
            return Fields(tuple((new if key == old else key, form(value)) for key, value in tree.pairs))
        return [form(value) for value in tree] if isinstance(tree, list) else tree

    return Normalisation(f"rename:{old}={new}", f"the field {old} is called {new} in the other version", form)


LAYOUT = Normalisation("layout", "white space between tokens, escapes in strings", layout)
STANDARD: tuple[Normalisation, ...] = (
    LAYOUT,
    Normalisation("key-order", "the order of an object's keys", key_order),
    Normalisation("number-form", "250, 250.0 and 2.5e2", number_form),
    Normalisation("timestamp-format", "2024-05-15 15:00:00, 2024-05-15T15:00:00.000, …Z and …+00:00", timestamp_format),
)
NONE = "none"
_RENAME = "rename:"


def normalisations(names: Sequence[str]) -> tuple[Normalisation, ...]:
    """The rules of those names; no name: the standard ones; `none`: none at all. Raises ConfigError.

    The layout is gone before any other rule is applied, so that any of them brings it along.
    """
    if not names:
        return STANDARD
    if tuple(names) == (NONE,):
        return ()
    known = {rule.name: rule for rule in STANDARD}
    found: dict[str, Normalisation] = {LAYOUT.name: LAYOUT}
    for name in names:
        old, equals, new = name.removeprefix(_RENAME).partition("=")
        if name.startswith(_RENAME) and old and equals and new:
            found[name] = renamed(old, new)
        elif name == "standard":
            found |= known
        elif name in known:
            found[name] = known[name]
        else:
            raise ConfigError(
                f"there is no normalisation {name!r}",
                place="--normalise",
                remedy=f"known: {', '.join(known)}, standard, none, rename:OLD=NEW",
            )
    return tuple(found.values())
