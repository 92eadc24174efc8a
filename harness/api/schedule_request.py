"""A schedule's file: jobs with their cron lines, where alerts go, the budget, and where `serve` listens.

This loads neither the engine nor arrays: a scheduler waits for days.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import Field, ValidationError, field_validator

from harness.api.request import DEFAULT_STORE, Flag, Number, Request, Whole, known_keys, read_values, refused
from harness.api.schedule_jobs import SEE, AuditOptions, CheckedJob, JobEntry
from harness.audit.schedule.cron import zone_of
from harness.records.audit import Policy
from harness.records.base import Record
from harness.records.errors import ConfigError
from harness.records.schedule import Job

SECRET = "ASSAY_WEBHOOK_SECRET"


class AlertsEntry(Request):
    """`[alerts]`: sinks beside the log, and how often it is looked for what needs no run to be found."""

    webhook: str | None = None
    webhook_secret_env: str = SECRET
    file: str | None = None
    check_s: Number = Field(default=3600.0, ge=60)

    @field_validator("webhook")
    @classmethod
    def _whole(cls, value: str | None) -> str | None:
        if value is not None and (urlsplit(value).scheme not in ("http", "https") or not urlsplit(value).netloc):
            raise ValueError("no address of a webhook: give it whole, https://host/path")
        return value


class ConcurrencyEntry(Request):
    """`[concurrency]`. `trials`: in flight on the store, of all jobs and of runs by hand; `jobs`: at once."""

    trials: Whole | None = Field(default=None, gt=0)
    jobs: Whole = Field(default=2, gt=0)


class ServerEntry(Request):
    """`[server]`. Another host than loopback lets others read the metrics: it has to be written down."""

    host: str = "127.0.0.1"
    port: Whole = Field(default=8711, ge=0, le=65535)
    enabled: Flag = True


class ScheduleFile(Request):
    """The file as it is written."""

    time_zone: str = "UTC"
    store: str | None = Field(default=None, min_length=1)
    job: tuple[JobEntry, ...]
    alerts: AlertsEntry = AlertsEntry()
    policy: Policy = Policy()
    concurrency: ConcurrencyEntry = ConcurrencyEntry()
    server: ServerEntry = ServerEntry()

    @field_validator("job")
    @classmethod
    def _some(cls, value: tuple[JobEntry, ...]) -> tuple[JobEntry, ...]:
        if not value:
            raise ValueError("a schedule has at least one [[job]]")
        return value

    @field_validator("time_zone")
    @classmethod
    def _known(cls, value: str) -> str:
        zone_of(value)
        return value


class Schedule(Record):
    """A schedule that can be served: every job checked, every path absolute."""

    file: str
    store: str
    jobs: tuple[Job, ...]
    alerts: AlertsEntry
    policy: Policy
    concurrency: ConcurrencyEntry
    server: ServerEntry

    @property
    def audited(self) -> tuple[str, ...]:
        """Suites that are audited, each once."""
        return tuple(dict.fromkeys(job.suite for job in self.jobs if job.kind.audits))

    def job(self, name: str) -> Job:
        """The job of that name. Raises ConfigError."""
        for job in self.jobs:
            if job.name == name:
                return job
        known = ", ".join(job.name for job in self.jobs)
        raise ConfigError(f"there is no job {name!r}", place=self.file, remedy=f"there are: {known}")


def read_schedule(path: Path, store: str | None = None) -> Schedule:
    """The schedule in a file, for the store it names or another one.

    Raises ConfigError with file, line and key of what is wrong.
    """
    file = read_values(path)
    keys = sorted({*_keys(), *known_keys()})
    try:
        written = ScheduleFile.model_validate(file.values)
    except ValidationError as error:
        raise refused(error, file.origin, keys, SEE) from error
    folder = str(Path(store or written.store or DEFAULT_STORE).absolute())
    seen: dict[str, int] = {}
    jobs = []
    for number, entry in enumerate(written.job):
        if entry.name in seen:
            place = file.origin.place(("job", number, "name"))
            raise ConfigError(f"a second job {entry.name!r}", place=place, remedy="its history goes by its name")
        seen[entry.name] = number
        jobs.append(CheckedJob(file, number, entry).job(written.time_zone, folder))
    alerts = written.alerts
    if alerts.file is not None:
        alerts = alerts.model_copy(update={"file": str(Path(alerts.file).absolute())})
    return Schedule(
        file=str(path.absolute()),
        store=folder,
        jobs=tuple(jobs),
        alerts=alerts,
        policy=written.policy,
        concurrency=written.concurrency,
        server=written.server,
    )


def check_secret(schedule: Schedule) -> None:
    """Raises ConfigError when the webhook has no secret to sign with."""
    alerts = schedule.alerts
    if alerts.webhook is not None and not os.environ.get(alerts.webhook_secret_env):
        raise ConfigError(
            "a webhook needs a secret to sign with",
            place=f"${alerts.webhook_secret_env}",
            remedy=f"export {alerts.webhook_secret_env}=…",
        )


def _keys() -> Iterator[str]:
    for table in (ScheduleFile, JobEntry, AlertsEntry, ConcurrencyEntry, ServerEntry, AuditOptions, Policy):
        yield from table.model_fields
