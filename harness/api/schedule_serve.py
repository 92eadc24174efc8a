"""The scheduler as a service: looks at the clock, starts a process per firing, answers over HTTP, and ends in order.

It holds no engine and no arrays: what a firing needs is loaded by its own process, and gone with it.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import structlog

from harness.api.schedule_figures import audited_now, figures, keep_served
from harness.api.schedule_http import answering
from harness.api.schedule_request import Schedule, check_secret
from harness.audit.schedule.checks import AGAIN_S, Checks
from harness.audit.schedule.metrics import metrics_text
from harness.audit.schedule.scheduler import Scheduler
from harness.records.errors import StoreError
from harness.records.schedule import Firing, FiringState
from harness.store.firings import FiringTable
from harness.store.slots import Slots
from harness.store.sqlite import SqliteStore

log = structlog.get_logger(__name__)

LONGEST_WAIT_S = 15.0  # how soon a clock that was set, or a process of a dead scheduler, is noticed
UNWELL_S = 4 * LONGEST_WAIT_S
ASSAY = (sys.executable, "-c", "from harness.cli import main; main()")
MESSAGES_WAIT = 3  # exit code of a look at alerts


@dataclass
class Processes:
    """Firings under way, each in a process of its own that holds the job's lock."""

    schedule: Schedule
    children: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)
    closed: bool = False

    @property
    def room(self) -> int:
        return 0 if self.closed else self.schedule.concurrency.jobs - len(self.children)

    def start(self, firing: Firing, lock: int) -> None:
        # In a session of its own, so that Ctrl-C at the terminal reaches us alone: we drain, it goes on.
        argv = [*ASSAY, "schedule", "work", str(firing.number), "--served", self.schedule.file]
        self.children[firing.number] = subprocess.Popen(
            [*argv, "--store", self.schedule.store, "--lock", str(lock)],
            pass_fds=(lock,),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )

    def ended(self) -> list[tuple[int, int]]:
        """Firings whose process has ended since the last look, each with the process's exit code."""
        codes = [(number, child.poll()) for number, child in self.children.items()]
        done = [(number, code) for number, code in codes if code is not None]
        for number, _ in done:
            del self.children[number]
        return done

    def interrupt(self) -> None:
        """Tell all to seal and store what is under way; the second time, to cut it short."""
        for child in self.children.values():
            child.terminate()


class Serving:
    """One `assay serve`. :meth:`stop` may be called from a signal handler."""

    def __init__(self, schedule: Schedule, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        check_secret(schedule)
        self.schedule, self.clock = schedule, clock
        self.processes = Processes(schedule)
        self.checks = Checks(clock(), schedule.alerts.check_s)
        self.stops = 0
        self.store_errors = 0
        self.clock_back_s = 0.0
        self._heeded = 0  # of the stops
        self._check: subprocess.Popen[bytes] | None = None
        self._well_s = time.monotonic()
        self._problem = ""
        self._waker, self._woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def stop(self) -> None:
        """Once: begin nothing more, and end when what is under way has ended. Again: interrupt that, as `run` does."""
        self.stops += 1
        self.wake()

    def wake(self) -> None:
        """Look again now: a child has ended."""
        with contextlib.suppress(BlockingIOError):  # it is awake enough
            os.write(self._woken, b"\0")

    def run(self, ready: Callable[[str | None], None]) -> bool:
        """Serve until :meth:`stop`. Whether a firing is left to be taken up. Raises AssayError before it
        begins; `ready` is told the address then."""
        schedule = self.schedule
        with ExitStack() as stack:
            store = stack.enter_context(SqliteStore(schedule.store))
            table = FiringTable(store)
            keep_served(schedule, table)
            Slots(Path(schedule.store)).limit(schedule.concurrency.trials)
            scheduler = Scheduler(schedule.jobs, table, self.processes, self.clock, lambda job: audited_now(store, job))
            address = None
            if schedule.server.enabled:
                host, port = schedule.server.host, schedule.server.port
                page = answering(host, port, self._health, lambda: metrics_text(figures(schedule, table, self)))
                address = stack.enter_context(page)
            ready(address)
            self._loop(scheduler, table)
            ours = {job.name for job in schedule.jobs}
            return any(one.job.name in ours and table.held(one.job.name) is None for one in table.open_firings())

    def _loop(self, scheduler: Scheduler, table: FiringTable) -> None:
        while True:
            self._heed()
            try:
                for number, code in self.processes.ended():
                    self._note_end(table, number, code)
                if self.stops and not self.processes.children:
                    return
                scheduler.tick()
                self._look_at_alerts()
                self._well_s, self._problem = time.monotonic(), ""
            except (StoreError, OSError) as error:  # locked, full, no process: it may pass; nothing is forgotten
                self.store_errors += 1
                self._problem = str(error)
                log.error("schedule.store", error=str(error))
            self.clock_back_s = scheduler.clock_back_s
            self._wait(scheduler)

    def _heed(self) -> None:
        """Act on signals that came since the last look."""
        while self._heeded < self.stops:
            self._heeded += 1
            if self._heeded == 1:
                self.processes.closed = True
                log.info("schedule.draining", running=len(self.processes.children))
            else:
                log.warning("schedule.interrupting", running=len(self.processes.children))
                self.processes.interrupt()

    def _note_end(self, table: FiringTable, number: int, code: int) -> None:
        firing = table.firing(number)
        if firing.state in (FiringState.CLAIMED, FiringState.RUNNING):
            log.error("firing.died", job=firing.job.name, firing=number, exit_code=code)
        if firing.found.undelivered:
            self.checks = self.checks.by(self.clock() + timedelta(seconds=AGAIN_S))

    def _look_at_alerts(self) -> None:
        """In a process of its own, one at a time."""
        now = self.clock()
        if self._check is not None:
            code = self._check.poll()
            if code is None:
                return
            self._check = None
            if code not in (0, MESSAGES_WAIT):
                log.error("alerts.not_checked", exit_code=code)
            self.checks = self.checks.after(now, waiting=code != 0)
        elif self.schedule.audited and not self.stops and self.checks.is_due(now):
            argv = [*ASSAY, "schedule", "check", "--served", self.schedule.file, "--store", self.schedule.store]
            self._check = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True
            )

    def _wait(self, scheduler: Scheduler) -> None:
        """Until the next due time, a signal or a child's end. Short, because the wall clock may be set meanwhile."""
        now = self.clock()
        wake_s = (scheduler.next_wake(now, LONGEST_WAIT_S) - now).total_seconds()
        ready, _, _ = select.select([self._waker], [], [], min(max(wake_s, 0.0), LONGEST_WAIT_S))
        if ready:
            os.read(self._waker, 4096)

    def _health(self) -> tuple[bool, dict[str, Any]]:
        silent_s = time.monotonic() - self._well_s
        well = silent_s < UNWELL_S and not self._problem
        body: dict[str, Any] = {
            "status": ("draining" if self.stops else "ok") if well else "unwell",
            "jobs": len(self.schedule.jobs),
            "running": len(self.processes.children),
        }
        return well, body | ({"problem": self._problem or f"silent for {silent_s:.0f} s"} if not well else {})
