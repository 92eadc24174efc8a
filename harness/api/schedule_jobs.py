"""One job of a schedule: its keys, and whether what it names can be carried out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, field_validator

from harness.api.request import (
    ConfigFile,
    KeyPath,
    Number,
    Origin,
    Request,
    RunRequest,
    Whole,
    make_request,
    merged,
    read_request,
    read_values,
    refused,
)
from harness.audit.schedule.cron import CronLine
from harness.formats.suite import bundled_suites, find_suite
from harness.records.errors import ConfigError
from harness.records.schedule import Job, JobKind, Missed

SEE = "docs/scheduling.md"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)


class AuditOptions(Request):
    """How an audit is carried out; as the options of `assay audit`."""

    tasks: tuple[str, ...] = ()
    repeat: Whole = Field(default=1, gt=0)
    mutants: Whole = Field(default=3, ge=0)
    concurrency: Whole = Field(default=4, gt=0)
    retries: Whole = Field(default=1, ge=0)
    seed: Whole = 0


class JobEntry(Request):
    """`[[job]]`."""

    name: str
    cron: str
    kind: JobKind
    suite: str | None = None
    config: str | None = None
    missed: Missed = Missed.RUN
    grace_s: Number = Field(default=60.0, ge=0)
    options: dict[str, Any] = {}

    @field_validator("name")
    @classmethod
    def _plain(cls, value: str) -> str:
        if not _NAME.fullmatch(value):
            raise ValueError("a job's name has letters, digits, dots, dashes and underscores")
        return value

    @field_validator("cron")
    @classmethod
    def _is_due(cls, value: str) -> str:
        CronLine(value, "UTC")
        return value


@dataclass(frozen=True)
class _Inside(Origin):
    """Places of values that are checked by themselves, and stand in the table `within`."""

    within: KeyPath = ()

    def line(self, path: KeyPath) -> int | None:
        return super().line((*self.within, *path))

    def place(self, path: KeyPath) -> str:
        whole = (*self.within, *path)
        line = super().line(whole)
        return f"{self.file}{f':{line}' if line is not None else ''}: {'.'.join(map(str, whole))}"


AUDITS: dict[JobKind, tuple[str, ...]] = {
    JobKind.GOLD: ("repeat",),
    JobKind.TARGETED_GOLD: ("repeat",),
    JobKind.NULL: (),
    JobKind.MUTANT: ("mutants",),
    JobKind.FULL_AUDIT: ("repeat", "mutants"),
}
OWN = ("suite", "store")  # what a schedule says itself, once


@dataclass(frozen=True)
class CheckedJob:
    """One `[[job]]`, about to be checked beyond its keys."""

    file: ConfigFile
    number: int
    entry: JobEntry

    def job(self, zone: str, store: str) -> Job:
        entry = self.entry
        if entry.kind is JobKind.RUN:
            suite, config = self._saved_run(store)
        else:
            self._refuse("config", entry.config, "only a job of kind 'run' has one")
            suite, config = self._suite(), None
            self._options(suite, store)
        return Job(
            name=entry.name,
            cron=entry.cron,
            zone=zone,
            kind=entry.kind,
            suite=suite,
            config=config,
            options=entry.options,
            missed=entry.missed,
            grace_s=entry.grace_s,
        )

    def _place(self, *path: str) -> str:
        return self.file.origin.place(("job", self.number, *path))

    def _inside(self) -> _Inside:
        origin = self.file.origin
        return _Inside(origin.file, origin.lines, origin.options, ("job", self.number, "options"))

    def _refuse(self, key: str, value: object, why: str) -> None:
        if value is not None:
            raise ConfigError(f"{key!r} does not belong here", place=self._place(key), remedy=why)

    def _suite(self) -> str:
        if self.entry.suite is None:
            raise ConfigError(
                "no suite", place=self._place(), remedy=f"a job of kind {self.entry.kind.value!r} has one"
            )
        return self._found(self.entry.suite, self._place("suite"))

    @staticmethod
    def _found(suite: str, place: str) -> str:
        try:
            folder = find_suite(suite)
        except ConfigError as error:
            raise ConfigError(error.message, place=place, remedy=error.remedy) from error
        return suite if suite in bundled_suites() else str(folder.absolute())

    def _options(self, suite: str, store: str) -> None:
        kind, options, origin = self.entry.kind, self.entry.options, self._inside()
        if not kind.audits:
            for key in (*OWN, "tasks", "adaptive"):
                if key in options:
                    why = "say it beside `kind`" if key in OWN else "a calibration run is of the whole set"
                    raise ConfigError(f"{key!r} does not belong here", place=origin.place((key,)), remedy=why)
            make_request({**options, "suite": suite, "store": store}, origin)
            return
        allowed = {*AuditOptions.model_fields} - {"repeat", "mutants"} | {*AUDITS[kind]}
        for key in options:
            if key in AuditOptions.model_fields and key not in allowed:
                what = f"an audit of kind {kind.value!r} has no {key!r}"
                raise ConfigError(what, place=origin.place((key,)), remedy="take it out, or give another kind")
        try:
            checked = AuditOptions.model_validate(options)
        except ValidationError as error:
            raise refused(error, origin, sorted(allowed), SEE) from error
        if kind is JobKind.MUTANT and checked.mutants == 0:
            raise ConfigError("nothing is audited", place=origin.place(("mutants",)), remedy="give 1 or more")

    def _saved_run(self, store: str) -> tuple[str, str]:
        entry, origin = self.entry, self._inside()
        self._refuse("suite", entry.suite, "its configuration names it")
        if entry.config is None:
            raise ConfigError("no configuration", place=self._place(), remedy="config = 'FILE', as for `assay run`")
        path = Path(entry.config)
        request = saved_run(str(path), entry.options, store, origin)
        suite = self._found(request.suite, self._place("config"))
        return suite, str(path.absolute()) if path.exists() else str(path)


def saved_run(config: str, options: dict[str, Any], store: str, origin: Origin | None = None) -> RunRequest:
    """The request of a saved run, with a schedule's options on top. Raises ConfigError."""
    if origin is not None:  # what is wrong with the file itself is told of the file
        read_request(Path(config))
    values = merged(read_values(Path(config)).values, {**options, "store": store})
    return make_request(values, origin if origin is not None else config)
