"""A database that many sessions share: read in place, copied record by record when it is changed.

A benchmark's database is megabytes, an episode changes a handful of its records. A session therefore opens in no time,
and what it changed is known by name, which makes its digest cheap (`digests.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness.records.environment import EnvironmentFault

Database = Mapping[str, Mapping[str, Any]]  # table -> key -> record; JSON values all the way down


class Overlay:
    """One session's view of a shared database, which is never written to.

    A record read here must not be changed; ask for it with :meth:`change` first. References taken before that
    call show the old record. Records are only ever added or replaced, never taken out.
    """

    def __init__(self, base: Database) -> None:
        self.base = base
        self.own: dict[str, dict[str, Any]] = {table: {} for table in base}
        self.version = 0  # grows with each change; equal versions of one overlay have equal states

    def has(self, table: str, key: Any) -> bool:
        """Whether there is such a record. Raises TypeError, as a dictionary does, for a key that cannot be one."""
        return key in self.own[table] or key in self.base[table]

    def read(self, table: str, key: Any) -> Any:
        """The record, to look at. Raises KeyError when there is none."""
        own = self.own[table]
        return own[key] if key in own else self.base[table][key]

    def change(self, table: str, key: Any) -> Any:
        """The record, to change in place: this session's own from now on. Raises KeyError when there is none."""
        own = self.own[table]
        if key not in own:
            own[key] = copy_of(self.base[table][key])
        self.version += 1
        return own[key]

    def put(self, table: str, key: str, record: Any) -> None:
        """Add or replace a record. It is kept as it is, not copied: aliases of it stay aliases."""
        self.own[table][key] = record
        self.version += 1

    def items(self, table: str) -> Iterator[tuple[str, Any]]:
        """All records in the order of the database, added ones last."""
        own, base = self.own[table], self.base[table]
        for key, record in base.items():
            yield key, own.get(key, record)
        for key, record in own.items():
            if key not in base:
                yield key, record

    def count(self, table: str) -> int:
        return len(self.base[table]) + sum(key not in self.base[table] for key in self.own[table])

    def load(self, own: Any) -> None:
        """Replace everything this session changed by `own`. Raises EnvironmentFault for what are no tables of it."""
        if not isinstance(own, dict) or not all(isinstance(records, dict) for records in own.values()):
            raise EnvironmentFault("the state is not an object of tables", remedy="restore what snapshot() returned")
        if strange := own.keys() - self.base.keys():
            raise EnvironmentFault(
                f"the state has tables that this database has not: {', '.join(sorted(strange))}",
                remedy="restore a snapshot of the same environment and data version",
            )
        self.own = {table: dict(own.get(table, {})) for table in self.base}
        self.version += 1


def copy_of(value: Any) -> Any:
    """A deep copy of a JSON value; several times as fast as the general one, which follows cycles and classes."""
    if isinstance(value, dict):
        return {key: copy_of(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [copy_of(inner) for inner in value]
    return value
