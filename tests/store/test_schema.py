"""What a database is told to be, also while another process is making it."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from harness.records.errors import StoreError
from harness.store.schema import SCHEMA_VERSION, migrate, version_of


class Overtaken(sqlite3.Connection):
    """A connection whose database is made by another one just before its statement number `at`."""

    at = -1
    path: Path

    def execute(self, *arguments: Any, **named: Any) -> sqlite3.Cursor:
        if self.at == 0:
            other = sqlite3.connect(self.path, isolation_level=None)
            migrate(other)
            other.close()
        self.at -= 1
        return super().execute(*arguments, **named)


@pytest.mark.parametrize("statement", range(4))
def test_a_store_that_is_made_while_it_is_looked_at_is_ours(tmp_path: Path, statement: int) -> None:
    connection = sqlite3.connect(tmp_path / "evidence.db", factory=Overtaken)
    connection.at, connection.path = statement, tmp_path / "evidence.db"
    # Before, or after: what opens it next takes the lock of creators and looks again.
    assert version_of(connection) in (0, SCHEMA_VERSION)
    assert version_of(connection) == SCHEMA_VERSION
    connection.close()


def test_a_database_of_something_else_is_not(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "other.db")
    connection.execute("CREATE TABLE mine (x)")
    with pytest.raises(StoreError, match="not an Assay evidence store"):
        version_of(connection)
    connection.close()
