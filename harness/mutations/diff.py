"""Mutation operators on unified diffs. The result still applies: counts and places in hunk headers are kept right."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.mutations.edits import Edit, Operator, Replacement, distinct
from harness.mutations.literals import literal_edits

_HEADER = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


@dataclass(frozen=True, slots=True)
class Line:
    start: int
    text: str  # with its line end
    number: int  # 1-based

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Hunk:
    """A hunk of a diff: its header and its lines. Counts are in lines of the old and the new file."""

    header: Line
    old_start: int
    old_count: int
    new_start: int
    new_count: int
    body: tuple[Line, ...]

    @property
    def end(self) -> int:
        return self.body[-1].end if self.body else self.header.end

    @property
    def changes(self) -> int:
        return sum(line.text[:1] in "+-" for line in self.body)

    def renumbered(self, *, moved: int = 0, grown: int = 0) -> Replacement:
        """Its header's ranges with the new side moved and grown by lines."""
        match = _HEADER.match(self.header.text)
        assert match is not None  # it was parsed from that text
        new_count = self.new_count + grown
        # An empty range stands at the line before it, any other at its first line.
        before = self.new_start - (self.new_count > 0)
        new_start = before + moved + (new_count > 0)
        ranges = f"@@ -{_range(self.old_start, self.old_count)} +{_range(new_start, new_count)} @@"
        return Replacement(self.header.start, self.header.start + match.end(), ranges)


@dataclass(frozen=True, slots=True)
class FileDiff:
    """The part of a diff about one file, from its first header line."""

    start: int
    end: int
    hunks: tuple[Hunk, ...]


def looks_like_diff(text: str) -> bool:
    """Whether a text is a unified diff that can be edited."""
    return bool(parse_diff(text))


def diff_edits(text: str) -> tuple[Edit, ...]:
    """All single mutations of a diff, in order of place; empty when it is none, or is malformed."""
    edits: list[Edit] = []
    for file in parse_diff(text):
        for place in range(len(file.hunks)):
            edits += _of_hunk(file, place)
    return distinct(edits, text)


def parse_diff(text: str) -> tuple[FileDiff, ...]:
    """The files and hunks of a unified diff; empty when a hunk's lines do not add up to its header."""
    lines = _lines(text)
    files: list[FileDiff] = []
    hunks: list[Hunk] = []
    start: int | None = None
    place = 0

    def close(end: int) -> None:
        if hunks and start is not None:
            files.append(FileDiff(start, end, tuple(hunks)))
        hunks.clear()

    while place < len(lines):
        line = lines[place]
        if line.text.startswith("@@ "):
            hunk = _read_hunk(lines, place)
            if hunk is None or start is None:
                return ()
            hunks.append(hunk)
            place += 1 + len(hunk.body)
            continue
        begins = line.text.startswith("diff ") or (line.text.startswith("--- ") and (hunks or start is None))
        if begins:
            close(line.start)
            start = line.start
        place += 1
    close(len(text))
    return tuple(files)


def _lines(text: str) -> list[Line]:
    lines: list[Line] = []
    at = 0
    for number, part in enumerate(text.split("\n"), 1):
        whole = part + "\n" if at + len(part) < len(text) else part
        if whole:
            lines.append(Line(at, whole, number))
        at += len(whole)
    return lines


def _read_hunk(lines: Sequence[Line], place: int) -> Hunk | None:
    match = _HEADER.match(lines[place].text)
    if match is None:
        return None
    old_start, new_start = int(match.group(1)), int(match.group(3))
    old_count, new_count = (int(match.group(group) or 1) if match.group(group) != "0" else 0 for group in (2, 4))
    body: list[Line] = []
    old, new = old_count, new_count
    for line in lines[place + 1 :]:
        sign = line.text[:1]
        if sign != "\\" and old <= 0 and new <= 0:
            break
        if sign not in " +-\\\n\r":
            return None
        old -= sign in " -\n\r"
        new -= sign in " +\n\r"
        body.append(line)
    if old or new:
        return None
    return Hunk(lines[place], old_start, old_count, new_start, new_count, tuple(body))


def _range(start: int, count: int) -> str:
    return str(start) if count == 1 else f"{start},{count}"


def _of_hunk(file: FileDiff, place: int) -> Iterator[Edit]:
    hunk = file.hunks[place]
    yield _dropped_hunk(file, place)
    for index, line in enumerate(hunk.body):
        marked = index + 1 < len(hunk.body) and hunk.body[index + 1].text.startswith("\\")
        if line.text.startswith("+"):
            for edit in literal_edits(line.text[1:].rstrip("\r\n")):
                yield edit.shifted(line.start + 1, line.number - 1)
        # A line that ends the file without a newline cannot go alone, nor can a hunk's only change.
        if marked or hunk.changes == 1:
            continue
        if line.text.startswith("+"):
            yield _with_line(file, place, line, Replacement(line.start, line.end, ""), Operator.DROP_ADDED, -1)
        elif line.text.startswith("-") and not _pairs(hunk, index):
            new = Replacement(line.start, line.start + 1, " ")
            yield _with_line(file, place, line, new, Operator.KEEP_REMOVED, 1)


def _pairs(hunk: Hunk, index: int) -> bool:
    """Whether a removed line is replaced by an added one: keeping both is rarely a likely mistake."""
    rest = [line.text[:1] for line in hunk.body[index:]]
    while rest and rest[0] == "-":
        rest.pop(0)
    return bool(rest) and rest[0] == "+"


def _dropped_hunk(file: FileDiff, place: int) -> Edit:
    hunk = file.hunks[place]
    detail = f"hunk {place + 1} of {len(file.hunks)}"
    if len(file.hunks) == 1:
        parts: tuple[Replacement, ...] = (Replacement(file.start, file.end, ""),)
    else:
        moved = hunk.old_count - hunk.new_count
        later = tuple(after.renumbered(moved=moved) for after in file.hunks[place + 1 :] if moved)
        parts = (Replacement(hunk.header.start, hunk.end, ""), *later)
    return Edit(Operator.DROP_HUNK, hunk.header.number, detail, parts)


def _with_line(file: FileDiff, place: int, line: Line, part: Replacement, operator: Operator, grown: int) -> Edit:
    later = tuple(after.renumbered(moved=grown) for after in file.hunks[place + 1 :])
    detail = line.text.strip()[:40]
    return Edit(operator, line.number, detail, (file.hunks[place].renumbered(grown=grown), part, *later))
