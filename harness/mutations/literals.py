"""Edits of literals and comparisons in a piece of code of whatever language: awk, SQL, Python, jq."""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness.mutations.edits import Edit, Operator, Replacement, line_of

_NUMBER = re.compile(r"(?<![\w.$#&\\])(\d+)(?![\w])")
_FIELD = re.compile(r"(?<=\$)(\d+)(?![\w])")  # awk's $3
_STRING = re.compile(r"\"([A-Za-z][\w .,:-]*)\"|'([A-Za-z][\w .,:-]*)'")
# A lone < or > is a comparison between blanks or between operands; after a file descriptor, or before a path or a
# quote, it redirects.
_COMPARISON = re.compile(
    r"(?<![-=<>!+*/&|^%~])(?:(==|!=|<=|>=)(?!=)|(?<=\s)([<>])(?=\s+[\w($-])|(?<=[\w)\]])(?<![\s;]\d)([<>])(?=[\w($-]))"
)
_OPPOSITE = {"==": "!=", "!=": "==", "<=": ">", ">=": "<", "<": ">=", ">": "<="}


def literal_edits(code: str, *, fields: bool = False) -> Iterator[Edit]:
    """Numbers one larger, quoted words changed, comparisons turned round; with `fields`, awk's `$1` too."""
    yield from number_edits(code)
    if fields:
        yield from _edits_of_numbers(code, _FIELD)
    for match in _STRING.finditer(code):
        yield changed_string(code, match.start() + 1, match.end() - 1)
    yield from comparison_edits(code)


def number_edits(code: str) -> Iterator[Edit]:
    """Whole numbers (and the whole part of others) made one larger, leading zeros kept."""
    yield from _edits_of_numbers(code, _NUMBER)


def comparison_edits(code: str) -> Iterator[Edit]:
    """Each comparison turned into its opposite."""
    for match in _COMPARISON.finditer(code):
        old = match.group()
        detail = f"{old} becomes {_OPPOSITE[old]}"
        parts = (Replacement(match.start(), match.end(), _OPPOSITE[old]),)
        yield Edit(Operator.COMPARISON, line_of(code, match.start()), detail, parts)


def changed_string(code: str, start: int, end: int) -> Edit:
    """The text from `start` to `end` with its last character doubled: another word that looks like it."""
    old = code[start:end]
    new = old + old[-1:] if old else "x"
    part = Replacement(start, end, new)
    return Edit(Operator.STRING, line_of(code, start), f"{_short(old)} becomes {_short(new)}", (part,))


def larger(number: str) -> str:
    """The decimal number after this one, as wide."""
    return str(int(number) + 1).zfill(len(number))


def _edits_of_numbers(code: str, pattern: re.Pattern[str]) -> Iterator[Edit]:
    for match in pattern.finditer(code):
        old = match.group(1)
        if len(old) > 18:
            continue  # a digest or a serial number, not a quantity
        part = Replacement(match.start(1), match.end(1), larger(old))
        yield Edit(Operator.NUMBER, line_of(code, match.start()), f"{old} becomes {larger(old)}", (part,))


def _short(text: str) -> str:
    return repr(text if len(text) <= 24 else f"{text[:21]}...")
