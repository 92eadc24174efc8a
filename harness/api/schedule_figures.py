"""Reads from the store what a schedule's commands and its metrics tell."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from harness.api.request import DEFAULT_STORE
from harness.api.schedule_request import Schedule, read_schedule
from harness.audit.history import stream_of
from harness.audit.schedule.cron import CronLine, zone_of
from harness.audit.schedule.decide import moment, next_due, stamp
from harness.audit.schedule.metrics import Figures, JobFigures, SuiteFigures
from harness.formats.suite import find_suite, name_of
from harness.records.base import canonical_json
from harness.records.errors import ConfigError
from harness.records.schedule import Due, Firing, Job, JobLine, Result
from harness.store.audit_figures import last_cycle, standing_alerts
from harness.store.firings import FiringTable, who
from harness.store.rows import parse
from harness.store.slots import Slots
from harness.store.sqlite import SqliteStore

SERVED = "served"  # the setting by which commands find the schedule
CARRIED_OUT = (Result.OK.value, Result.ALERT.value)  # to its end: an alert is what an audit is for


class Serves(Protocol):
    """What of a service is not in the store."""

    clock_back_s: float
    store_errors: int
    stops: int


def figures(schedule: Schedule, table: FiringTable, serves: Serves) -> Figures:
    """What `/metrics` shows now. Raises StoreError."""
    now, counts, slots = datetime.now(UTC), table.counts(), Slots(Path(schedule.store))
    under_way = running(table)
    jobs = tuple(
        JobFigures(
            job=job,
            running=job.name in under_way,
            last=table.last(job.name),
            last_success=_last_success(table, job.name),
            results={result: number for (name, result), number in counts.items() if name == job.name},
            next_due_s=next_due(job, now).timestamp(),
        )
        for job in schedule.jobs
    )
    return Figures(
        jobs=jobs,
        suites=tuple(_suite(table.store, suite) for suite in schedule.audited),
        slots=slots.budget(),
        slots_taken=slots.taken(),
        clock_back_s=serves.clock_back_s,
        store_errors=serves.store_errors,
        draining=bool(serves.stops),
    )


def running(table: FiringTable) -> dict[str, str]:
    """Jobs that are carried out now, and by which process. Raises StoreError."""
    held = [(firing.job.name, table.held(firing.job.name)) for firing in table.open_firings()]
    return {job: who(holder) for job, holder in held if holder is not None}


def _last_success(table: FiringTable, job: str) -> Firing | None:
    found = [firing for result in CARRIED_OUT if (firing := table.last(job, result)) is not None]
    return max(found, key=lambda firing: firing.finished or "", default=None)


def _suite(store: SqliteStore, suite: str) -> SuiteFigures:
    name = name_of(find_suite(suite))
    cycle = last_cycle(store, stream_of(name)) or {}
    finished = cycle.get("finished")
    return SuiteFigures(
        suite=name,
        tasks=cycle.get("tasks"),
        achievable=cycle.get("achievable"),
        causes=cycle.get("causes", {}),
        alerts=standing_alerts(store, stream_of(name)),
        cycle_s=moment(finished).timestamp() if finished else None,
    )


def audited_now(store: SqliteStore, job: Job) -> bool:
    """Whether somebody audits the job's suite on this store now."""
    return job.kind.audits and store.owned(stream_of(name_of(find_suite(job.suite))))


def keep_served(schedule: Schedule, table: FiringTable) -> None:
    """Keep a schedule as it is served: what it starts and asks for goes by this, whatever becomes of the file."""
    table.set(SERVED, schedule.file)
    table.set(f"{SERVED} {schedule.file}", canonical_json(schedule.plain()).decode("ascii"))


def find_schedule(config: Path | None, store: str | None, served: str | None = None) -> Schedule:
    """The schedule in a file; or the one that the store was last served with, from this file or from any.

    Raises ConfigError, StoreError.
    """
    if config is not None:
        return read_schedule(config, store)
    folder = Path(store or DEFAULT_STORE)
    kept = None
    if (folder / "evidence.db").exists():
        with SqliteStore(folder) as opened:
            table = FiringTable(opened)
            name = served or (table.setting(SERVED) if table.there else None)
            kept = table.setting(f"{SERVED} {name}") if name is not None else None
    if kept is None:
        raise ConfigError(
            "no schedule was served on this store",
            place=str(folder),
            remedy="name one: --config configs/schedule.toml",
        )
    # The folder may have been moved, or be a copy: what it was served as is no reason to write to another one.
    return parse(Schedule, kept).model_copy(update={"store": str(folder.absolute())})


def list_jobs(schedule: Schedule, now: datetime) -> tuple[JobLine, ...]:
    """Every job, in the order of the file. Raises StoreError."""
    last: dict[str, Firing] = {}
    held: dict[str, str] = {}
    if (Path(schedule.store) / "evidence.db").exists():
        with SqliteStore(schedule.store) as store:
            table = FiringTable(store)
            if table.there:
                last = {job.name: found for job in schedule.jobs if (found := table.last(job.name)) is not None}
                held = running(table)
    return tuple(
        JobLine(
            job=job,
            words=CronLine(job.cron, job.zone).words,
            next_due=_local(next_due(job, now), job.zone),
            running=held.get(job.name),
            last=last.get(job.name),
        )
        for job in schedule.jobs
    )


def upcoming(schedule: Schedule, now: datetime, count: int, jobs: Iterable[str] = ()) -> tuple[Due, ...]:
    """The next `count` due times of all jobs, or of these, in order. Raises ConfigError for a job that there is not."""
    chosen = [schedule.job(name) for name in jobs] or list(schedule.jobs)
    found = [(due, job) for job in chosen for due in CronLine(job.cron, job.zone).next(now, count)]
    found.sort(key=lambda one: one[0])
    return tuple(
        Due(job=job.name, kind=job.kind, due=stamp(due), local=_local(due, job.zone)) for due, job in found[:count]
    )


def history(store: str, job: str | None, limit: int) -> tuple[Firing, ...]:
    """The last firings of a store, newest first. Raises StoreError."""
    if not (Path(store) / "evidence.db").exists():
        raise ConfigError("there is no evidence store here", place=store, remedy="give the folder of one: --store")
    with SqliteStore(store) as opened:
        table = FiringTable(opened)
        return table.history(job, limit) if table.there else ()


def _local(at: datetime, zone: str) -> str:
    return at.astimezone(zone_of(zone)).isoformat(timespec="seconds")
