"""An edit of a text: what the operators propose, and how it is carried out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum


class Operator(StrEnum):
    """What is done to a solution."""

    DECLARED = "declared"
    DROP_COMMAND = "drop-command"
    DROP_STAGE = "drop-stage"  # a part of a pipeline
    NEGATE = "negate"
    NUMBER = "change-number"
    STRING = "change-string"
    COMPARISON = "change-comparison"
    DROP_ARGUMENT = "drop-argument"
    DROP_FLAG = "drop-flag"
    REDIRECTION = "change-redirection"
    DROP_HUNK = "drop-hunk"
    DROP_ADDED = "drop-added-line"
    KEEP_REMOVED = "keep-removed-line"


@dataclass(frozen=True, slots=True)
class Replacement:
    """`text[start:end]` becomes `new`."""

    start: int
    end: int
    new: str


@dataclass(frozen=True, slots=True)
class Edit:
    """One mutation of a text. `line` (1-based) and `detail` say what it does; replacements do not overlap."""

    operator: Operator
    line: int
    detail: str
    replacements: tuple[Replacement, ...]

    def shifted(self, offset: int, lines: int) -> Edit:
        """This edit of a part of a text that begins `offset` characters and `lines` lines into the whole."""
        moved = tuple(Replacement(part.start + offset, part.end + offset, part.new) for part in self.replacements)
        return replace(self, line=self.line + lines, replacements=moved)


def apply_edit(text: str, edit: Edit) -> str:
    """The text after the edit."""
    for part in sorted(edit.replacements, key=lambda part: part.start, reverse=True):
        text = text[: part.start] + part.new + text[part.end :]
    return text


def line_of(text: str, offset: int) -> int:
    """The 1-based line of an offset."""
    return text.count("\n", 0, offset) + 1


def distinct(edits: Iterable[Edit], text: str) -> tuple[Edit, ...]:
    """Those edits that change something, no replacement twice, in order of place."""
    kept: dict[tuple[Replacement, ...], Edit] = {}
    for edit in edits:
        if any(text[part.start : part.end] != part.new for part in edit.replacements):
            kept.setdefault(edit.replacements, edit)
    return tuple(sorted(kept.values(), key=lambda edit: (edit.replacements[0].start, edit.operator, edit.detail)))
