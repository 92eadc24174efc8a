"""The source's side experiments, and ours, on one simulated lineage each; every function returns labelled scores.

The key of a result is (setting, method), the setting a number or word that a table or a plot has on its axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchmarks.adaptive.folds import Fold, evenly, rows_of, simulated_fold
from benchmarks.adaptive.methods import Method, Workshop, evaluate, paper, random_sampling, rasch, strata
from benchmarks.adaptive.scores import Scores
from harness.adaptive.arrays import FloatArray
from harness.adaptive.calibration.calibrate import CalibrationSettings, calibrate
from harness.adaptive.estimators.protocol import Estimator
from harness.adaptive.planning.trajectories import Study, run_study
from harness.adaptive.policies import Policy, cache_of
from harness.adaptive.populations.lineage import Lineage
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


def rolling(
    lineage: Lineage, half: int, budgets: Sequence[int], policy: Policy, estimator: Estimator, recent_days: float
) -> Labelled:
    """At each budget, a bank that is kept against one that learns every `ROLLING_DAYS` days from what was executed.

    "rolling" keeps all runs alike, "rolling, recent" halves a run's weight for every `recent_days` of age.
    """
    found: Labelled = {}
    history = lineage.responses(range(half))
    base = calibrate(history)
    late = np.arange(half, len(lineage.run_ids))
    number = lineage.days[late] // ROLLING_DAYS
    blocks = [late[number == block] for block in np.unique(number)]
    how = {
        "frozen": None,
        "rolling": CalibrationSettings(average=False),
        "rolling, recent": CalibrationSettings(average=False, half_life_days=recent_days),
    }
    for budget in budgets:
        for name, settings in how.items():
            past, calibration, parts = history, base, []
            for turn, block in enumerate(blocks):
                if settings is not None and turn:
                    calibration = calibrate(past, settings, start=calibration)
                fold = simulated_fold(lineage, range(half), block)
                study = Study(policy, (estimator,), (budget,), fold.seeds)
                run = run_study(calibration.bank, fold.tested.passes, fold.tested.trials, study)
                value = run.moments[estimator.name].value
                nothing = np.full(value.shape, np.nan)
                parts.append(Scores(value, nothing, nothing, np.abs(value - fold.truth[:, None]), fold.truth))
                past = _extended(past, fold.tested, run.items)
            found[f"{budget}", name] = Scores.joined(parts)
    return found


def _extended(past: Responses, tested: Responses, items: np.ndarray) -> Responses:
    """`past` with the executed cells of the tested runs."""
    executed = np.zeros(tested.trials.shape, dtype=np.bool_)
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
