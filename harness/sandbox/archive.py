"""Tars for the archive API: packed to write into a container, and read back from what an agent may have left there.

Names are bytes to the engine and text here, by surrogateescape, so that a name that is not UTF-8 survives.
"""

from __future__ import annotations

import io
import posixpath
import tarfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

from harness.protocols import SandboxFileError
from harness.records.task import FileTree

Kind = Literal["file", "folder", "link", "other"]

_GO_FOLDER, _GO_LINK, _GO_ODD = 1 << 31, 1 << 27, 1 << 26 | 1 << 25 | 1 << 24 | 1 << 21 | 1 << 19  # Go, io/fs.FileMode
_FOLDER_MODE = 0o755
_TRAILER = bytes(2 * tarfile.BLOCKSIZE)


class BrokenArchive(Exception):
    """The tar ended early: what it packs changed while it was packed."""


class PathStat(NamedTuple):
    """What the engine says of a path; a link at its end is not followed."""

    kind: Kind
    size_bytes: int

    @classmethod
    def of(cls, stat: Mapping[str, Any]) -> PathStat:
        """From the header X-Docker-Container-Path-Stat."""
        mode = int(stat["mode"])
        kind: Kind = "file"
        if mode & _GO_FOLDER:
            kind = "folder"
        elif mode & _GO_LINK:
            kind = "link"
        elif mode & _GO_ODD:
            kind = "other"
        return cls(kind, int(stat["size"]))


def parents_of(path: str) -> tuple[str, ...]:
    """The folders above an absolute path, from the top, without the root.

    >>> parents_of("/logs/verifier/x")
    ('/logs', '/logs/verifier')
    """
    parts = posixpath.normpath(path).strip("/").split("/")
    return tuple("/" + "/".join(parts[: count + 1]) for count in range(len(parts) - 1))


def pack_file(path: str, content: bytes, mode: int) -> bytes:
    """A tar, to be unpacked at the root, of one file of root's."""
    return _pack([(_entry(path, mode, len(content)), content)])


def pack_folders(paths: Iterable[str]) -> bytes:
    """A tar, to be unpacked at the root, of folders; each replaces a link or file in its place."""
    return _pack([(_folder(path), b"") for path in paths])


def pack_tree(tree: FileTree, dest: str) -> bytes:
    """A tar, to be unpacked at the root, of files below `dest`. Folders that are there keep their mode and owner."""
    return _pack([*_files(tree, dest)])


def pack_replacement(tree: FileTree, dest: str, new_parents: Sequence[str]) -> bytes:
    """As `pack_tree`, but nothing else stays in `dest`.

    The engine removes a folder when a file is unpacked over it, and a file when a folder is: so `dest` comes twice.
    Of the folders above it, those in `new_parents` are made anew.
    """
    folders = {posixpath.dirname(posixpath.join(dest, file.path)) for file in tree.files}
    inside = {parent for folder in folders for parent in (*parents_of(folder), folder) if parent.startswith(dest + "/")}
    return _pack(
        [
            *((_folder(path), b"") for path in new_parents),
            (_entry(dest, 0o644, 0), b""),
            (_folder(dest), b""),
            *((_folder(path), b"") for path in sorted(inside)),
            *_files(tree, dest),
        ]
    )


def read_one_file(chunks: Iterable[bytes], path: str, max_bytes: int, name: str | None = None) -> bytes:
    """The content of the first entry of a tar, or of the one called `name`. Raises SandboxFileError, BrokenArchive."""
    with _opened(chunks) as archive:
        for member in archive:
            if name is not None and member.name != name:
                continue
            if not member.isreg():
                raise SandboxFileError(path, "not a file")
            if member.size > max_bytes:
                raise SandboxFileError(path, "too large")
            content = archive.extractfile(member)
            return _whole(content.read() if content else b"", member.size)
    raise BrokenArchive(path) if name is None else SandboxFileError(path, "missing")


def read_names(chunks: Iterable[bytes]) -> tuple[str, ...]:
    """The names below the first entry of a tar, relative to it, sorted; none if it is no folder.

    Raises BrokenArchive.
    """
    top: str | None = None
    names = []
    source = _Trailing(chunks)
    with _opened(source) as archive:
        for member in archive:
            name = member.name.strip("/")
            if top is None:
                if not member.isdir():
                    return ()
                top = name
            else:
                names.append(posixpath.relpath(name, top) if top else name)
    if not source.whole():
        raise BrokenArchive("the archive ended early")  # between two entries, where tarfile does not mind
    return tuple(sorted(names))


def read_all(chunks: Iterable[bytes], path: str, max_bytes: int) -> bytes:
    """The tar itself. Raises SandboxFileError when it is larger than allowed, BrokenArchive when it is not whole."""
    kept = bytearray()
    for chunk in chunks:
        kept += chunk
        if len(kept) > max_bytes:
            raise SandboxFileError(path, "too large")
    if not kept.endswith(_TRAILER):
        raise BrokenArchive(path)
    return bytes(kept)


@contextmanager
def _opened(chunks: Iterable[bytes]) -> Iterator[tarfile.TarFile]:
    """A tar to be read once from front to back. Raises BrokenArchive, whenever its end comes too soon."""
    source = io.BufferedReader(_ChunkReader(iter(chunks)))
    try:
        with tarfile.open(fileobj=source, mode="r|", encoding="utf-8", errors="surrogateescape") as archive:
            yield archive
    except tarfile.TarError as error:
        raise BrokenArchive(str(error)) from error


def _whole(content: bytes, size: int) -> bytes:
    if len(content) != size:
        raise BrokenArchive("the file ended early")
    return content


def _pack(entries: Iterable[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(
        fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT, encoding="utf-8", errors="surrogateescape"
    ) as archive:
        for header, content in entries:
            archive.addfile(header, io.BytesIO(content))
    return buffer.getvalue()


def _files(tree: FileTree, dest: str) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
    for file in tree.files:
        yield _entry(posixpath.join(dest, file.path), file.mode, len(file.content)), file.content


def _entry(path: str, mode: int, size: int) -> tarfile.TarInfo:
    header = tarfile.TarInfo(path.lstrip("/"))
    header.mode, header.size = mode, size
    header.mtime = int(time.time())  # 1970 would do, but for tools (zip among them) that know no year before 1980
    return header


def _folder(path: str) -> tarfile.TarInfo:
    header = _entry(path, _FOLDER_MODE, 0)
    header.type = tarfile.DIRTYPE
    return header


class _Trailing:
    """Chunks, of which the last bytes are remembered."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._last = b""

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            self._last = (self._last + chunk)[-len(_TRAILER) :]
            yield chunk

    def whole(self) -> bool:
        """Take what is left, and say whether it ended as a tar does."""
        for _ in self:
            pass
        return self._last == _TRAILER


class _ChunkReader(io.RawIOBase):
    """A stream of chunks as a file, holding one chunk at a time."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count
