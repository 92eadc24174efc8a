"""What a file is, by its content: enough of its beginning for an importer to know its own."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from harness.importers.container import Archive
from harness.records.archive import ArchiveError

STREAMED = frozenset(
    ("simulations", "raw_eval_results", "raw_logging_results", "samples", "results", "resourceSpans", "A_end", "steps")
)
_KEYED = frozenset(("raw_eval_results", "raw_logging_results"))  # large objects; other large fields are lists
_LOOKED_AT = 4 << 20


@dataclass(frozen=True)
class Shape:
    """`kind` is list, object, lines, text or parquet. `fields` are an object's own, as far as was looked (of lines: of
    the first one); `first` is the first element of a list, or of the first large field, which is `stopped_at`."""

    kind: str
    fields: dict[str, Any] = field(default_factory=dict)
    first: Any = None
    stopped_at: str | None = None
    problem: str = ""

    def has(self, *names: str) -> bool:
        """Whether the object, or the first element of the list, has all these fields."""
        return all(name in self.fields or name == self.stopped_at for name in names)

    def first_has(self, *names: str) -> bool:
        return isinstance(self.first, dict) and all(name in self.first for name in names)


def shape(archive: Archive, name: str) -> Shape:
    """The shape of a file of an archive; `problem` says why there is none. Never raises for content."""
    try:
        head = archive.head(name, 1 << 16)
    except ArchiveError as error:
        return Shape("text", problem=str(error))
    if head[:4] == b"PAR1":
        return Shape("parquet")
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text[:1] not in (b"[", b"{") and b"\x00" not in head[:4]:
        return Shape("text")
    line = _first_line(text)
    if line is not None:
        return Shape("lines", fields=line)
    try:
        return _looked(archive, name)
    except ArchiveError as error:
        return Shape("text", problem=str(error))


def _first_line(text: bytes) -> dict[str, Any] | None:
    """The first of several lines, each an object."""
    head, _, rest = text.partition(b"\n")
    if rest.lstrip()[:1] != b"{":
        return None
    try:
        line = json.loads(head)
    except (ValueError, RecursionError):
        return None
    return line if isinstance(line, dict) else None


def _looked(archive: Archive, name: str) -> Shape:
    fields: dict[str, Any] = {}
    with closing(archive.members(name, STREAMED)) as found:  # type: ignore[type-var]
        for member in found:
            if not member.path:
                return Shape("object", fields, problem=member.problem)
            if isinstance(member.path[0], int):
                return Shape("list", first=member.value, problem=member.problem)
            if len(member.path) > 1 and isinstance(member.path[1], str) and member.path[0] not in _KEYED:
                fields.setdefault(str(member.path[0]), {})[member.path[1]] = member.value
            elif len(member.path) > 1:
                return Shape("object", fields, _keyed(member.path, member.value), str(member.path[0]), member.problem)
            else:
                fields[str(member.path[0])] = member.value
            if member.problem or member.source.offset > _LOOKED_AT:
                return Shape("object", fields, problem=member.problem)
    return Shape("object", fields)


def _keyed(path: tuple[str | int, ...], value: Any) -> Any:
    return value if isinstance(path[1], int) else {"key": path[1], "value": value}


def only_file(archive: Archive) -> str | None:
    """The name of an archive's one file that is not a marker of some tool, or None."""
    names = [name for name in archive.names if not name.rpartition("/")[2].startswith(".")]
    return names[0] if len(names) == 1 else None


def named(names: Iterable[str], ending: str) -> list[str]:
    """The names whose last part is `ending`."""
    return [name for name in names if name.rpartition("/")[2] == ending]
