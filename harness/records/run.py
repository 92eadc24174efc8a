"""A run: a planned set of trials under one resolved configuration."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from harness.records.base import Record
from harness.records.grade import TrialResult
from harness.records.task import Budget
from harness.records.trial import SolverSpec, TrialState


class AdaptiveConfig(Record):
    """How the next task is chosen and when to stop."""

    stop: int = Field(default=200, gt=0)
    stop_se: float | None = Field(default=None, gt=0)  # percentage points
    policy: str = "d_optimal"
    bank: str | None = None  # blob digest of the bank this run uses
    seed: int = 0


class RunConfig(Record):
    """The resolved configuration, stored with the run. Two runs are comparable when their digests agree."""

    suite: str
    suite_version: str
    suite_source: str = ""
    tasks: tuple[str, ...]  # ids, in planned order (fixed run) or the pool (adaptive run)
    solver: SolverSpec
    model: str | None = None
    base_url: str | None = None
    scaffold: str | None = None
    agent: str | None = None  # the name in the flat file; scaffold/model when None
    repeats: int = Field(default=1, gt=0)
    concurrency: int = Field(default=4, gt=0)
    budget: Budget = Budget()  # overrides of every task's own
    adaptive: AdaptiveConfig | None = None
    retries: int = Field(default=1, ge=0)  # new attempts after infrastructure faults
    seed: int = 0
    secrets: tuple[str, ...] = ()  # names of environment variables whose values are never written
    prices: str | None = None  # name and date of the price table
    prices_digest: str | None = None  # sha256 of its file, where it has one
    keep_cost_budgets: bool = True  # False: the price is unknown, and running without them was allowed
    extra: dict[str, Any] = {}


class RunRow(Record):
    """A run as the store lists it."""

    run: str
    created: str
    config: RunConfig
    config_digest: str


class TrialRow(Record):
    """A trial as the store lists it: its planned identity, where it stands, and its result when done."""

    run: str
    trial: str
    slot: int
    repeat: int
    attempt: int
    task: str
    task_version: str
    state: TrialState
    result: TrialResult | None = None
