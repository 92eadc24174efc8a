"""Entries of a ZIP as streams, those with Zstandard compression (method 93) included.

Python's zipfile lists such entries but cannot read them before 3.14; the `zstandard` package can. It is an extra
(`archives`): only Inspect's logs need it.
"""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from harness.importers.json_stream import Reader
from harness.records.archive import ArchiveError

ZSTANDARD = 93
_LOCAL_HEADER = struct.Struct("<4s5H3I2H")
_ENCRYPTED = 0x1


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
    try:
        import zstandard
    except ImportError as error:
        raise ArchiveError(
            "compressed with Zstandard", place=place, remedy="install it: pip install 'assay[archives]'"
        ) from error
    with open(str(archive.filename), "rb") as file:
        packed: Any = _Part(file, _data_offset(file, entry, place), entry.compress_size)
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

    def read(self, size: int = -1, /) -> bytes:
        data = self._file.read(self._left if size < 0 else min(size, self._left))
        self._left -= len(data)
        return data
