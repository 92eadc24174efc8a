"""What importers say of parts that they could not use."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from harness.importers.container import MOST_WHOLE, Archive
from harness.importers.json_stream import Member
from harness.records.archive import CUT, ArchiveError, Finding, SourceRef
from harness.records.base import sha256_of


def mapping(value: Any) -> Mapping[str, Any]:
    """The value if it is an object, else an empty one."""
    # `dict` first: asking for the abstract type costs ten times as much, and archives have millions of objects.
    return value if type(value) is dict or isinstance(value, Mapping) else {}


def listed(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def broken(error: ArchiveError) -> Finding:
    """A file that could not be read, as something that was left out."""
    return Finding(rule="archive.unreadable", place=error.place, what=error.message, remedy=error.remedy, unread=True)


def unread(member: Member, needs: str) -> Finding:
    """A member that is no record of the format, or could not be read."""
    where = ".".join(str(part) for part in member.path)
    place = f"{member.source.file}, byte {member.source.offset}" + (f" ({where})" if where else "")
    if member.problem:
        return Finding(
            rule=CUT if member.cut else "archive.unreadable",
            place=place,
            what=member.problem,
            remedy="fetch the file again, or mend it there; all else was read",
            unread=True,
        )
    return Finding(rule="archive.foreign", place=place, what="not a record of this format", remedy=needs, unread=True)


def document(archive: Archive, name: str, most: int = MOST_WHOLE) -> tuple[SourceRef, Any]:
    """A small JSON file whole, with its source. Raises ArchiveError that says where it is broken."""
    data, place = archive.read(name, most), archive.place(name)
    source = SourceRef(file=name, offset=0, length=len(data), sha256=sha256_of(data))
    try:
        return source, json.loads(data)
    except UnicodeDecodeError as error:
        raise ArchiveError(f"not UTF-8 at byte {error.start}", place=place, remedy="save it as UTF-8") from error
    except json.JSONDecodeError as error:
        raise ArchiveError(
            f"not JSON: {error.msg} at byte {error.pos}", place=place, remedy="fetch it again"
        ) from error
    except (RecursionError, ValueError) as error:
        what = "nested too deeply to read" if isinstance(error, RecursionError) else str(error)
        raise ArchiveError(what, place=place, remedy="leave it out") from error


@dataclass(frozen=True, eq=False)
class Document:
    """A small JSON file of an archive, whole: its `name` there, its `source` and its `value`."""

    name: str
    source: SourceRef
    value: Any


def documents(
    archive: Archive, names: Iterable[str], check: Callable[[Any, str], None] | None = None, most: int = MOST_WHOLE
) -> Iterator[Document | Finding]:
    """The files that can be read, and of the others what is wrong with them: one broken file costs no other.

    `check` is given a value and its place, and raises ArchiveError for what this version does not read.
    """
    for name in names:
        try:
            source, value = document(archive, name, most)
            if check is not None:
                check(value, archive.place(name))
        except ArchiveError as error:
            yield broken(error)
        else:
            yield Document(name, source, value)
