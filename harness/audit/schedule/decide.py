"""What is to be done about a job at a moment: a pure function from what the store knows to one step.

The caller holds the job's lock, so that an open firing has no living process. A due time is decided once: by a firing
of its own, or by a later one that stands for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from harness.audit.schedule.cron import CronLine
from harness.records.schedule import Dues, Firing, FiringState, Job, JobTimes, Missed

CLOCK_SLACK_S = 60.0  # clocks are set by less than this all the time
MOST_DEATHS = 2  # a firing under which so many processes died is not tried again
MOST_DEATHS_RESUMED = 5  # one whose run keeps what was done may be tried more often


@dataclass(frozen=True)
class Begin:
    """Times count from here: the job is new, or its line is, or the clock was set back by `back_s`."""

    back_s: float = 0.0


@dataclass(frozen=True)
class Fire:
    """Make a firing, after writing down that earlier times were skipped, if they were."""

    dues: Dues
    late: bool
    skipped: Dues | None = None


@dataclass(frozen=True)
class Skip:
    """Write down that these times were missed, and are not made up for."""

    dues: Dues


@dataclass(frozen=True)
class TakeUp:
    """Carry out what a process that is no more, or was told to stop, left of a firing. `died`: in bad order."""

    firing: Firing
    died: bool


@dataclass(frozen=True)
class GiveUp:
    """The firing's process died, and it is not tried again."""

    firing: Firing
    why: str


Step = Begin | Fire | Skip | TakeUp | GiveUp


@dataclass(frozen=True)
class Known:
    """What the store knows of a job: up to when its times are decided, its open firing, and which times have one."""

    times: JobTimes | None
    open_firing: Firing | None
    fired: Callable[[str], bool]


def next_step(job: Job, known: Known, now: datetime) -> Step | None:
    """The step that is due, or None."""
    times = known.times
    if known.open_firing is not None:
        return _about_open(known.open_firing, now)
    if times is None or times.line != job.line:
        return Begin()
    decided = moment(times.decided)
    back_s = (decided - now).total_seconds()
    if back_s > 0:
        return Begin(back_s) if back_s > CLOCK_SLACK_S else None
    passed = CronLine(job.cron, job.zone).between(decided, now)
    dues = tuple(due for due in passed if not known.fired(stamp(due)))  # some are, if the clock was set back
    return _about_dues(job, dues, now) if dues else None


def _about_open(firing: Firing, now: datetime) -> Step | None:
    if firing.state is FiringState.WAITING:
        left_s = (moment(firing.not_before) - now).total_seconds() if firing.not_before else 0.0
        # More than anybody waits: the clock was set back.
        return TakeUp(firing, died=False) if left_s <= 0 or left_s > CLOCK_SLACK_S else None
    if firing.state is FiringState.INTERRUPTED:
        return TakeUp(firing, died=False)
    deaths = firing.deaths + 1
    if firing.job.missed is Missed.SKIP:
        return GiveUp(firing, "its process died, and the job skips what is missed")
    most = MOST_DEATHS_RESUMED if firing.found.runs and not firing.job.kind.audits else MOST_DEATHS
    if deaths >= most:
        return GiveUp(firing, f"its process died {deaths} times")
    return TakeUp(firing, died=True)


def _about_dues(job: Job, dues: tuple[datetime, ...], now: datetime) -> Step:
    on_time = now - dues[-1] <= timedelta(seconds=job.grace_s)
    if job.missed is Missed.RUN:
        return Fire(_dues(dues), late=not on_time)
    if not on_time:
        return Skip(_dues(dues))
    return Fire(_dues(dues[-1:]), late=False, skipped=_dues(dues[:-1]) if dues[:-1] else None)


def _dues(times: tuple[datetime, ...]) -> Dues:
    return Dues(due=stamp(times[-1]), first_due=stamp(times[0]), missed=len(times) - 1)


def next_due(job: Job, now: datetime) -> datetime:
    """When the job is due next, in UTC."""
    return CronLine(job.cron, job.zone).next(now)[0]


def moment(text: str) -> datetime:
    """A stored time."""
    return datetime.fromisoformat(text)


def stamp(at: datetime) -> str:
    """A time as it is stored: UTC, ISO 8601 with microseconds, so that texts sort as times do."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")


Clock = Callable[[], datetime]
