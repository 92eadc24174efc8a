"""A run's score on what was achievable, and what of a change is the agent's and what the instrument's."""

from __future__ import annotations

from enum import StrEnum

from harness.records.audit import Cause
from harness.records.base import Record

UNMEASURED = "not measured"  # the ceiling, where no audit says what was achievable


class TaskState(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    UNGRADED = "ungraded"  # planned, and there is no grade
    UNAVAILABLE = "unavailable"  # whatever the agent did: a pass or fail means nothing
    UNEXECUTED = "unexecuted"  # an adaptive run stopped before it


class TaskScore(Record):
    """One task of a run. `rate` is passes over graded repeats, null without any."""

    task: str
    state: TaskState
    rate: float | None = None
    cause: Cause | None = None
    detail: str = ""
    since: str | None = None


class Score(Record):
    """The three numbers of a run (score over achievable, achievable count, unavailable rate) and what is behind them.

    `measured` False: no audit cycle of the run's suite version stands behind it. Then `score`, `achievable` and
    `unavailable_rate` are null, and `raw_interval` is all that can be said. Intervals count every planned repeat
    without a grade as a fail, then as a pass; of an adaptive run they are the estimate's.
    """

    run: str
    agent: str
    suite: str
    suite_version: str
    created: str
    measured: bool
    cycle: str | None = None
    cycle_at: str | None = None
    tasks: int  # of the run, those that were retired left out
    achievable: int | None = None
    unavailable: int | None = None
    unavailable_rate: float | None = None
    causes: dict[Cause, int] = {}
    retired: int = 0
    passed: float = 0.0  # tasks' worth of passes over the achievable
    failed: float = 0.0
    ungraded: int = 0
    unexecuted: int = 0
    passes_elsewhere: float = 0.0  # on unavailable tasks: they count nowhere
    score: float | None = None
    score_kind: str = ""
    interval: tuple[float, float] | None = None
    raw_passed: float = 0.0
    raw_score: float | None = None  # over all tasks of the run, whatever they are worth
    raw_interval: tuple[float, float] | None = None
    notes: tuple[str, ...] = ()
    states: tuple[TaskScore, ...] = ()

    @property
    def ceiling(self) -> str:
        """One line on what was achievable."""
        if not self.measured or self.achievable is None or self.unavailable_rate is None:
            return UNMEASURED
        return (
            f"{self.achievable} of {self.tasks} achievable, {self.unavailable} unavailable"
            f" ({100 * self.unavailable_rate:.1f} %), by cycle {self.cycle} of {(self.cycle_at or '')[:16]}"
        )


class Verdict(StrEnum):
    """Where a change between two runs of one agent lies."""

    INSTRUMENT = "instrument"
    AGENT = "agent"
    BOTH = "both"
    NONE = "none"


class Diagnosis(Record):
    """Two runs, task by task. Counts are tasks' worth of passes: whole numbers where each task ran once.

    raw change = agent's (gained − lost) + died's + opened's + elsewhere's.
    """

    baseline: str
    run: str
    verdict: Verdict
    sentence: str
    change: float  # in passes, on all tasks of both runs
    died: tuple[str, ...]  # available then, not now
    died_change: float
    opened: tuple[str, ...]  # available now, not then
    opened_change: float
    elsewhere_change: float  # on tasks available in neither, or without a grade in one
    common: int  # available and graded in both
    gained: float
    lost: float
    difference: float | None  # (gained − lost) / common
    interval: tuple[float, float] | None  # 95 %, paired (Newcombe)


class Comparison(Record):
    """A run beside its baseline. `incomparable` says why no difference is told."""

    score: Score
    baseline: Score | None = None
    diagnosis: Diagnosis | None = None
    incomparable: str | None = None
