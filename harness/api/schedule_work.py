"""Carries out a firing: an audit, or a run that is begun or taken up again. This loads the engine and all the rest."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio.to_thread
import structlog

from harness.adaptive.errors import AdaptiveError
from harness.api.audit_request import EVERY, AlertRequest, AuditRequest
from harness.api.audits import audit_async, check_alerts
from harness.api.leftovers import collect_garbage
from harness.api.request import RunRequest, make_request
from harness.api.runs import Watch, execute, resume_async
from harness.api.schedule_jobs import saved_run
from harness.api.schedule_request import AlertsEntry, Schedule
from harness.api.stores import open_store
from harness.audit.history import AuditBusy
from harness.audit.schedule.decide import moment, stamp
from harness.audit.schedule.scheduler import made, over
from harness.records.audit import Policy, Sentinel
from harness.records.errors import AssayError, ConfigError
from harness.records.run import RunRow
from harness.records.schedule import Dues, Findings, Firing, FiringState, Job, JobKind, Result, Ruling
from harness.report.summary import Summary
from harness.report.text import score_line
from harness.runner.run import RunControl
from harness.store.firings import FiringTable, who

log = structlog.get_logger(__name__)

BUSY_AGAIN_S = 15.0  # another audit of the suite is under way
SENTINELS: dict[JobKind, tuple[Sentinel, ...]] = {
    JobKind.GOLD: (Sentinel.GOLD,),
    JobKind.TARGETED_GOLD: (Sentinel.GOLD,),
    JobKind.NULL: (Sentinel.NULL,),
    JobKind.MUTANT: (Sentinel.MUTANT,),
    JobKind.FULL_AUDIT: EVERY,
}
ExitCode = Callable[[Summary, bool], int]


@dataclass(frozen=True)
class Means:
    """What a firing is carried out with. `exit_code`: of an ended run, and whether it was interrupted."""

    store: str
    policy: Policy
    alerts: AlertRequest
    exit_code: ExitCode
    control: RunControl = field(default_factory=RunControl)
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)


def alert_request(alerts: AlertsEntry) -> AlertRequest:
    """A schedule's sinks, as an audit takes them."""
    return AlertRequest(webhook=alerts.webhook, webhook_secret_env=alerts.webhook_secret_env, file=alerts.file)


async def perform(number: int, means: Means, watch: Watch, lock: int | None = None) -> Firing:
    """Carry out a firing whose job's lock this process was given; how it is afterwards. Raises StoreError only."""
    with open_store(means.store) as store:
        work = _Work(FiringTable(store), number, means, replace(watch, control=means.control))
        if lock is not None:
            work.table.adopt(work.job.name, lock)
        return await work.carry_out()


async def run_now(job: Job, means: Means, watch: Watch) -> Firing:
    """A firing by hand, in this process, or the job's unfinished one. Raises ConfigError while the job is under way."""
    with ExitStack() as stack:
        store = stack.enter_context(open_store(means.store, create=True))
        table = FiringTable(store)
        lock = table.take(job.name)
        if lock is None:
            holder = who(table.held(job.name))
            raise ConfigError(f"job {job.name!r} is under way in {holder}", remedy="wait for its end: history shows it")
        stack.callback(os.close, lock)
        now = means.clock()
        with table.changing() as changing:
            firing = changing.open_firing(job.name)
            if firing is None:
                due = Dues(due=stamp(now), first_due=stamp(now), missed=0)
                firing = changing.add(made(job, due, Ruling.BY_HAND, now))
        return await _Work(table, firing.number, means, replace(watch, control=means.control)).carry_out()


