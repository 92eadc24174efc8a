"""The schedule's tables: firings, up to when each job's times are decided, and what a scheduler left for commands.

What a step decides and writes happens in one transaction (:meth:`FiringTable.changing`), so two schedulers on one store
never make two firings of one time; the database itself refuses them, and a second open firing of a job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from harness.records.base import canonical_json
from harness.records.errors import StoreError
from harness.records.schedule import Firing, JobTimes
from harness.store.leases import Leases, describe
from harness.store.rows import parse
from harness.store.sqlite import SqliteStore

HELD = "schedule/"  # how the names of jobs' locks begin, beside those of runs


class FiringTable:
    """The firings of a store. Raises StoreError."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store

    @property
    def there(self) -> bool:
        """Whether the store has the tables: one that an earlier Assay wrote and nobody may change has none."""
        return bool(self.store.select("SELECT 1 FROM sqlite_schema WHERE name = 'firings'"))

    @contextmanager
    def changing(self) -> Iterator[Changing]:
        """One transaction, all or nothing."""
        with self.store.transaction() as connection:
            yield Changing(lambda query, values: connection.execute(query, values).fetchall())

    def looking(self) -> Changing:
        """As :meth:`changing`, to read only: what it tells may be otherwise a moment later."""
        return Changing(lambda query, values: self.store.select(query, *values))

    def firing(self, number: int) -> Firing:
        rows = self.store.select("SELECT body FROM firings WHERE number = ?", number)
        if not rows:
            raise StoreError(f"there is no firing {number}", remedy="assay schedule history lists them")
        return parse(Firing, rows[0][0])

    def history(self, job: str | None = None, limit: int = 20) -> tuple[Firing, ...]:
        """The last firings, newest first, of one job or of all."""
        query = "SELECT body FROM firings WHERE ?1 IS NULL OR job = ?1 ORDER BY number DESC LIMIT ?2"
        return tuple(parse(Firing, body) for (body,) in self.store.select(query, job, limit))

    def open_firings(self) -> tuple[Firing, ...]:
        """Those that are not over, oldest first."""
        rows = self.store.select("SELECT body FROM firings WHERE finished IS NULL ORDER BY number")
        return tuple(parse(Firing, body) for (body,) in rows)

    def last(self, job: str, result: str | None = None) -> Firing | None:
        """The newest firing of a job that is over, with this result if one is given."""
        rows = self.store.select(
            "SELECT body FROM firings WHERE job = ?1 AND finished IS NOT NULL AND (?2 IS NULL OR result = ?2)"
            " ORDER BY finished DESC, number DESC LIMIT 1",
            job,
            result,
        )
        return parse(Firing, rows[0][0]) if rows else None

    def counts(self) -> dict[tuple[str, str], int]:
        """How many firings are over, by job and result."""
        rows = self.store.select("SELECT job, result, count(*) FROM firings WHERE finished IS NOT NULL GROUP BY 1, 2")
        return {(job, result): number for job, result, number in rows}

    def setting(self, name: str) -> str | None:
        rows = self.store.select("SELECT value FROM schedule_settings WHERE name = ?", name)
        return str(rows[0][0]) if rows else None

    def set(self, name: str, value: str) -> None:
        with self.store.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO schedule_settings VALUES (?, ?)", (name, value))

    def take(self, job: str) -> int | None:
        """The lock under which a job's firing is carried out, or None while somebody has it."""
        return self.store.take(HELD + job)

    @staticmethod
    def adopt(job: str, lock: int) -> None:
        """Say that this process carries out a job whose lock another one took and gave it."""
        Leases.adopt(HELD + job, lock)

    def held(self, job: str) -> dict[str, object] | None:
        """Who carries out a firing of the job now: process and host, or None."""
        return self.store.holder(HELD + job)


class Changing:
    """What may be read and written within one transaction."""

    def __init__(self, rows: Callable[[str, Sequence[object]], list[Any]]) -> None:
        self._rows = rows

    def times(self, job: str) -> JobTimes | None:
        rows = self._rows("SELECT job, line, decided FROM schedule_jobs WHERE job = ?", (job,))
        return JobTimes(job=rows[0][0], line=rows[0][1], decided=rows[0][2]) if rows else None

    def open_firing(self, job: str) -> Firing | None:
        """The job's firing that is not over."""
        rows = self._rows("SELECT body FROM firings WHERE job = ? AND finished IS NULL", (job,))
        return parse(Firing, rows[0][0]) if rows else None

    def fired(self, job: str, due: str) -> bool:
        """Whether this time has its firing."""
        return bool(self._rows("SELECT 1 FROM firings WHERE job = ? AND due = ?", (job, due)))

    def decide(self, times: JobTimes) -> None:
        """Write down up to when the job's times are decided."""
        values = (times.job, times.line, times.decided)
        self._rows("INSERT OR REPLACE INTO schedule_jobs VALUES (?, ?, ?)", values)

    def add(self, firing: Firing) -> Firing:
        """A new firing, with the number that it gets."""
        [(number,)] = self._rows("SELECT coalesce(max(number), 0) + 1 FROM firings", ())
        made = firing.model_copy(update={"number": number})
        self._rows(
            "INSERT INTO firings (number, job, due, finished, result, body) VALUES (?, ?, ?, ?, ?, ?)",
            (made.number, made.job.name, made.due, made.finished, made.result, _body(made)),
        )
        return made

    def change(self, firing: Firing) -> None:
        """Another state of a firing that is not over. Raises StoreError when it is."""
        changed = self._rows(
            "UPDATE firings SET finished = ?, result = ?, body = ? WHERE number = ? AND finished IS NULL RETURNING 1",
            (firing.finished, firing.result, _body(firing), firing.number),
        )
        if not changed:
            raise StoreError(f"firing {firing.number} is over already", remedy="assay schedule history shows how")


def who(holder: dict[str, object] | None) -> str:
    """The process that holds a job's lock, in words."""
    return describe(holder or {})


def _body(firing: Firing) -> str:
    return canonical_json(firing.plain()).decode("ascii")
