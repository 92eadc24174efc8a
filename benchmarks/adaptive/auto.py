"""`auto`: what the back-test on the fold's own history recommends, run at each number of tasks as a user would."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.adaptive.methods import Workshop, bounds_on
from benchmarks.adaptive.scores import Scores
from harness.adaptive.bank import Bank
from harness.adaptive.calibration.settings import Candidate
from harness.adaptive.estimators.protocol import Moments
from harness.adaptive.planning.auto import PlanningSettings, auto_settings, planned
from harness.adaptive.planning.backtest import BacktestSettings, default_checkpoints
from harness.adaptive.planning.trajectories import Study, Trajectories, run_study

LABEL = "auto"
RUNS_TRIED = 100
MODELS: tuple[Candidate, ...] = ("rasch",)
# What the back-test of each fold tries, besides the d of best likelihood; `assay calibrate` tries 200 runs and more
# models. Set for the time it takes: a study has tens of folds.


def planned_bank(workshop: Workshop, most: int) -> Bank:
    """The history's bank with its back-test, which looks no further than `most` tasks."""
    usual = default_checkpoints(len(workshop.fold.history.item_ids))
    tried = usual if most >= usual[-1] else (*(k for k in usual if k < most), most)
    how = PlanningSettings(backtest=BacktestSettings(max_runs=RUNS_TRIED, checkpoints=tried), models=MODELS)
    return planned(workshop.fold.history, workshop.fold.agents, how).bank


def auto(workshop: Workshop, checkpoints: Sequence[int]) -> dict[str, Scores]:
    """A run of every length that is looked at, each with the settings recommended for its length."""
    fold, bank = workshop.fold, planned_bank(workshop, max(checkpoints))
    settings = [auto_settings(bank, k) for k in checkpoints]
    plans = [(one.policy.name, one.estimator) for one in settings]
    runs: dict[object, Trajectories] = {}
    columns, bounds = [], []
    for one, plan, k in zip(settings, plans, checkpoints, strict=True):
        # Runs of one plan share their beginnings: the longest passes through the others.
        if plan not in runs:
            until = tuple(other for other, at in zip(checkpoints, plans, strict=True) if at == plan)
            study = Study(one.policy, (one.estimator,), until, fold.seeds)
            runs[plan] = run_study(bank, fold.tested.passes, fold.tested.trials, study)
        run = runs[plan]
        at = run.checkpoints.index(k)
        moments = run.moments[one.estimator.name]
        tasks, factors = [tasks for tasks, _ in one.widening], [factor for _, factor in one.widening]
        factor = float(np.interp(k, tasks, factors)) if tasks else 1.0
        columns.append(Moments(moments.value[:, at], factor * moments.standard_error[:, at]))
        bounds.append(bounds_on(fold, run.items[:, :k]))
    return {LABEL: Scores.of(columns, bounds, fold.truth)}
