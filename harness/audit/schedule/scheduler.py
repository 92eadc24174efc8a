"""One look at the clock at a time: what is due is claimed in the store and handed to a process.

The lock of a job is taken before its firing is written down, and goes to the process that carries it out. So a firing
that is not over while its lock is free has lost its process, whoever that was and wherever it died.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

import structlog

from harness.audit.schedule.decide import (
    CLOCK_SLACK_S,
    Begin,
    Clock,
    GiveUp,
    Known,
    Skip,
    Step,
    TakeUp,
    next_due,
    next_step,
    stamp,
)
from harness.records.schedule import (
    Dues,
    Findings,
    Firing,
    FiringState,
    Job,
    JobTimes,
    Result,
    Ruling,
)
from harness.store.firings import Changing, FiringTable

log = structlog.get_logger(__name__)


class Starter(Protocol):
    """Carries out firings in processes of their own."""

    def start(self, firing: Firing, lock: int) -> None:
        """Begin with one. The descriptor `lock` is the job's lock, of which the process keeps a copy."""

    @property
    def room(self) -> int:
        """How many more may be begun now."""


@dataclass
class Scheduler:
    """The jobs of one schedule on one store. Several may be on one store; no time is fired twice."""

    jobs: tuple[Job, ...]
    table: FiringTable
    starter: Starter
    clock: Clock
    busy: Callable[[Job], bool] = lambda job: False  # whether what a waiting firing waits for is still there
    clock_back_s: float = 0.0  # by how much the clock was last seen to go back
    _seen: datetime | None = None

    def tick(self) -> None:
        """Do what is due now. Raises StoreError."""
        now = self.clock()
        self._look_at_clock(now)
        for job in self.jobs:
            while self.starter.room > 0 and self._advance(job, now):
                pass

    def _look_at_clock(self, now: datetime) -> None:
        if self._seen is not None and (back_s := (self._seen - now).total_seconds()) > CLOCK_SLACK_S:
            self.clock_back_s = back_s
            log.warning("clock.back", seconds=round(back_s), remedy="no time that was fired is fired again")
        self._seen = now

    def _advance(self, job: Job, now: datetime) -> bool:
        """One step about a job; whether another may follow. Nothing is locked while nothing is to be done."""
        step = step_about(job, self.table.looking(), now)
        if step is None or (waits(step) and self.busy(job)):
            return False
        lock = self.table.take(job.name)
        if lock is None:
            return False  # a process is at it, of ours or of another scheduler
        try:
            with self.table.changing() as store:
                step = step_about(job, store, now)  # as it is now that nobody else can change it
                firing = self._apply(job, step, store, now) if step is not None else None
            if firing is not None:
                self.starter.start(firing, lock)
        finally:
            os.close(lock)
        return isinstance(step, GiveUp | Begin)

    def _apply(self, job: Job, step: Step, store: Changing, now: datetime) -> Firing | None:
        """Write the step down; the firing to be carried out, if there is one."""
        if isinstance(step, TakeUp):
            return taken_up(store, step, now)
        if isinstance(step, GiveUp):
            log.error("firing.lost", job=job.name, firing=step.firing.number, why=step.why)
            store.change(lost(step.firing, step.why, now))
            return None
        store.decide(JobTimes(job=job.name, line=job.line, decided=stamp(now)))
        if isinstance(step, Begin):
            if step.back_s:
                self.clock_back_s = step.back_s
                log.warning("clock.back", job=job.name, seconds=round(step.back_s))
            return None
        skipped = step.dues if isinstance(step, Skip) else step.skipped
        if skipped is not None:
            store.add(made(job, skipped, Ruling.SKIPPED, now))
            log.warning("firing.skipped", job=job.name, due=skipped.due[:19], missed=skipped.missed + 1)
        if isinstance(step, Skip):
            return None
        return store.add(made(job, step.dues, Ruling.LATE if step.late else Ruling.ON_TIME, now))

    def next_wake(self, now: datetime, longest_s: float) -> datetime:
        """When to look again: at the next due time, and after `longest_s` at the latest."""
        return min([now + timedelta(seconds=longest_s), *(next_due(job, now) for job in self.jobs)])


def waits(step: Step) -> bool:
    """Whether the step is about a firing that waits for something."""
    return isinstance(step, TakeUp) and step.firing.state is FiringState.WAITING


def step_about(job: Job, store: Changing, now: datetime) -> Step | None:
    """The step that is due about a job, from what the store knows."""
    known = Known(store.times(job.name), store.open_firing(job.name), lambda due: store.fired(job.name, due))
    return next_step(job, known, now)


def made(job: Job, dues: Dues, ruling: Ruling, now: datetime) -> Firing:
    """A new firing: claimed by this process, or over at once if it is skipped."""
    skipped = ruling is Ruling.SKIPPED
    return Firing(
        number=0,
        job=job,
        due=dues.due,
        first_due=dues.first_due,
        missed=dues.missed,
        ruling=ruling,
        state=FiringState.OVER if skipped else FiringState.CLAIMED,
        claimed=stamp(now),
        claimed_by=me(),
        finished=stamp(now) if skipped else None,
        result=Result.SKIPPED if skipped else None,
    )


def taken_up(store: Changing, step: TakeUp, now: datetime) -> Firing:
    """The firing, claimed by this process."""
    firing = step.firing.model_copy(
        update={
            "state": FiringState.CLAIMED,
            "claimed": stamp(now),
            "claimed_by": me(),
            "deaths": step.firing.deaths + step.died,
            "not_before": None,
        }
    )
    store.change(firing)
    if step.died:
        log.warning("firing.taken_up", job=firing.job.name, firing=firing.number, deaths=firing.deaths)
    return firing


def lost(firing: Firing, why: str, now: datetime) -> Firing:
    """The firing, over without an end."""
    found = firing.found.model_copy(update={"message": why})
    return over(firing.model_copy(update={"deaths": firing.deaths + 1}), Result.LOST, found, now)


def over(firing: Firing, result: Result, found: Findings, now: datetime) -> Firing:
    """The firing, ended."""
    ended = {"state": FiringState.OVER, "finished": stamp(now), "result": result, "found": found}
    return firing.model_copy(update=ended)


def me() -> str:
    """This process, for people."""
    return f"process {os.getpid()} on {socket.gethostname()}"
