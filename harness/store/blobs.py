"""The blob folder: bodies by content, `ab/cdef…` after their sha256. Written once, never changed.

A blob appears under its name complete or not at all: it is written and synced under a temporary name, then
renamed, then the folder is synced. A leftover temporary file after a crash is never read.
"""

from __future__ import annotations

import hashlib
import os
import re
from itertools import count
from pathlib import Path

from harness.records.base import sha256_of
from harness.records.errors import StoreError
from harness.store.faults import explained

_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")


class BlobFolder:
    """Bodies by content below one folder. Safe for threads and processes: equal content has equal names."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._counter = count()
        with explained(folder):
            folder.mkdir(parents=True, exist_ok=True)

    def path(self, digest: str) -> Path:
        """Where the body of `digest` lies or would lie. Raises StoreError for what is no digest."""
        match = _DIGEST.fullmatch(digest)
        if match is None:
            raise StoreError(f"{digest!r} is not a digest", remedy="digests are sha256: and 64 hexadecimal digits")
        return self.folder / match[1][:2] / match[1][2:]

    def put(self, data: bytes) -> str:
        """Keep `data`, durably, and return its digest. Writing the same content again costs one look."""
        digest = sha256_of(data)
        path = self.path(digest)
        with explained(path):
            if not self._holds(path, len(data)):
                self._write(path, data)
        return digest

    def get(self, digest: str) -> bytes:
        """The body of `digest`. Raises StoreError when it is missing or no longer what it was."""
        path = self.path(digest)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise StoreError(f"the blob {digest} is missing", place=str(path)) from None
        except OSError as error:
            raise StoreError(f"the blob {digest} cannot be read: {error.strerror}", place=str(path)) from error
        if sha256_of(data) != digest:
            raise StoreError(f"the blob {digest} is damaged: its content has another digest", place=str(path))
        return data

    def problem(self, digest: str) -> str | None:
        """What is wrong with a blob, or None; reads it in pieces, however large it is."""
        path = self.path(digest)
        try:
            with path.open("rb") as file:
                actual = "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError:
            return "missing"
        except OSError as error:
            return f"unreadable ({error.strerror})"
        return None if actual == digest else "damaged: its content has another digest"

    @staticmethod
    def _holds(path: Path, size: int) -> bool:
        # A file of another length was torn by something that is not us; it is written anew.
        try:
            return path.stat().st_size == size
        except FileNotFoundError:
            return False

    def _write(self, path: Path, data: bytes) -> None:
        fresh = not path.parent.exists()
        path.parent.mkdir(exist_ok=True)
        temporary = self.folder / f".tmp-{os.getpid()}-{id(self):x}-{next(self._counter)}"
        try:
            with temporary.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)
        if fresh:
            sync_folder(self.folder)


def sync_folder(folder: Path) -> None:
    """Make a rename in `folder` durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
