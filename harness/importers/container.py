"""Where an archive's bytes are: a file, a folder or a ZIP, gzipped or not, read in pieces and never unpacked to disk.

Names out of an archive are labels, never paths to write to; a name that would leave the archive is told and left out.
Files are hashed while they are read, so that every record can name its source without a second reading.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Container, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.importers.inflating import GZIP, Inflating
from harness.importers.json_stream import Member, Reader, lines, members
from harness.importers.zip_entries import FoundEntry, found_entries, open_entry, open_found
from harness.records.archive import CUT, ArchiveError, Finding
from harness.records.base import canonical_json

MOST_FILES = 500_000
MOST_BYTES = 64 << 30  # of one file's content
MOST_WHOLE = 64 << 20  # of a file that is read at once
FREE_BYTES = 256 << 20  # of content before its ratio to what lies on disk is looked at
MOST_RATIO = 200
_GZIP = b"\x1f\x8b"


class Archive:
    """An archive to read from. `problems` are what was left out; `digests` of every file that was read to its end."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.problems: list[Finding] = []
        self.digests: dict[str, str] = {}
        self.memo: dict[str, Any] = {}  # what an importer learnt of it in one reading and needs in the next
        self._zip: zipfile.ZipFile | None = None
        try:
            self.is_folder = self.path.is_dir()
            self.is_zip = not self.is_folder and zipfile.is_zipfile(self.path)
            if not self.is_folder:
                with self.path.open("rb") as file:
                    self.magic = file.read(4)
        except OSError as error:
            raise _unreadable(self.path, error) from error
        self._found: dict[str, FoundEntry] = {}  # of a ZIP that was cut off
        self._cut = not self.is_folder and self.magic == b"PK\x03\x04" and not self.is_zip
        self.is_zip = self.is_zip or self._cut
        self.names: tuple[str, ...] = tuple(self._list())
        self._known = frozenset(self.names)
        self._ordered = array("I", sorted(range(len(self.names)), key=self.names.__getitem__))

    # --- what there is -------------------------------------------------------------------------------

    def _list(self) -> Iterator[str]:
        if self._cut:
            yield from self._found_names()
        elif self.is_zip:
            yield from self._zip_names()
        elif self.is_folder:
            yield from self._folder_names()
        else:
            yield self.path.name

    def _found_names(self) -> Iterator[str]:
        try:
            entries, rest = found_entries(self.path)
        except OSError as error:
            raise _unreadable(self.path, error) from error
        what = "the ZIP was cut off, and the list of its entries, which stands at its end, is lost"
        self._tell(CUT, str(self.path), f"{what}: what comes after {len(entries)} of them is not read")
        if rest:
            self._tell(CUT, str(self.path), rest)
        for entry in entries[:MOST_FILES]:
            if _leaves(entry.name):
                self._leave_out("archive.path", entry.name, "its name leads out of the archive")
            elif not entry.name.endswith("/"):
                self._found[entry.name] = entry
        yield from sorted(self._found)

    def _zip_names(self) -> Iterator[str]:
        try:
            self._zip = zipfile.ZipFile(self.path)
        except (zipfile.BadZipFile, OSError, ValueError) as error:
            raise ArchiveError(f"the ZIP cannot be read: {error}", place=str(self.path)) from error
        if len(self._zip.filelist) > MOST_FILES:
            raise _too_many(self.path)
        seen: set[str] = set()
        for entry in self._zip.filelist:
            name = entry.filename
            if name.endswith("/"):
                continue
            if _leaves(name):
                self._leave_out("archive.path", name, "its name leads out of the archive")
            elif name in seen:
                self._leave_out("archive.duplicate", name, "the ZIP holds this name twice; the last one is read")
            else:
                seen.add(name)
        yield from sorted(seen)

    def _folder_names(self) -> Iterator[str]:
        count, root = 0, self.path.resolve()
        for folder, folders, files in os.walk(self.path, followlinks=False):
            folders.sort()
            for name in sorted(files):
                path = Path(folder, name)
                relative = path.relative_to(self.path).as_posix()
                count += 1
                if count > MOST_FILES:
                    raise _too_many(self.path)
                if path.is_symlink() and not path.resolve().is_relative_to(root):
                    self._leave_out("archive.path", relative, "a link that leads out of the archive")
                elif path.is_file():
                    yield relative
                else:
                    self._leave_out("archive.path", relative, "no regular file")

    def _leave_out(self, rule: str, name: str, what: str) -> None:
        self._tell(rule, f"{self.path.name}: {name!r}", f"{what}: not read")

    def _tell(self, rule: str, place: str, what: str) -> None:
        """A problem, once, however often a file is opened."""
        found = Finding(rule=rule, place=place, what=what, remedy="fetch it again" * (rule == CUT), unread=True)
        if found not in self.problems:
            self.problems.append(found)

    def __contains__(self, name: str) -> bool:
        return name in self._known

    def below(self, folder: str) -> Iterator[str]:
        """The names below a folder of the archive ("" for all)."""
        if not folder:
            return iter(self.names)
        first, last = (  # "0" follows "/"
            bisect_left(self._ordered, f"{folder}{end}", key=self.names.__getitem__) for end in ("/", "0")
        )
        return iter([self.names[place] for place in sorted(self._ordered[first:last])])

    @property
    def identity(self) -> str:
        """The digest of everything that was read to its end: equal archives have equal ones, wherever they lie."""
        hashed = hashlib.sha256()  # of the canonical JSON of the sorted pairs, which may be half a million
        for number, pair in enumerate(sorted(self.digests.items())):
            hashed.update((b"," if number else b"[") + canonical_json(pair))
        hashed.update(b"]" if self.digests else b"[]")
        return "sha256:" + hashed.hexdigest()

    # --- reading -------------------------------------------------------------------------------------

    @contextmanager
    def open(self, name: str) -> Iterator[Hashing]:
        """The content of a file, decompressed and hashed as it is read. Raises ArchiveError, also while reading."""
        place = self.place(name)
        try:
            with self._raw(name) as (raw, packed_bytes):
                reader = Hashing(raw, place, packed_bytes)
                yield reader
                if reader.finished:
                    self.digests[name] = reader.digest
                    if reader.fault:
                        self._tell(CUT, place, f"{reader.fault}; what stands before was read")
        except (OSError, EOFError, zlib.error, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
            raise ArchiveError(
                f"cannot be read: {error}", place=place, remedy="fetch it again, or leave it out"
            ) from error

    @contextmanager
    def _raw(self, name: str) -> Iterator[tuple[Reader, int]]:
        if self._cut:
            found = self._found[name]
            with open_found(self.path, found) as stream:
                yield stream, found.size
            return
        if self._zip is not None:
            entry = self._zip.getinfo(name)
            if entry.file_size > FREE_BYTES and entry.file_size > MOST_RATIO * entry.compress_size:
                raise _bomb(self.place(name))
            with open_entry(self._zip, entry) as stream:
                yield stream, entry.compress_size
            return
        path = self.path / name if self.is_folder else self.path
        with path.open("rb") as file:
            packed = file.peek(2)[:2] == _GZIP
            if packed:
                yield Inflating(file, GZIP), path.stat().st_size
            else:
                yield file, MOST_BYTES

    def place(self, name: str) -> str:
        return (
            str(self.path / name)
            if self.is_folder
            else f"{self.path}: {name}"
            if self.is_zip or self._cut
            else str(self.path)
        )

    def read(self, name: str, most: int = MOST_WHOLE) -> bytes:
        """A small file whole. Raises ArchiveError, also when it is larger than `most`."""
        with self.open(name) as reader:
            data = reader.read(most + 1)
            if len(data) > most:
                raise ArchiveError(f"larger than {most >> 20} MiB", place=self.place(name))
            reader.read(1)
        return data

    def digest(self, name: str) -> str:
        """The digest of a file's content, read for that alone."""
        with self.open(name) as reader:
            while reader.read(1 << 20):
                pass
        return self.digests[name]

    def head(self, name: str, size: int = 1 << 20) -> bytes:
        """The beginning of a file."""
        with self.open(name) as reader:
            return reader.read(size)

    def members(self, name: str, streamed: Container[str] = frozenset()) -> Iterator[Member]:
        """:func:`harness.importers.json_stream.members` of a file."""
        with self.open(name) as reader:
            yield from members(reader, name, streamed)

    def lines(self, name: str) -> Iterator[Member]:
        """:func:`harness.importers.json_stream.lines` of a file."""
        with self.open(name) as reader:
            yield from lines(reader, name)
            while reader.read(1 << 20):
                pass


class Hashing:
    """Reads through, counting and hashing; refuses content out of all proportion to what it was packed in."""

    def __init__(self, raw: Reader, place: str, packed_bytes: int) -> None:
        self._raw, self._place, self._packed_bytes = raw, place, max(1, packed_bytes)
        self._hash = hashlib.sha256()
        self.seen_bytes, self.finished = 0, False

    def read(self, size: int, /) -> bytes:
        data = self._raw.read(size)
        self._hash.update(data)
        self.seen_bytes += len(data)
        self.finished = self.finished or not data
        if self.seen_bytes > FREE_BYTES and self.seen_bytes > MOST_RATIO * self._packed_bytes:
            raise _bomb(self._place)
        if self.seen_bytes > MOST_BYTES:
            raise ArchiveError(f"larger than {MOST_BYTES >> 30} GiB", place=self._place, remedy="split it")
        return data

    @property
    def fault(self) -> str:
        """Why the content ended too early; "" when it did not."""
        return str(getattr(self._raw, "fault", ""))

    @property
    def digest(self) -> str:
        return "sha256:" + self._hash.hexdigest()


def _leaves(name: str) -> bool:
    """Whether a name is absolute, climbs, or means another place on some system."""
    return name.startswith(("/", "\\")) or "\\" in name or "\0" in name or ".." in name.split("/") or name[1:2] == ":"


def _bomb(place: str) -> ArchiveError:
    return ArchiveError(
        f"unpacks to more than {MOST_RATIO} times its size: a compression bomb",
        place=place,
        remedy="unpack it yourself if you trust it, and import the folder",
    )


def _too_many(path: Path) -> ArchiveError:
    return ArchiveError(
        f"more than {MOST_FILES:,} files", place=str(path), remedy="import its parts, a folder at a time"
    )


def _unreadable(path: Path, error: OSError) -> ArchiveError:
    return ArchiveError(f"cannot be read: {error.strerror}", place=str(path), remedy="check the path")
