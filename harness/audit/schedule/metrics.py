"""What a schedule and its suites look like now, as Prometheus reads it (text format 0.0.4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from harness.audit.schedule.decide import moment
from harness.records.schedule import Firing, Job

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Labels = Mapping[str, str]
Sample = tuple[Labels, float | int | None]


@dataclass(frozen=True)
class JobFigures:
    """One job: whether it runs, its last firing, its last one that was carried out, and firings by result."""

    job: Job
    running: bool
    last: Firing | None
    last_success: Firing | None
    results: Mapping[str, int]
    next_due_s: float  # Unix time


@dataclass(frozen=True)
class SuiteFigures:
    """One suite: its last cycle (tasks None: never audited) and alerts by kind."""

    suite: str
    tasks: int | None
    achievable: int | None
    causes: Mapping[str, int]
    alerts: Mapping[str, int]
    cycle_s: float | None  # Unix time of its end


@dataclass(frozen=True)
class Figures:
    jobs: tuple[JobFigures, ...]
    suites: tuple[SuiteFigures, ...]
    slots: int | None
    slots_taken: int
    clock_back_s: float
    store_errors: int
    draining: bool


@dataclass
class _Page:
    lines: list[str] = field(default_factory=list)

    def add(self, name: str, kind: str, text: str, samples: Iterable[Sample]) -> None:
        """A metric with its samples; those without a value are left out, never 0."""
        known = [(labels, value) for labels, value in samples if value is not None]
        if not known:
            return
        self.lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
        self.lines += [f"{name}{_braced(labels)} {value!r}" for labels, value in known]


def metrics_text(figures: Figures) -> str:
    """The page. What is not known has no sample."""
    page = _Page()
    _schedule(page, figures)
    _jobs(page, figures.jobs)
    _suites(page, figures.suites)
    return "\n".join(page.lines) + "\n"


def _schedule(page: _Page, figures: Figures) -> None:
    prefix = "assay_schedule"
    page.add(f"{prefix}_draining", "gauge", "1 while no firing is begun any more", [({}, int(figures.draining))])
    errors: list[Sample] = [({}, figures.store_errors)]
    page.add(f"{prefix}_store_errors_total", "counter", "Looks that the store refused", errors)
    back: list[Sample] = [({}, figures.clock_back_s)]
    page.add(f"{prefix}_clock_back_seconds", "gauge", "By how much the clock was last seen to go back", back)
    page.add("assay_trial_slots", "gauge", "Trials that may be in flight on the store", [({}, figures.slots)])
    taken = figures.slots_taken if figures.slots is not None else None
    page.add("assay_trial_slots_taken", "gauge", "Trials in flight that hold a slot", [({}, taken)])


def _jobs(page: _Page, jobs: tuple[JobFigures, ...]) -> None:
    prefix = "assay_job"
    named = [({"job": one.job.name, "kind": one.job.kind.value}, one) for one in jobs]
    page.add(f"{prefix}_running", "gauge", "1 while a firing is under way", [(on, int(o.running)) for on, o in named])
    due = [(on, one.next_due_s) for on, one in named]
    page.add(f"{prefix}_next_due_timestamp_seconds", "gauge", "When the job is due next", due)
    success = [(on, _ended_s(one.last_success)) for on, one in named]
    help_ = "When it was last carried out to its end, with alerts or without"
    page.add(f"{prefix}_last_success_timestamp_seconds", "gauge", help_, success)
    durations = [(on, _duration_s(one.last_success)) for on, one in named]
    page.add(f"{prefix}_last_success_duration_seconds", "gauge", "How long that took", durations)
    late = [(on, one.last.lateness_s if one.last is not None else None) for on, one in named]
    page.add(f"{prefix}_lateness_seconds", "gauge", "From the due time to the start of the last firing", late)
    counts = [({**on, "result": result}, number) for on, one in named for result, number in sorted(one.results.items())]
    page.add(f"{prefix}_firings_total", "counter", "Firings that are over", counts)


def _suites(page: _Page, suites: tuple[SuiteFigures, ...]) -> None:
    prefix = "assay_suite"
    named = [({"suite": one.suite}, one) for one in suites]
    page.add(f"{prefix}_tasks", "gauge", "Tasks in the last audit cycle", [(on, one.tasks) for on, one in named])
    achievable = [(on, one.achievable) for on, one in named]
    page.add(f"{prefix}_achievable", "gauge", "Tasks on which a pass or a fail means something", achievable)
    causes = [({**on, "cause": cause}, number) for on, one in named for cause, number in sorted(one.causes.items())]
    page.add(f"{prefix}_unavailable", "gauge", "Tasks that are not available, by cause", causes)
    page.add(
        f"{prefix}_cycle_timestamp_seconds", "gauge", "When that cycle ended", [(on, o.cycle_s) for on, o in named]
    )
    alerts = [({**on, "alert": kind}, number) for on, one in named for kind, number in sorted(one.alerts.items())]
    page.add(f"{prefix}_alerts", "gauge", "Alerts that stand, by kind", alerts)


def _ended_s(firing: Firing | None) -> float | None:
    return moment(firing.finished).timestamp() if firing is not None and firing.finished is not None else None


def _duration_s(firing: Firing | None) -> float | None:
    if firing is None or firing.started is None or firing.finished is None:
        return None
    return (moment(firing.finished) - moment(firing.started)).total_seconds()


def _braced(labels: Labels) -> str:
    if not labels:
        return ""
    inside = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{inside}}}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
