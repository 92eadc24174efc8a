"""What a scheduler decides and remembers: jobs, their firings, and how each firing came out.

A *firing* is one time at which a job was due (or asked for by hand), with what became of it. A due time has at most one
firing, and a job at most one that is not over.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from harness.records.base import Record


class JobKind(StrEnum):
    """What a job does."""

    GOLD = "gold"
    TARGETED_GOLD = "targeted-gold"  # only what is not known as it is now, is red, or is stale
    NULL = "null"
    MUTANT = "mutant"
    FULL_AUDIT = "full-audit"  # gold, null and mutants as one cycle
    CALIBRATION_RUN = "calibration-run"  # a solver on the whole set
    RUN = "run"  # a saved configuration, adaptive or not

    @property
    def audits(self) -> bool:
        """Whether it measures the instrument, rather than an agent."""
        return self not in (JobKind.CALIBRATION_RUN, JobKind.RUN)


class Missed(StrEnum):
    """What happens with a firing whose time nobody was there for, or whose process died."""

    RUN = "run"  # once, however many were missed
    SKIP = "skip"


class Ruling(StrEnum):
    """Why a firing is what it is."""

    ON_TIME = "on-time"
    LATE = "late"  # missed, and run once
    SKIPPED = "skipped"  # missed, and not run
    BY_HAND = "by-hand"


class FiringState(StrEnum):
    CLAIMED = "claimed"  # written down; its process may not have started yet
    RUNNING = "running"
    WAITING = "waiting"  # for another audit of the suite
    INTERRUPTED = "interrupted"  # cut short in good order, to be taken up
    OVER = "over"


class Result(StrEnum):
    """How a firing that is over came out."""

    OK = "ok"
    ALERT = "alert"  # carried out, and something is to be looked at: exit code 3 or 4
    FAILED = "failed"
    SKIPPED = "skipped"
    LOST = "lost"  # its process died, and it is not taken up again


class Job(Record):
    """A line of the schedule. `options`: of the audit, or of the run."""

    name: str
    cron: str
    zone: str
    kind: JobKind
    suite: str  # of a run: the one its configuration names
    config: str | None = None  # of kind `run`: the file
    options: dict[str, Any] = {}
    missed: Missed = Missed.RUN
    grace_s: float = 60.0  # up to this much later a firing is on time

    @property
    def line(self) -> str:
        """What its times follow from: another line is another series of them."""
        return f"{self.cron} {self.zone}"


class Findings(Record):
    """What a firing came to, as far as it is known."""

    exit_code: int | None = None
    message: str = ""
    cycle: str | None = None
    runs: tuple[str, ...] = ()
    achievable: int | None = None
    tasks: int | None = None
    undelivered: int = 0  # sinks that were down


class Firing(Record):
    """One firing. Times are UTC, ISO 8601 with microseconds."""

    number: int
    job: Job
    due: str
    first_due: str  # the earliest of the times it stands for
    missed: int = 0  # how many earlier times it stands for
    ruling: Ruling
    state: FiringState
    claimed: str
    claimed_by: str  # process and host
    started: str | None = None
    finished: str | None = None
    lateness_s: float | None = None  # from `due` to `started`
    deaths: int = 0  # processes that died under it
    not_before: str | None = None  # of one that waits
    result: Result | None = None
    found: Findings = Findings()


class JobTimes(Record):
    """Up to when a job's times are decided, and by which line they were made."""

    job: str
    line: str
    decided: str


class Dues(Record):
    """Due times that nobody has decided: the last one, the first, and how many come before the last."""

    due: str
    first_due: str
    missed: int


class JobLine(Record):
    """A job as it is listed. `next_due`: in the job's own zone, ISO 8601 with its offset."""

    job: Job
    words: str
    next_due: str
    running: str | None  # by whom
    last: Firing | None


class Due(Record):
    """A time at which a job will be due."""

    job: str
    kind: JobKind
    due: str
    local: str
