"""What can still be read of a damaged `evidence.db`, without writing to it."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from harness.records.errors import StoreError

_TABLES = ("runs", "tasks", "trials", "events", "results")
_MOST_MESSAGES = 20


@dataclass(frozen=True)
class Salvage:
    """Rows that can be read per table, and SQLite's own findings. `findings` empty: the file is sound."""

    path: Path
    readable: dict[str, int]
    unreadable: tuple[str, ...]  # tables whose reading stopped early; those not in `readable` have no row left
    findings: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not self.findings and not self.unreadable

    def __str__(self) -> str:
        if not any(self.readable.values()):
            return "nothing can be read of it"
        return "readable: " + ", ".join(f"{count:,} {table}" for table, count in self.readable.items())


def examine(folder: str | Path) -> Salvage:
    """Check a store's database file from end to end and count what can be read. Raises StoreError when there is none.

    Reading goes from the oldest row up, and where it breaks, from the newest down. Seconds per million events.
    """
    path = Path(folder) / "evidence.db"
    if not path.exists():
        raise StoreError("there is no evidence store here", place=str(folder))
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None)
    try:
        findings = _integrity(connection)
        readable: dict[str, int] = {}
        unreadable: list[str] = []
        for table in _TABLES:
            count, whole = _count(connection, table)
            readable[table] = count
            if not whole:
                unreadable.append(table)
        return Salvage(path, readable, tuple(unreadable), findings)
    finally:
        connection.close()


def _integrity(connection: sqlite3.Connection) -> tuple[str, ...]:
    try:
        rows = connection.execute(f"PRAGMA integrity_check({_MOST_MESSAGES})").fetchall()
    except sqlite3.DatabaseError as error:
        return (str(error),)
    return tuple(str(message) for (message,) in rows if message != "ok")


def _count(connection: sqlite3.Connection, table: str) -> tuple[int, bool]:
    """How many distinct rows can be read, and whether that is all of them."""
    found: set[int] = set()
    for order in ("ASC", "DESC"):
        try:
            # NOT INDEXED: the table itself is what counts; an index can be made again.
            for (row,) in connection.execute(
                f"SELECT rowid FROM {table} NOT INDEXED WHERE length(body) >= 0 ORDER BY rowid {order}"
            ):
                found.add(row)
            return len(found), True
        except sqlite3.DatabaseError:
            continue
    return len(found), False
