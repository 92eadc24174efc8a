"""The source's side experiments, and ours, on one simulated lineage each; every function returns labelled scores.

The key of a result is (setting, method), the setting a number or word that a table or a plot has on its axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.adaptive.folds import Fold, evenly, rows_of, simulated_fold
from benchmarks.adaptive.methods import Method, Workshop, evaluate, paper, random_sampling, rasch, strata
from benchmarks.adaptive.scores import Scores
from harness.adaptive.arrays import FloatArray, IntArray
from harness.adaptive.bank import Bank, prior_bank
from harness.adaptive.calibration.ability_prior import coming_covariance, past_abilities
from harness.adaptive.calibration.calibrate import Calibration, CalibrationSettings, calibrate
from harness.adaptive.estimators.protocol import Estimator
from harness.adaptive.planning.trajectories import Study, Trajectories, run_study
from harness.adaptive.policies import Policy, cache_of
from harness.adaptive.populations.lineage import Lineage, Shape, simulate_lineage
from harness.adaptive.populations.regimes import families
from harness.adaptive.responses import Responses

EPSILONS = tuple(round(0.01 * step, 2) for step in range(31))
WINDOW_STARTS = tuple(range(0, 28, 3))
HISTORY_SIZES = (5, 10, 20, 40, 80, 160, 287)
ROLLING_DAYS = 4

Labelled = dict[tuple[str, str], Scores]


def caching(lineage: Lineage, half: int, tested: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """For each ε of `EPSILONS`: the executed fraction, the estimate, (A, E) each, and the truth (A,).

    The window is the seven days before the run's own, rebuilt daily, tested runs included (section 4.2).
    """
    rows = evenly(half, len(lineage.run_ids), tested)
    everything = lineage.responses(range(len(lineage.run_ids)))
    caches = {
        (day, epsilon): cache_of(everything, day, epsilon).verdict
        for day in {everything.dates[row] for row in rows}
        for epsilon in EPSILONS
    }
    fraction, value = np.empty((len(rows), len(EPSILONS))), np.empty((len(rows), len(EPSILONS)))
    for at, row in enumerate(rows):
        outcomes = lineage.outcomes[row]
        for step, epsilon in enumerate(EPSILONS):
            verdict = caches[everything.dates[row], epsilon]
            executed = np.isnan(verdict)
            fraction[at, step] = executed.mean()
            value[at, step] = np.where(executed, outcomes, np.nan_to_num(verdict)).mean()
    return fraction, value, np.asarray(lineage.outcomes[rows].mean(axis=1))


def windows(lineage: Lineage, half: int, tested: int, checkpoints: Sequence[int], default: Method) -> Labelled:
    """Calibration on the runs of day `start` and later, up to the split."""
    found: Labelled = {}
    for start in WINDOW_STARTS:
        rows = np.flatnonzero(lineage.days[:half] >= start)
        fold = simulated_fold(lineage, rows, evenly(half, len(lineage.run_ids), tested))
        _add(found, f"day {start + 1}, {len(rows)} runs", evaluate(fold, (strata, default), checkpoints))
    return found


def history_sizes(
    lineage: Lineage, half: int, tested: int, checkpoints: Sequence[int], defaults: Sequence[Method]
) -> Labelled:
    """Calibration on the latest few runs before the split."""
    found: Labelled = {}
    now = evenly(half, len(lineage.run_ids), tested)
    for size in HISTORY_SIZES:
        if size <= half:
            fold = simulated_fold(lineage, range(half - size, half), now)
            _add(found, f"{size}", evaluate(fold, (random_sampling, strata, rasch, *defaults), checkpoints))
    return found


def transfer(seed: int, tested: int, checkpoints: Sequence[int], default: Method) -> Labelled:
    """Calibrated on one lineage, tested on five other families."""
    lineage = families(seed)
    first = int(np.flatnonzero(lineage.families > 0)[0])
    fold = simulated_fold(lineage, range(first // 2), evenly(first, len(lineage.run_ids), tested))
    found: Labelled = {}
    _add(found, "all families", evaluate(fold, (random_sampling, strata, rasch, paper, default), checkpoints))
    return found


@dataclass(frozen=True)
class Upkeep:
    """How a bank is kept: calibrated by `settings`, and if it `rolls` again every `ROLLING_DAYS` days on what was
    executed since, or on `all_cells` of the runs since, which no adaptive run has.
    """

    settings: CalibrationSettings
    rolls: bool = True
    all_cells: bool = False


def upkeeps(recent_days: float) -> dict[str, Upkeep]:
    """ "recent" halves a run's weight for every `recent_days` of age; "drift" lets items move as far as hidden cells
    say (`CalibrationSettings.drift`).
    """
    held = CalibrationSettings(average=False, report=False)
    drift = replace(held, drift="auto")
    return {
        "frozen": Upkeep(held, rolls=False),
        "frozen, drift": Upkeep(drift, rolls=False),
        "rolling": Upkeep(held),
        "rolling, recent": Upkeep(replace(held, half_life_days=recent_days)),
        "rolling, drift": Upkeep(drift),
        "rolling, drift, all cells": Upkeep(drift, all_cells=True),
    }


def rolling(
    lineage: Lineage, shape: Shape, budgets: Sequence[int], policy: Policy, estimator: Estimator, recent_days: float
) -> Labelled:
    """At each budget, the second half of a lineage tested with banks kept in the ways of `upkeeps`, and with the true
    items of each day ("items known": what no calibration can beat).
    """
    half = shape.n_runs // 2
    found: Labelled = {}
    history = lineage.responses(range(half))
    late = np.arange(half, len(lineage.run_ids))
    number = lineage.days[late] // ROLLING_DAYS
    blocks = [late[number == block] for block in np.unique(number)]
    bases: dict[CalibrationSettings, Calibration] = {}
    for name, how in upkeeps(recent_days).items():
        at_split = replace(how.settings, half_life_days=None)  # where all runs weigh alike
        if at_split not in bases:
            bases[at_split] = calibrate(history, at_split)
        # A bank that does not learn from what was executed is the same at every budget.
        together = [tuple(budgets)] if how.all_cells or not how.rolls else [(budget,) for budget in budgets]
        for ks in together:
            past, calibration, parts = history, bases[at_split], []
            for turn, block in enumerate(blocks):
                if how.rolls and turn:
                    calibration = calibrate(past, how.settings, start=calibration)
                fold = simulated_fold(lineage, range(half), block)
                run = _tested(calibration.bank, fold, Study(policy, (estimator,), ks, fold.seeds))
                parts.append(_scores_of(run, fold))
                past = _extended(past, fold.tested, None if how.all_cells else run.items)
            _add_budgets(found, name, ks, Scores.joined(parts))
    parts = []
    for day in np.unique(lineage.days[late]):
        rows = late[lineage.days[late] == day]
        fold = simulated_fold(lineage, range(half), rows)
        bank = _items_of(lineage, shape, int(rows[0]))
        parts.append(_scores_of(_tested(bank, fold, Study(policy, (estimator,), tuple(budgets), fold.seeds)), fold))
    _add_budgets(found, "items known", budgets, Scores.joined(parts))
    return found


def _tested(bank: Bank, fold: Fold, study: Study) -> Trajectories:
    return run_study(bank, fold.tested.passes, fold.tested.trials, study)


def _add_budgets(found: Labelled, name: str, budgets: Sequence[int], scores: Scores) -> None:
    for at, budget in enumerate(budgets):
        one = slice(at, at + 1)
        found[f"{budget}", name] = replace(
            scores,
            value=scores.value[:, one],
            lower=scores.lower[:, one],
            upper=scores.upper[:, one],
            error=scores.error[:, one],
        )


def _scores_of(run: Trajectories, fold: Fold) -> Scores:
    value = next(iter(run.moments.values())).value
    nothing = np.full(value.shape, np.nan)
    return Scores(value, nothing, nothing, np.abs(value - fold.truth[:, None]), fold.truth)


def _items_of(lineage: Lineage, shape: Shape, run: int) -> Bank:
    """The true items on the day of a run of a lineage that is the plain one but for its difficulties."""
    truth = simulate_lineage(lineage.seed, shape).truth
    assert truth is not None
    p = lineage.probability[run]
    mean, past = past_abilities(truth.theta[: shape.n_runs // 2])
    return replace(
        prior_bank(lineage.item_ids),
        alpha=truth.alpha,
        beta=truth.alpha @ truth.theta[run] - np.log(p / (1.0 - p)),
        prior_mean=mean,
        prior_covariance=coming_covariance(past, truth.alpha),
        calibrated=np.ones(len(lineage.item_ids), dtype=np.bool_),
    )


def _extended(past: Responses, tested: Responses, items: IntArray | None) -> Responses:
    """`past` with the executed cells of the tested runs, or all of them."""
    executed = np.full(tested.trials.shape, items is None)
    if items is not None:
        np.put_along_axis(executed, items, True, axis=1)
    return Responses(
        (*past.run_ids, *tested.run_ids),
        past.item_ids,
        np.concatenate([past.passes, tested.passes * executed]),
        np.concatenate([past.trials, tested.trials * executed]),
        (*past.dates, *tested.dates),
    )


def thinned(fold: Fold, count: int) -> Fold:
    """The fold with `count` of its test runs, evenly spread."""
    rows = evenly(0, len(fold.tested.run_ids), count)
    return replace(
        fold,
        tested=rows_of(fold.tested, rows),
        units=tuple(fold.units[row] for row in rows),
        probability=None if fold.probability is None else fold.probability[rows],
    )


def workshop_with(fold: Fold, other: Workshop) -> Workshop:
    """A workshop for `fold` that shares the banks `other` has made, for folds of one history."""
    made = Workshop(fold)
    made.__dict__.update({name: value for name, value in other.__dict__.items() if name != "fold"})
    return made


def _add(found: Labelled, setting: str, scores: dict[str, Scores]) -> None:
    found.update({(setting, method): value for method, value in scores.items()})
