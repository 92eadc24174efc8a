"""What audits find: gold, null and mutant evidence per task, who is available, and what people decided about it.

One *cycle* is gold and null (and mutants) on one suite version, stored as ordinary runs and tied together by a
receipt. Its *table* has a row for every task of the suite, with the newest evidence of each sentinel that holds for the
task as it is: measured in this cycle, or carried over from an earlier one with the same fingerprint.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cached_property
from typing import Literal

from pydantic import Field

from harness.records.base import Record, digest_of

RECEIPT_SCHEMA = "assay-audit-receipt/1"
TABLE_SCHEMA = "assay-audit-table/1"


class Sentinel(StrEnum):
    """Who stands in for the agent."""

    GOLD = "gold"  # the reference solution: must pass
    NULL = "null"  # does nothing: must not pass
    MUTANT = "mutant"  # the reference with one thing wrong: must not pass


class Cause(StrEnum):
    """Why a task is not available. The part before the dot says who found it."""

    IMAGE_MISSING = "gold.image_missing"
    IMAGE_CHANGED = "gold.image_changed"
    WRONG_PLATFORM = "gold.wrong_platform"
    BUILD_FAILED = "gold.build_failed"
    UNSUPPORTED = "gold.unsupported"
    NO_SOLUTION = "gold.no_solution"
    ALLOWANCE = "gold.allowance_exhausted"
    TESTS_FAILED = "gold.tests_failed"
    NO_VERDICT = "gold.no_verdict"
    FLAKY = "gold.flaky"
    NULL_PASSED = "null.passed"
    MUTANT_PASSED = "mutant.passed"
    NEVER = "audit.never"
    STALE = "audit.stale"
    RETIRED = "task.retired"


CAUSE_TEXT = {
    Cause.IMAGE_MISSING: "image missing",
    Cause.IMAGE_CHANGED: "image changed",
    Cause.WRONG_PLATFORM: "image is for another platform",
    Cause.BUILD_FAILED: "setup of the environment failed",
    Cause.UNSUPPORTED: "needs what this harness lacks",
    Cause.NO_SOLUTION: "no reference solution",
    Cause.ALLOWANCE: "allowance exhausted by gold",
    Cause.TESTS_FAILED: "tests failed on gold",
    Cause.NO_VERDICT: "no usable verdict on gold",
    Cause.FLAKY: "flaky: gold passes now and then",
    Cause.NULL_PASSED: "passes with nothing done",
    Cause.MUTANT_PASSED: "passes with a wrong solution",
    Cause.NEVER: "never audited",
    Cause.STALE: "audit is stale",
    Cause.RETIRED: "retired",
}


class Fingerprint(Record):
    """What a task was when it was audited: short digests of its parts. Equal fingerprints, equal tasks."""

    version: str  # the task's
    image: str
    platform: str
    instruction: str
    environment: str
    allowances: str  # budget, limits, time for setup and tests
    solution: str
    tests: str
    grader: str  # id@version, and the digest of its code
    solver: str  # the digest of the reference solver's code

    @cached_property
    def digest(self) -> str:
        """One value for all parts."""
        return digest_of(self)[7:39]

    def changed(self, before: Fingerprint) -> tuple[str, ...]:
        """Names of the parts that differ; the version, which follows from the others, is left out."""
        return tuple(
            name
            for name in type(self).model_fields
            if name != "version" and getattr(self, name) != getattr(before, name)
        )


class Use(Record):
    """How much of an allowance gold used."""

    name: str  # "wall", "setup", "grading", "memory", "disk", "output", "steps"
    used: float
    limit: float = Field(gt=0)
    unit: str  # "s", "bytes", "steps"

    @property
    def share(self) -> float:
        return self.used / self.limit


class Survivor(Record):
    """A wrong solution that the grader passed. `digest` is of its files: what an acceptance is about."""

    number: int
    name: str
    declared: bool  # by the task's author, not made by an operator: it may not be equivalent
    digest: str
    trial: str
    diff: str  # from the reference to the mutant, shortened
    output: str | None = None  # blob of the grader's output


class Evidence(Record):
    """What one sentinel showed on one task. `cause` None: what it should."""

    sentinel: Sentinel
    cycle: str
    at: str  # UTC, ISO 8601
    fingerprint: str
    passed: int
    graded: int
    attempts: int  # without those that the machine or a service spoiled
    cause: Cause | None = None
    detail: str = ""
    uses: tuple[Use, ...] = ()
    trials: tuple[str, ...] = ()
    survivors: tuple[Survivor, ...] = ()


class TableRow(Record):
    """A task in a cycle's table. `since` is when its cause was first seen without a break."""

    task: str
    family: str
    fingerprint: Fingerprint
    gold: Evidence | None = None
    null: Evidence | None = None
    mutant: Evidence | None = None
    cause: Cause | None = None  # as judged when the cycle ended
    since: str | None = None
    note: str = ""  # e.g. back to a state that was green before
    drift: str = ""  # how instruction and check changed without each other since the task was green

    def evidence(self, sentinel: Sentinel) -> Evidence | None:
        found: Evidence | None = getattr(self, sentinel.value)
        return found


