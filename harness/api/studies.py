"""What policies would have cost and given: adaptive runs replayed on runs whose every outcome is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import Field

from harness.adaptive.arrays import FloatArray, IntArray, normal_quantile
from harness.adaptive.bank import Bank
from harness.adaptive.bank_file import load_bank
from harness.adaptive.calibration.calibrate import CalibrationSettings
from harness.adaptive.engine import EngineSettings
from harness.adaptive.planning.trajectories import Study, run_study
from harness.api.adaptive import AUTO, Means, check_names, means_of
from harness.api.banks import bank_of, counts_of
from harness.records.base import Record
from harness.records.errors import ConfigError
from harness.report.studies import PolicyLine, PolicyStudy
from harness.store.history import History, read_history

_GRID = (10, 25, 50, 75, 100, 150, 200, 300, 400, 500, 750, 1000, 1500, 2000)


class StudyRequest(Record):
    """`bank` is a file, or None: then a bank is calibrated for each of `folds` parts of the agents, on the others."""

    history: tuple[str, ...] = Field(min_length=1)
    bank: str | None = None
    policies: tuple[str, ...] = Field(min_length=1)
    estimator: str | None = None  # None: hybrid, and for `auto` what the back-test found
    stop: int = Field(default=200, gt=0)
    level: float = Field(default=0.95, gt=0, lt=1)
    folds: int = Field(default=10, gt=1)
    repeats: int = Field(default=5, gt=0)  # of every run, each with a seed of its own
    in_flight: int = Field(default=1, gt=0)
    seed: int = 0


@dataclass(frozen=True, eq=False)
class _Fold:
    bank: Bank
    rows: IntArray
    tested: Bank  # for `auto`: with the back-test of what it was calibrated on


def simulate(request: StudyRequest) -> PolicyStudy:
    """Replay every run of the history under every policy.

    Raises ConfigError with file and line, AdaptiveError for a policy, estimator or bank that cannot be used.
    """
    history = read_history(*request.history)
    check_names(request.policies, request.estimator)
    graded = history.graded_runs
    history = history.only(np.flatnonzero(graded).tolist())
    notes: list[str] = [] if graded.all() else [f"{int((~graded).sum())} runs without any grade left out"]
    folds = list(_folds(request, history, notes))
    steps = checkpoints(min(request.stop, len(history.tasks)))
    if AUTO in request.policies:
        notes.append(_told(folds, steps[-1]))
    lines: list[PolicyLine] = []
    for policy in dict.fromkeys(request.policies):
        lines += _Replays(request, history, policy, steps).over(folds)
    return PolicyStudy(
        lines=tuple(lines),
        runs=len(history.run_ids),
        agents=len(set(history.agents)),
        items=len(history.tasks),
        level=request.level,
        estimator=request.estimator or EngineSettings().estimator.name,
        notes=tuple(notes),
    )


def checkpoints(stop: int) -> tuple[int, ...]:
    """The numbers of tasks that are looked at on the way to `stop`."""
    return (*(step for step in _GRID if step < stop), stop)


def _folds(request: StudyRequest, history: History, notes: list[str]) -> Iterator[_Fold]:
    everyone = np.arange(len(history.run_ids))
    if request.bank is not None:
        bank = load_bank(request.bank)
        notes += [*_unknown(request.bank, bank, history), *_overlap(bank, history)]
        aligned = bank.align(history.tasks)
        yield _Fold(aligned, everyone, aligned)
        return
    agents = list(dict.fromkeys(history.agents))
    if len(agents) < 2:
        raise ConfigError("one agent cannot be held out of itself", remedy="give --bank, or a history of more agents")
    parts = min(request.folds, len(agents))
    order = np.random.default_rng(request.seed).permutation(len(agents))
    part_of = {agents[agent]: number % parts for number, agent in enumerate(order)}
    parts_of_runs = np.array([part_of[agent] for agent in history.agents])
    settings = CalibrationSettings(seed=request.seed)
    for part in range(parts):
        rest = history.only(np.flatnonzero(parts_of_runs != part).tolist())
        bank = bank_of(rest, settings)
        tested = bank_of(rest, settings, tested=True) if AUTO in request.policies else bank
        yield _Fold(bank, np.flatnonzero(parts_of_runs == part), tested)
    notes.append(f"banks calibrated {parts} times, each without the agents that it was tried on")


def _unknown(place: str, bank: Bank, history: History) -> list[str]:
    """Tasks of the history that the bank says nothing of. Raises ConfigError if it knows none."""
    unknown = len(set(history.tasks).difference(bank.item_ids))
    if unknown == len(history.tasks):
        raise ConfigError("no task of these runs is in the bank", place=place, remedy="give a bank of their suite")
    return [f"{unknown} of {len(history.tasks)} tasks are not in the bank: it takes them as average"] if unknown else []


def _overlap(bank: Bank, history: History) -> list[str]:
    """What makes the figures flatter the bank: runs that it may have been calibrated on."""
    known = bank.provenance
    if known.history_sha256 and known.history_sha256 == counts_of(history).responses.sha256:
        return ["the bank was calibrated on this very history: the figures flatter it; leave --bank out to hold out"]
    earlier = sum(bool(day) and day <= known.last_date for day in history.dates)
    if not earlier:
        return []
    return [
        f"{earlier} of {len(history.dates)} runs are no later than the bank's last ({known.last_date}):"
        " if it was calibrated on them, the figures flatter it"
    ]


def _told(folds: Sequence[_Fold], stop: int) -> str:
    """What `auto` was, over the folds."""
    if all(fold.tested.backtest is None for fold in folds):
        return "auto: no bank has a back-test, so it is d_optimal"
    chosen = Counter(
        f"{m.policy.name} ({m.estimator.name})" for m in (means_of(AUTO, None, f.tested, stop) for f in folds)
    )
    return "auto: " + ", ".join(f"{name} in {times} of {len(folds)}" for name, times in chosen.most_common())


@dataclass(frozen=True, eq=False)
class _Replays:
    """One policy's runs, gathered over folds and repeats as (R·repeats, K) arrays."""

    request: StudyRequest
    history: History
    policy: str
    steps: tuple[int, ...]

    def over(self, folds: Sequence[_Fold]) -> list[PolicyLine]:
        request, history = self.request, self.history
        errors, spreads, rows, items = [], [], [], []
        for fold in folds:
            bank = fold.tested if self.policy == AUTO else fold.bank
            means = means_of(self.policy, request.estimator, bank, self.steps[-1])
            name, widening = means.estimator.name, self._widening(means)
            passes = history.passes[fold.rows].astype(np.float64)
            trials = history.trials[fold.rows].astype(np.float64)
            for repeat in range(request.repeats):
                seeds = tuple(int(row) + len(history.run_ids) * repeat + request.seed for row in fold.rows)
                study = Study(means.policy, (means.estimator,), self.steps, seeds, request.in_flight)
                found = run_study(bank, passes, trials, study)
                errors.append(found.errors(name))
                spreads.append(found.moments[name].standard_error * widening)
                items.append(found.items)
                rows.append(fold.rows)
        error, spread = np.concatenate(errors), np.concatenate(spreads)
        row, item = np.concatenate(rows), np.concatenate(items)
        return [self._line(at, error[:, at], spread[:, at], row, item) for at in range(len(self.steps))]

    def _widening(self, means: Means) -> FloatArray:
        if not means.widening:
            return np.ones(len(self.steps))
        tasks, factors = zip(*means.widening, strict=True)
        return np.asarray(np.interp(self.steps, tasks, factors))

    def _line(self, at: int, error: FloatArray, spread: FloatArray, row: IntArray, item: IntArray) -> PolicyLine:
        reach = float(normal_quantile(0.5 + self.request.level / 2.0)) * spread
        k = self.steps[at]
        cost, cost_share = _taken(self.history.cost_usd, row, item[:, :k])
        seconds, seconds_share = _taken(self.history.seconds, row, item[:, :k])
        by_run = np.bincount(row, np.abs(error)) / np.bincount(row)
        return PolicyLine(
            policy=self.policy,
            tasks=k,
            error=100 * float(by_run.mean()),
            error_interval=_bootstrap(100 * by_run, self.request.seed),
            bias=100 * float(error.mean()),
            coverage=float((np.abs(error) <= reach + 1e-12).mean()),
            width=200 * float(reach.mean()),
            cost_usd=cost,
            cost_share=cost_share,
            seconds=seconds,
            seconds_share=seconds_share,
        )


def _taken(amounts: FloatArray | None, row: IntArray, item: IntArray) -> tuple[float | None, float | None]:
    """What the chosen items took per run, and the share of the whole; over the runs of which every item is known."""
    if amounts is None:
        return None, None
    chosen = np.where(item >= 0, amounts[row[:, None], np.maximum(item, 0)], 0.0).sum(axis=1)
    whole = amounts[row].sum(axis=1)
    known = np.isfinite(whole) & (whole > 0)
    if not known.any():
        return None, None
    return float(chosen[known].mean()), float((chosen[known] / whole[known]).mean())


def _bootstrap(by_run: FloatArray, seed: int, draws: int = 2000) -> tuple[float, float] | None:
    if len(by_run) < 2:
        return None
    picks = np.random.default_rng(seed).integers(0, len(by_run), (draws, len(by_run)))
    lower, upper = np.quantile(by_run[picks].mean(axis=1), [0.025, 0.975])
    return float(lower), float(upper)
