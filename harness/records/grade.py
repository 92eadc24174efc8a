"""A grader's answer, and what a trial finally says."""

from __future__ import annotations

from pydantic import Field

from harness.records.base import Record
from harness.records.usage import Usage
from harness.records.vocabulary import Outcome, Reason, StopReason


class Grade(Record):
    """What a grader said, with its evidence. Without a usable verdict `outcome` is ungraded, with the reason."""

    grader: str  # id@version
    outcome: Outcome
    reward: float | None = Field(default=None, allow_inf_nan=False)
    criteria: dict[str, float] = {}
    reason: Reason | None = None
    detail: str = ""
    flags: tuple[str, ...] = ()  # e.g. "planted verdict removed", "services kept alive"
    duration_s: float = 0.0
    peak_memory_bytes: int | None = None  # of the container that was graded in; set by the runner
    blobs: dict[str, str] = {}  # name -> sha256 of the grader's output, verdict files, artifacts


class TrialResult(Record):
    """The end of a trial. Derived from its events; `verify` re-derives it."""

    trial: str
    outcome: Outcome
    reason: Reason | None = None
    detail: str = ""  # what the grade says of itself, or why there is none
    stop: StopReason
    stop_detail: str = ""  # what stopped the solver: its exception, the limit it met
    reward: float | None = Field(default=None, allow_inf_nan=False)
    flags: tuple[str, ...] = ()
    usage: Usage | None = None  # None: no model call was made
    calls: int = 0
    calls_without_usage: int = 0
    provider_status: int | None = None  # HTTP status of the refusal that ended it
    steps: int | None = 0  # None: unknown, of an imported record
    cost_usd: float | None = None  # None: unknown
    cost_at_least_usd: float = 0.0  # what is known of it: a lower bound where cost_usd is None
    seconds: float | None = 0.0  # the solver's clock; None: unknown, of an imported record
    tokens: int | None = None  # of an imported record that states a total and no usage; else `usage` counts
    finished_at: str = ""