class Table(Record):
    """Every task of a suite version, and what is known of it."""

    schema_name: str = TABLE_SCHEMA
    cycle: str
    suite: str
    suite_version: str
    at: str
    rows: tuple[TableRow, ...]


class SentinelRun(Record):
    """A run that is part of a cycle. `head` is the hash of its stream's event number `events - 1` when it was over."""

    sentinel: Sentinel
    mutant: int | None = None
    run: str
    config_digest: str
    tasks: int
    events: int = 0
    head: str = ""


class Receipt(Record):
    """What a cycle rests on. Its digest stands in the suite's audit chain."""

    schema_name: str = RECEIPT_SCHEMA
    cycle: str
    suite: str
    suite_version: str
    started: str
    finished: str
    runs: tuple[SentinelRun, ...]
    table: str  # blob digest
    machine: dict[str, str] = {}


class Cycle(Record):
    """A cycle as the suite's audit chain tells of it. `finished` None: it did not come to its end."""

    cycle: str
    suite: str
    suite_version: str
    started: str
    finished: str | None = None
    sentinels: tuple[Sentinel, ...]
    scope: str  # "full", "changed", "part"
    tasks: int  # of the suite
    audited: int = 0  # tasks that had to be run
    achievable: int | None = None
    causes: dict[Cause, int] = {}
    runs: tuple[SentinelRun, ...] = ()
    table: str | None = None  # blob digests
    receipt: str | None = None
    stamp: str | None = None  # of the suite's files, to see fast that nothing changed
    seq: int = 0  # of its beginning in the chain


class DecisionKind(StrEnum):
    REPAIR = "repair"  # the task was mended (or is as it should be): measured anew from here
    RETIRE = "retire"  # the task is out from here on; it stays in the record
    ACCEPT = "accept"  # a surviving mutant is no wrong solution


class Decision(Record):
    """What a person decided about a task, and why."""

    kind: DecisionKind
    task: str
    task_version: str
    reason: str = Field(min_length=1)
    at: str
    mutant: str | None = None  # digest
    seq: int = 0


class Availability(Record):
    """Whether a pass or fail on a task means anything now. `cause` None: it does."""

    task: str
    task_version: str
    cause: Cause | None
    detail: str = ""
    since: str | None = None
    measured: str | None = None  # when gold last ran on the task as it is
    trials: tuple[str, ...] = ()
    at_risk: tuple[Use, ...] = ()
    uses: tuple[Use, ...] = ()

    @property
    def available(self) -> bool:
        return self.cause is None


class Policy(Record):
    """From when on what is known is stale, dear or alarming."""

    stale_days: float = Field(default=14.0, gt=0)
    at_risk: float = Field(default=0.8, gt=0, le=1)  # share of an allowance
    most_unavailable: float = Field(default=0.05, ge=0, le=1)
    largest_jump: float = Field(default=0.03, ge=0, le=1)
    mutants: Literal["all", "declared", "none"] = "all"  # whose survival makes a task unavailable


class AlertKind(StrEnum):
    RATE = "unavailable.rate"
    JUMP = "unavailable.jump"
    GOLD_ABSENT = "gold.absent"
    GOLD_STALE = "gold.stale"
    NULL_PASSED = "null.passed"
    MUTANT_PASSED = "mutant.passed"
    GOLD_FAILED = "gold.failed"
    AT_RISK = "gold.at_risk"
    WORDING = "wording.drift"
    UNFINISHED = "cycle.unfinished"
    EVIDENCE = "evidence.broken"


class Finding(Record):
    """Something to be told. Two findings are about the same thing when kind and subject agree, and the same finding
    when `state` agrees too."""

    kind: AlertKind
    subject: str  # a task, a cycle, or the suite
    message: str
    state: str = ""  # what makes it another finding when it changes
    cycle: str | None = None
    trials: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return f"{self.kind.value} {self.subject}"


class Alert(Record):
    """A finding that was raised. `id` is what a receiver tells repeated deliveries by."""

    id: str
    finding: Finding
    raised: str
    resolved: str | None = None
