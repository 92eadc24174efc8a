"""A run: a planned set of trials under one resolved configuration."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from harness.records.base import Record
from harness.records.grade import TrialResult
from harness.records.task import Budget
from harness.records.trial import SolverSpec, TrialState


class DecisionRule(Record):
    """Stop once a run is known to be better, no worse or worse than a baseline; `margin` and `alpha` are shares.

    The baseline is a `rate`, or another run's `outcomes`: a blob of JSON, {"suite": [task, …], "outcomes": {task:
    [passes, trials]}}, so that what happens to that run later changes nothing here.
    """

    baseline: str  # the other run's id, or the rate as it was given
    rate: float | None = None
    outcomes: str | None = None
    margin: float = Field(default=0.02, ge=0, lt=1)
    alpha: float = Field(default=0.05, gt=0, lt=1)


class AdaptiveConfig(Record):
    """How the next task is chosen and when to stop: at `stop` graded tasks, or before that for one of the others."""

    stop: int = Field(default=200, gt=0)
    stop_se: float | None = Field(default=None, gt=0)  # percentage points
    stop_cost: float | None = Field(default=None, gt=0)  # USD
    stop_seconds: float | None = Field(default=None, gt=0)  # on the solvers' clocks, added up
    stop_decision: DecisionRule | None = None
    policy: str = "d_optimal"
    estimator: str = "p_irt"
    model_error: float | None = Field(default=None, ge=0)  # of the hybrid estimator, a share
    widening: tuple[tuple[int, float], ...] = ()  # (executed tasks, factor): what standard errors are multiplied by
    asked_policy: str | None = None  # `auto`, where the bank's back-test chose policy, estimator and widening
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
