"""Schedules as text: jobs, due times, firings."""

from __future__ import annotations

from harness.records.schedule import Due, Firing, FiringState, JobLine, Ruling
from harness.report.words import printable


def jobs_text(lines: tuple[JobLine, ...]) -> str:
    """Two lines per job."""
    return "\n".join(text for line in lines for text in _job(line))


def _job(line: JobLine) -> list[str]:
    job = line.job
    name = f"{job.name:24} {job.kind.value:15} {printable(job.suite)}"
    when = f"{'':24} {line.words}, {job.zone} ({job.cron}); next {line.next_due}"
    told = [name, when]
    if line.running is not None:
        told.append(f"{'':24} under way in {line.running}")
    if line.last is not None:
        told.append(f"{'':24} last {_came_out(line.last)}")
    return told


def upcoming_text(dues: tuple[Due, ...]) -> str:
    """A line per due time."""
    return "\n".join(f"{due.local:26} {due.kind.value:15} {due.job}" for due in dues)


def history_text(firings: tuple[Firing, ...]) -> str:
    """A line per firing, and one more where there is more to tell."""
    return "\n".join(firing_text(firing) for firing in firings) if firings else "no firing yet"


def firing_text(firing: Firing) -> str:
    """A firing: what it was, how it came out, and where to look."""
    told = f"{firing.number:5} {firing.job.name:24} due {firing.due[:19]}Z  {_came_out(firing)}"
    where = []
    if firing.found.cycle is not None:
        where.append(f"cycle {firing.found.cycle}")
    elif firing.found.runs:
        where.append(f"run {firing.found.runs[-1]}")
    if firing.found.message:
        where.append(printable(firing.found.message))
    return f"{told}\n{'':6}{'; '.join(where)}" if where else told


def _came_out(firing: Firing) -> str:
    words = [firing.result.value if firing.result is not None else firing.state.value]
    if firing.finished is not None and firing.state is FiringState.OVER:
        words.append(f"at {firing.finished[:19]}Z")
    if firing.ruling is not Ruling.ON_TIME:
        words.append(firing.ruling.value)
    if firing.missed:
        words.append(f"for {firing.missed + 1} times since {firing.first_due[:19]}Z")
    if firing.lateness_s is not None and firing.ruling is Ruling.LATE:
        words.append(f"{firing.lateness_s:.0f} s late")
    if firing.deaths:
        words.append(f"{firing.deaths} process(es) died")
    if firing.found.tasks is not None:
        words.append(f"{firing.found.achievable} of {firing.found.tasks} achievable")
    if firing.found.undelivered:
        words.append("alerts wait for a sink")
    return ", ".join(words)
