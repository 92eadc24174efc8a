"""SQLite's and the file system's errors in our words: what failed, what is safe, what to do."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.records.errors import StoreError

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


@contextmanager
def explained(place: Path) -> Iterator[None]:
    """Turn database and file errors inside the block into StoreError, with `place` in it."""
    try:
        yield
    except sqlite3.Error as error:
        raise _from_sqlite(error, place) from error
    except OSError as error:
        raise _from_system(error, place) from error


class DamagedStoreError(StoreError):
    """SQLite found the database file itself broken; `salvage.examine` counts what can still be read."""


def is_damage(error: sqlite3.Error) -> bool:
    """Whether SQLite found the file itself broken."""
    return (getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF in _DAMAGED


def disk_full(place: Path) -> StoreError:
    """The disk is full; nothing stored before is lost."""
    return StoreError(
        "the disk is full; this write was not stored, everything stored before it is intact",
        place=str(place),
        remedy="free space, then do it again (a run: assay resume)",
    )


def _from_sqlite(error: sqlite3.Error, place: Path) -> StoreError:
    code = getattr(error, "sqlite_errorcode", 0) or 0
    primary = code & 0xFF
    if primary == sqlite3.SQLITE_FULL:
        return disk_full(place)
    if is_damage(error):
        return DamagedStoreError(
            f"the database is damaged ({error})",
            place=str(place),
            remedy="keep a copy before you try to mend it; `assay verify` counts what can still be read",
        )
    if primary in _LOCKED:
        return StoreError(
            "another process has kept the store locked for too long",
            place=str(place),
            remedy="look for a stopped process that holds it, then resume",
        )
    if primary == sqlite3.SQLITE_READONLY:
        return StoreError("the store cannot be written to", place=str(place), remedy="check owner and permissions")
    if primary == sqlite3.SQLITE_CANTOPEN:
        return StoreError(
            "the database cannot be opened: its log was not read in before, and cannot be where nothing can be written",
            place=str(place),
            remedy="copy the store to where it can be written, and read the copy",
        )
    if "append-only" in str(error):
        return StoreError(str(error), place=str(place))
    return StoreError(f"the database refused: {error}", place=str(place))


def _from_system(error: OSError, place: Path) -> StoreError:
    if error.errno in _DISK_FULL:
        return disk_full(place)
    # A file inside the place says more than the place; one beside it is a temporary that the user never named.
    inside = error.filename is not None and place in Path(str(error.filename)).parents
    where = error.filename if inside else place
    return StoreError(f"{error.strerror or error}", place=str(where), remedy="check owner, permissions and disk")