class _Work:
    """One firing, being carried out. What is known of it is in the store at every moment."""

    def __init__(self, table: FiringTable, number: int, means: Means, watch: Watch) -> None:
        self.table, self.means, self.watch = table, means, watch
        self.firing = table.firing(number)

    @property
    def job(self) -> Job:
        return self.firing.job

    def _write(self, firing: Firing) -> None:
        with self.table.changing() as changing:
            changing.change(firing)
        self.firing = firing

    async def carry_out(self) -> Firing:
        started = self.means.clock()
        lateness_s = (started - moment(self.firing.due)).total_seconds()
        first = {} if self.firing.started else {"started": stamp(started), "lateness_s": max(lateness_s, 0.0)}
        self._write(self.firing.model_copy(update={"state": FiringState.RUNNING, **first}))
        log.info("firing.started", job=self.job.name, firing=self.firing.number, late_s=round(lateness_s))
        try:
            if self.firing.deaths:
                await self._sweep()
            result, found = await (self._audit() if self.job.kind.audits else self._run())
        except AuditBusy as busy:
            self._wait(busy)
            return self.firing
        except (AssayError, AdaptiveError) as error:
            code = error.exit_code if isinstance(error, AssayError) else 2
            result, found = Result.FAILED, self._failed(str(error), code)
        except Exception as error:  # noqa: BLE001  # whatever it was: the firing is over, and says why
            log.error("firing.fault", job=self.job.name, trace=traceback.format_exc()[-4000:])
            result, found = Result.FAILED, self._failed(f"{type(error).__name__}: {error}", 1)
        if self.means.control.interrupted and self.firing.ruling is Ruling.BY_HAND:
            # Who began it by hand and stopped it wants it stopped; a run can be resumed as any other.
            found = found.model_copy(update={"exit_code": 130, "message": f"interrupted: {found.message}"})
            self._write(over(self.firing, Result.FAILED, found, self.means.clock()))
        elif self.means.control.interrupted:
            self._write(self.firing.model_copy(update={"state": FiringState.INTERRUPTED, "found": found}))
        else:
            self._write(over(self.firing, result, found, self.means.clock()))
        state = self.firing.result or self.firing.state
        log.info(
            "firing.ended", job=self.job.name, firing=self.firing.number, result=state.value, message=found.message
        )
        return self.firing

    def _failed(self, message: str, code: int) -> Findings:
        """What went wrong; and if it was an audit, whoever listens hears of a cycle without an end."""
        undelivered = 0
        if self.job.kind.audits:
            try:
                undelivered = len(check_alerts(self._request()).undelivered)
            except AssayError as error:
                log.warning("alerts.not_checked", suite=self.job.suite, error=str(error))
        changes = {"message": message, "exit_code": code, "undelivered": undelivered}
        return self.firing.found.model_copy(update=changes)

    def _wait(self, busy: AuditBusy) -> None:
        again = self.means.clock() + timedelta(seconds=BUSY_AGAIN_S)
        waiting = {"state": FiringState.WAITING, "not_before": stamp(again)}
        found = self.firing.found.model_copy(update={"message": busy.message})
        self._write(self.firing.model_copy(update={**waiting, "found": found}))

    async def _sweep(self) -> None:
        """Remove the containers of the process that died before us: nothing else will."""
        try:
            await anyio.to_thread.run_sync(lambda: collect_garbage(self.means.store))
        except AssayError as error:
            log.warning("leftovers.not_swept", error=str(error), remedy="assay gc")

    def _request(self) -> AuditRequest:
        job, means = self.job, self.means
        return AuditRequest(
            suite=job.suite,
            sentinels=SENTINELS[job.kind],
            changed=job.kind is JobKind.TARGETED_GOLD,
            policy=means.policy,
            alerts=means.alerts,
            store=means.store,
            **job.options,
        )

    async def _audit(self) -> tuple[Result, Findings]:
        report = await audit_async(self._request(), self.watch)
        found = Findings(
            exit_code=3 if report.standing or not report.finished else 0,
            message=report.problem or _standing(len(report.standing)),
            cycle=report.cycle.cycle if report.cycle is not None else None,
            runs=tuple(run.run for run in report.cycle.runs) if report.cycle is not None else (),
            achievable=report.achievable,
            tasks=report.tasks,
            undelivered=len(report.undelivered),
        )
        if not report.finished:
            return Result.FAILED, found
        return Result.ALERT if report.standing else Result.OK, found

    async def _run(self) -> tuple[Result, Findings]:
        begun, means = self.firing.found.runs, self.means
        if begun:
            summary = await resume_async(begun[-1], means.store, self.watch)
        else:
            summary = await execute(self._run_request(), replace(self.watch, created=self._created))
        code = means.exit_code(summary, means.control.interrupted)
        message = summary.halted or score_line(summary)
        found = Findings(exit_code=code, message=message, runs=begun or (summary.run,))
        return {0: Result.OK, 3: Result.ALERT, 4: Result.ALERT}.get(code, Result.FAILED), found

    def _run_request(self) -> RunRequest:
        job, store = self.job, self.means.store
        if job.config is not None:
            return saved_run(job.config, job.options, store)
        return make_request({**job.options, "suite": job.suite, "store": store}, f"job {job.name}")

    def _created(self, row: RunRow) -> None:
        """From here on a process that dies leaves a run that can be taken up."""
        found = self.firing.found.model_copy(update={"runs": (row.run,)})
        self._write(self.firing.model_copy(update={"found": found}))


def _standing(alerts: int) -> str:
    return f"{alerts} alert{'s' * (alerts != 1)} standing" if alerts else ""


def check_suites(schedule: Schedule) -> tuple[str, ...]:
    """What no run is needed for: raise what is stale or absent on each audited suite, send what waits. Returns what
    sinks did not take, to be asked again. Raises AssayError, when all suites were looked at."""
    waiting: list[str] = []
    if not (Path(schedule.store) / "evidence.db").exists():
        return ()
    failed: AssayError | None = None
    for suite in schedule.audited:
        request = AuditRequest(
            suite=suite, policy=schedule.policy, alerts=alert_request(schedule.alerts), store=schedule.store
        )
        try:
            waiting += check_alerts(request).undelivered
        except AuditBusy:
            continue  # a cycle is under way, and sends what waits when it ends
        except AssayError as error:
            log.error("alerts.not_checked", suite=suite, error=str(error))
            failed = failed or error
    if failed is not None:
        raise failed
    return tuple(waiting)
