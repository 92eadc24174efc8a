"""A store, a clock that is moved by hand, and processes that are none: what a scheduler sees."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from harness.audit.schedule.decide import stamp
from harness.audit.schedule.scheduler import Scheduler, over
from harness.records.schedule import Findings, Firing, FiringState, Job, JobKind, Result
from harness.store.firings import FiringTable
from harness.store.sqlite import SqliteStore


def job(name: str = "nightly", **changes: Any) -> Job:
    values: dict[str, Any] = {"cron": "0 * * * *", "zone": "UTC", "kind": JobKind.GOLD, "suite": "demo", **changes}
    return Job(name=name, **values)


@dataclass
class Clock:
    """Stands still unless it is moved."""

    now: datetime = datetime(2026, 3, 1, 6, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def go(self, **span: float) -> None:
        self.now += timedelta(**span)


@dataclass
class Processes:
    """Holds the lock of every firing that was started, as a child would, until it ends or dies."""

    most: int = 10
    begun: list[Firing] = field(default_factory=list)
    locks: dict[int, int] = field(default_factory=dict)

    @property
    def room(self) -> int:
        return self.most - len(self.locks)

    def start(self, firing: Firing, lock: int) -> None:
        self.begun.append(firing)
        self.locks[firing.number] = os.dup(lock)

    def die(self, number: int) -> None:
        """As SIGKILL does: only the lock is gone."""
        os.close(self.locks.pop(number))


@dataclass
class World:
    """One store with any number of schedulers."""

    folder: Path
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.table = FiringTable(SqliteStore(self.folder))

    def scheduler(self, *jobs: Job, most: int = 10, busy: Callable[[Job], bool] = lambda job: False) -> Scheduler:
        """A scheduler with its own connection, as another process would have."""
        return Scheduler(jobs, FiringTable(SqliteStore(self.folder)), Processes(most), self.clock, busy)

    def finish(self, scheduler: Scheduler, result: Result = Result.OK) -> None:
        """All that runs comes to its end."""
        processes = scheduler.starter
        assert isinstance(processes, Processes)
        for number in tuple(processes.locks):
            firing = self.table.firing(number)
            with self.table.changing() as changing:
                changing.change(over(firing, result, Findings(exit_code=0), self.clock()))
            processes.die(number)

    def change(self, firing: Firing, **changes: Any) -> None:
        with self.table.changing() as changing:
            changing.change(firing.model_copy(update=changes))

    def wait(self, firing: Firing, seconds: float) -> None:
        """The firing's process says that it waits for something."""
        again = stamp(self.clock() + timedelta(seconds=seconds))
        self.change(firing, state=FiringState.WAITING, not_before=again)


def begun(scheduler: Scheduler) -> list[Firing]:
    assert isinstance(scheduler.starter, Processes)
    return scheduler.starter.begun


def kill(scheduler: Scheduler) -> None:
    """All its processes die."""
    assert isinstance(scheduler.starter, Processes)
    for number in tuple(scheduler.starter.locks):
        scheduler.starter.die(number)
