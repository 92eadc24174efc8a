"""Entries of a ZIP as streams, those with Zstandard compression (method 93) and those of a cut ZIP included.

Python's zipfile lists entries of method 93 but cannot read them before 3.14; the `zstandard` package can. It is an
extra (`archives`): only Inspect's logs need it. A ZIP that was cut off has lost the list of its entries, which stands
at its end; every entry still begins with a header of its own.
"""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from harness.importers.inflating import RAW, Inflating
from harness.importers.json_stream import Reader
from harness.records.archive import ArchiveError

ZSTANDARD = 93
_LOCAL_HEADER = struct.Struct("<4s5H3I2H")
_ENCRYPTED, _SIZES_FOLLOW = 0x1, 0x8
_ZIP64 = 0xFFFFFFFF
_SIZES = struct.Struct("<QQ")


@dataclass(frozen=True)
class FoundEntry:
    """An entry of a ZIP without its list, from the header before its content."""

    name: str
    method: int
    encrypted: bool
    offset: int  # of its content in the file
    size: int  # packed
    crc: int


def found_entries(path: Path) -> tuple[list[FoundEntry], str]:
    """The entries of a ZIP that was cut off, in order, and what comes after them that cannot be told apart ("" where
    nothing does). The last one may be cut itself."""
    entries: list[FoundEntry] = []
    with path.open("rb") as file:
        end, at = path.stat().st_size, 0
        while at < end:
            file.seek(at)
            header = file.read(_LOCAL_HEADER.size)
            if header[:4] != b"PK\x03\x04" or len(header) < _LOCAL_HEADER.size:
                return entries, "" if header[:4] == b"PK\x01\x02" else f"no entry begins at byte {at}"
            _, _, flags, method, _, _, crc, size, _, name_bytes, extra_bytes = _LOCAL_HEADER.unpack(header)
            name, extra = file.read(name_bytes), file.read(extra_bytes)
            if flags & _SIZES_FOLLOW:
                return entries, f"the entry at byte {at} does not say how long it is"
            size = _long_size(extra) if size == _ZIP64 else size
            text = name.decode("utf-8" if flags & 0x800 else "cp437", "replace")
            at += _LOCAL_HEADER.size + name_bytes + extra_bytes
            entries.append(FoundEntry(text, method, bool(flags & _ENCRYPTED), at, size, crc))
            at += size
    return entries, ""


def _long_size(extra: bytes) -> int:
    while len(extra) >= 4:
        kind, length = struct.unpack_from("<HH", extra)
        if kind == 1 and length >= _SIZES.size and len(extra) >= 4 + _SIZES.size:
            return int(_SIZES.unpack_from(extra, 4)[1])
        extra = extra[4 + length :]
    return 0


@contextmanager
def open_found(path: Path, entry: FoundEntry) -> Iterator[Reader]:
    """The content of an entry as far as it goes. Raises ArchiveError for what is encrypted or packed in another way."""
    place = f"{path}: {entry.name}"
    if entry.encrypted:
        raise ArchiveError("the entry is encrypted", place=place, remedy="decrypt the archive first")
    with path.open("rb") as file:
        part = _Part(file, entry.offset, entry.size)
        if entry.method == zipfile.ZIP_DEFLATED:
            yield Inflating(part, RAW, entry.crc)
        elif entry.method == zipfile.ZIP_STORED:
            yield part
        elif entry.method == ZSTANDARD:
            with _zstandard(part, place) as stream:
                yield stream
        else:
            raise ArchiveError(f"compressed in a way ({entry.method}) that is not known", place=place)


@contextmanager
def open_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Iterator[Reader]:
    """The content of an entry. Raises ArchiveError for what is encrypted or needs a package that is not there."""
    place = f"{archive.filename}: {entry.filename}"
    if entry.flag_bits & _ENCRYPTED:
        raise ArchiveError("the entry is encrypted", place=place, remedy="decrypt the archive first")
    if entry.compress_type != ZSTANDARD:
        with archive.open(entry) as stream:
            yield stream
        return
    with open(str(archive.filename), "rb") as file:
        part = _Part(file, _data_offset(file, entry, place), entry.compress_size)
        with _zstandard(part, place) as stream:
            yield stream


@contextmanager
def _zstandard(packed: Any, place: str) -> Iterator[Reader]:
    try:
        import zstandard
    except ImportError as error:
        raise ArchiveError(
            "compressed with Zstandard", place=place, remedy="install it: pip install 'assay[archives]'"
        ) from error
    try:
        with zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True) as stream:
            yield stream
    except zstandard.ZstdError as error:
        raise ArchiveError(f"damaged: {error}", place=place) from error


def _data_offset(file: BinaryIO, entry: zipfile.ZipInfo, place: str) -> int:
    file.seek(entry.header_offset)
    header = file.read(_LOCAL_HEADER.size)
    if len(header) < _LOCAL_HEADER.size or header[:4] != b"PK\x03\x04":
        raise ArchiveError("damaged: the entry does not begin where the ZIP's directory says", place=place)
    fields = _LOCAL_HEADER.unpack(header)
    return entry.header_offset + _LOCAL_HEADER.size + int(fields[9]) + int(fields[10])


class _Part:
    """A part of a file as a stream."""

    def __init__(self, file: BinaryIO, start: int, length: int) -> None:
        file.seek(start)
        self._file, self._left = file, length
        self.fault = ""

    def read(self, size: int = -1, /) -> bytes:
        data = self._file.read(self._left if size < 0 else min(size, self._left))
        self._left -= len(data)
        if not data and self._left and size:
            self.fault = "it ends before its end"
        return data
