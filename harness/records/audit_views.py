"""What is shown of audits: a cycle's outcome, a suite's state, its trend, one task explained."""

from __future__ import annotations

from harness.records.audit import (
    Alert,
    Availability,
    Cause,
    Cycle,
    Decision,
    Evidence,
    Finding,
    Fingerprint,
    Sentinel,
    Survivor,
)
from harness.records.base import Record


class Break(Record):
    """From `at` on, measurements continue no earlier ones."""

    at: str
    why: str


class TrendPoint(Record):
    """One cycle on the trend. `series` counts the breaks before it."""

    cycle: str
    at: str
    suite_version: str
    series: int
    tasks: int
    achievable: int
    causes: dict[Cause, int]


class ScorePoint(Record):
    """One run on both denominators. `achievable` None: no cycle stands behind it."""

    run: str
    agent: str
    at: str
    series: int
    raw: float
    achievable: float | None


class Side(Record):
    """A task in one cycle: when, as what, and what gold used."""

    cycle: str
    at: str
    fingerprint: Fingerprint
    evidence: Evidence
    trial: str | None = None  # that says most: of red evidence a red one


class Explanation(Record):
    """A task, judged now, with the evidence. `green` None: it never was; `red` None: it is not."""

    task: str
    now: Availability
    sentinel: Sentinel  # whose evidence is compared
    green: Side | None
    red: Side | None
    changed: tuple[str, ...]  # parts of the task that differ between the two
    output_diff: str  # of what the grader printed, then and now
    survivors: tuple[Survivor, ...] = ()
    outputs: dict[str, str] = {}  # what the grader printed on each survivor, by trial
    drift: str = ""
    note: str = ""
    decisions: tuple[Decision, ...] = ()


class AuditReport(Record):
    """What an audit came to. `cycle` is null when nothing had to be run and nothing had changed."""

    suite: str
    suite_version: str
    cycle: Cycle | None
    finished: bool
    audited: dict[str, str]  # tasks that were run, and why; the reason is blank in a full audit
    notes: dict[str, str]  # on tasks, e.g. back to a state that was green before
    problem: str = ""  # why the cycle did not come to its end
    tasks: int
    achievable: int
    raised: tuple[Alert, ...]
    resolved: tuple[Alert, ...]
    standing: tuple[Alert, ...]
    undelivered: tuple[str, ...] = ()


class AuditStatus(Record):
    """A suite's audits, judged now."""

    suite: str
    suite_version: str | None
    cycle: Cycle | None  # the newest that came to its end
    tasks: int
    achievable: int
    unavailable: tuple[Availability, ...]
    retired: tuple[str, ...]
    at_risk: tuple[Availability, ...]
    oldest_gold: str | None
    findings: tuple[Finding, ...]  # what is to be told now, raised already or not
    standing: tuple[Alert, ...]
    survivors: dict[str, tuple[Survivor, ...]]  # that nobody accepted
    trend: tuple[TrendPoint, ...]
    scores: tuple[ScorePoint, ...]
    breaks: tuple[Break, ...]
    written_since: bool | None = False  # the suite's files, or the code that reads them, since the newest cycle
    decisions: tuple[Decision, ...]
