"""The methods under test: each takes a fold and gives scores at checkpoints, having seen nothing of the test runs but
the outcomes it executed.

Named ones
- `random`: equation 6; its error is the exact expectation, its other columns come from one draw per run.
- `strata`, `strata gp-IRT`, `responses K-means …`, `features K-means …`: the source's fixed subsets, both estimators.
- `rasch`: Rasch bank, Fisher information, p-IRT. `paper`: joint MAP 2PL with d of {2, 5, 10, 15} by held-out
  likelihood, D-optimal choice from θ = 0 with prior N(0, I), p-IRT.
- `oracle`: the true item parameters, pass-rate-targeted, posterior predictive. `floor`: the true probabilities of the
  run itself, the most uncertain items executed: what remains is coin tossing.
- `auto`: the plan that the back-test on the history chose.
Others are BANK/POLICY/ESTIMATOR, with the bank "map" or "vb" (variational).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from benchmarks.adaptive.designs import Clusters, evidence_on, expected_random_error, random_orders
from benchmarks.adaptive.folds import Fold
from benchmarks.adaptive.scores import Scores, bounds_of
from harness.adaptive.bank import Bank
from harness.adaptive.calibration.calibrate import CalibrationSettings, calibrate
from harness.adaptive.estimators.gp_irt import GpIrt
from harness.adaptive.estimators.gp_irt_history import gp_irt_from
from harness.adaptive.estimators.p_irt import PIrt
from harness.adaptive.estimators.posterior_predictive import PosteriorPredictive
from harness.adaptive.estimators.protocol import Estimator, Moments
from harness.adaptive.estimators.sample_mean import SampleMean
from harness.adaptive.estimators.stratified import WEIGHTED
from harness.adaptive.evidence import Evidence
from harness.adaptive.planning.trajectories import Study, run_study
from harness.adaptive.policies import DOptimal, PassRate, Policy, RaschFisher
from harness.adaptive.strata import by_median, difficulty, strata_of

PAPER_DIMS = (2, 5, 10, 15)
RASCH = CalibrationSettings(dims="rasch", method="map", average=False)


class Workshop:
    """A fold with the banks calibrated on its history, each made once, when asked for."""

    def __init__(self, fold: Fold) -> None:
        self.fold = fold

    @cached_property
    def vb(self) -> Bank:
        """Variational, d chosen: what `assay calibrate` makes."""
        return calibrate(self.fold.history).bank

    @cached_property
    def map(self) -> Bank:
        """Joint MAP, d chosen, the prior of θ learnt."""
        return calibrate(self.fold.history, CalibrationSettings(method="map", average=False)).bank

    @cached_property
    def rasch(self) -> Bank:
        """Rasch by MAP."""
        return calibrate(self.fold.history, RASCH).bank

    @cached_property
    def paper(self) -> Bank:
        """As published: joint MAP 2PL, the d of best held-out likelihood, θ ~ N(0, I)."""
        return _as_published(calibrate(self.fold.history, paper_settings(self.fold)).bank)

    @cached_property
    def rasch_gp_irt(self) -> GpIrt:
        """gp-IRT's constants with the Rasch model."""
        return gp_irt_from(self.fold.history, RASCH)

    @cached_property
    def paper_gp_irt(self) -> GpIrt:
        """gp-IRT's constants with the 2PL model of the paper's d."""
        return gp_irt_from(self.fold.history, replace(RASCH, dims=self.paper.d))

    def bank(self, name: str) -> Bank:
        """ "vb", "map", "rasch", "paper" or "oracle"."""
        found = self.fold.oracle if name == "oracle" else getattr(self, name)
        assert isinstance(found, Bank), f"this fold has no bank {name!r}"
        return found


def paper_settings(fold: Fold) -> CalibrationSettings:
    """MAP with the d of {2, 5, 10, 15} whose held-out likelihood is best; 2 where the history allows no other."""
    allowed = tuple(d for d in PAPER_DIMS if d <= len(fold.history.run_ids) // 4) or (PAPER_DIMS[0],)
    if len(allowed) == 1:
        return CalibrationSettings(dims=allowed[0], method="map", average=False, min_runs_2pl=2)
    # A hundredth of a posterior standard deviation is nearer than an error of 0.01 points can tell.
    rough = CalibrationSettings(method="map", average=False, tolerance=1e-2)
    search = replace(rough, dims="auto", candidates=allowed)
    scores = calibrate(fold.history, search).bank.provenance.dimension_scores
    best = max(scores, key=lambda name: scores[name])
    return replace(rough, dims=int(best))


def _as_published(bank: Bank) -> Bank:
    return replace(bank, prior_mean=np.zeros(bank.d), prior_covariance=np.eye(bank.d))


@dataclass(frozen=True, eq=False)
class Arm:
    """An adaptive method: `bank` by name, a policy, estimators with the label each result gets."""

    bank: str
    policy: Policy
    estimators: tuple[tuple[str, Estimator], ...]
    in_flight: int = 1

    def run(self, workshop: Workshop, checkpoints: Sequence[int]) -> dict[str, Scores]:
        """One trajectory per test run; every estimator reads the same ones."""
        fold = workshop.fold
        estimators = tuple(estimator for _, estimator in self.estimators)
        study = Study(self.policy, estimators, tuple(checkpoints), fold.seeds, self.in_flight)
        found = run_study(workshop.bank(self.bank), fold.tested.passes, fold.tested.trials, study)
        bounds = [bounds_on(fold, found.items[:, :k]) for k in checkpoints]
        result = {}
        for label, estimator in self.estimators:
            moments = found.moments[estimator.name]
            columns = [Moments(moments.value[:, at], moments.standard_error[:, at]) for at in range(len(checkpoints))]
            result[label] = Scores.of(columns, bounds, fold.truth)
        return result


def bounds_on(fold: Fold, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The least and largest rate that the outcomes of `items` (A, k) allow; −1 is no item."""
    rows, some = np.arange(len(items))[:, None], items >= 0
    trials = fold.tested.trials[rows, items] * some
    rates = np.divide(fold.tested.passes[rows, items], trials, out=np.zeros(trials.shape), where=trials > 0)
    n = (fold.tested.trials > 0).sum(axis=1)
    score, executed = rates.sum(axis=1), (trials > 0).sum(axis=1)
    return score / n, (score + n - executed) / n


Method = Callable[[Workshop, Sequence[int]], dict[str, Scores]]


def arm(bank: str, policy: Policy, *estimators: Estimator, label: str = "", in_flight: int = 1) -> Method:
    """The method of an `Arm`; labels are BANK/POLICY/ESTIMATOR unless one is given."""
    named = tuple((label or f"{bank}/{policy.name}/{estimator.name}", estimator) for estimator in estimators)
    return Arm(bank, policy, named, in_flight).run


def random_sampling(workshop: Workshop, checkpoints: Sequence[int]) -> dict[str, Scores]:
    """Its exact expected error; value and interval of one draw per run."""
    fold = workshop.fold
    orders = random_orders(fold.tested, fold.seeds)
    bank = workshop.rasch
    seen = [evidence_on(bank, fold.tested, orders[:, :k], random=True) for k in checkpoints]
    scores = Scores.of([SampleMean().moments(one) for one in seen], [bounds_of(one) for one in seen], fold.truth)
    return {"random": replace(scores, error=expected_random_error(fold.tested, checkpoints))}


def random_items(bank: str, *estimators: Estimator) -> Method:
    """Random choice with model-assisted estimators."""

    def run(workshop: Workshop, checkpoints: Sequence[int]) -> dict[str, Scores]:
        fold = workshop.fold
        orders = random_orders(fold.tested, fold.seeds)
        seen = [evidence_on(workshop.bank(bank), fold.tested, orders[:, :k], random=True) for k in checkpoints]
        return {f"{bank}/random/{one.name}": _scores(one, seen, fold) for one in estimators}

    return run


def strata(workshop: Workshop, checkpoints: Sequence[int]) -> dict[str, Scores]:
    """Difficulty strata by Rasch β, both estimators."""
    fold, bank = workshop.fold, workshop.rasch
    hardness = difficulty(bank)
    seen = []
    for k in checkpoints:
        groups = strata_of(hardness, k)
        chosen = np.flatnonzero(by_median(hardness, groups) == 0)
        seen.append(_subset(bank, fold, chosen))
    return {
        "strata": _scores(WEIGHTED, seen, fold),
        "strata gp-IRT": _scores(workshop.rasch_gp_irt, seen, fold),
    }


def k_means(workshop: Workshop, checkpoints: Sequence[int]) -> dict[str, Scores]:
    """Both clusterings of the source, both estimators, with the 2PL model."""
    fold, bank = workshop.fold, workshop.paper
    trials = fold.history.trials
    rate = np.divide(fold.history.passes, trials, out=np.full(trials.shape, np.nan), where=trials > 0)
    responses = np.where(np.isnan(rate), np.nanmean(rate, axis=0, keepdims=True), rate).T
    found = {}
    for name, features in (("responses", responses), ("features", np.column_stack([bank.alpha, bank.beta]))):
        weighted, mixed = [], []
        for k in checkpoints:
            clusters = Clusters.of(np.nan_to_num(features), k)
            seen = _subset(bank, fold, clusters.items)
            weighted.append((clusters.moments(seen), bounds_of(seen)))
            mixed.append((replace(workshop.paper_gp_irt, weighted=clusters).moments(seen), bounds_of(seen)))
        found[f"{name} K-means"] = _of_pairs(weighted, fold)
        found[f"{name} K-means gp-IRT"] = _of_pairs(mixed, fold)
    return found


def floor(workshop: Workshop, checkpoints: Sequence[int]) -> dict[str, Scores]:
    """The true probabilities of each run, the items nearest to a coin executed."""
    fold = workshop.fold
    assert fold.probability is not None
    p = fold.probability
    order = np.argsort(-p * (1.0 - p), axis=1, kind="stable")
    left = np.take_along_axis(fold.tested.passes - p, order, axis=1)
    error = np.stack([left[:, k:].sum(axis=1) for k in checkpoints], axis=1) / p.shape[1]
    nothing = np.full(error.shape, np.nan)
    return {"floor": Scores(fold.truth[:, None] - error, nothing, nothing, np.abs(error), fold.truth)}


def rasch(workshop: Workshop, checkpoints: Sequence[int]) -> dict[str, Scores]:
    """Rasch testing as the source has it."""
    return arm("rasch", RaschFisher(), PIrt(), label="rasch")(workshop, checkpoints)


def paper(workshop: Workshop, checkpoints: Sequence[int]) -> dict[str, Scores]:
    """The source's best method."""
    return arm("paper", DOptimal(), PIrt(), label="paper")(workshop, checkpoints)


def oracle(workshop: Workshop, checkpoints: Sequence[int]) -> dict[str, Scores]:
    """What knowing the items would give."""
    return arm("oracle", PassRate(), PosteriorPredictive(), label="oracle")(workshop, checkpoints)


def evaluate(fold: Fold, methods: Iterable[Method], checkpoints: Sequence[int]) -> dict[str, Scores]:
    """Every method on one fold."""
    workshop = Workshop(fold)
    found: dict[str, Scores] = {}
    for method in methods:
        found.update(method(workshop, checkpoints))
    return found


def has_part(module: str) -> bool:
    """Whether a part of the engine is there."""
    return importlib.util.find_spec(module) is not None


def _subset(bank: Bank, fold: Fold, items: np.ndarray) -> Evidence:
    return evidence_on(bank, fold.tested, np.tile(items, (len(fold.tested.run_ids), 1)), random=False)


def _scores(estimator: Estimator, seen: Sequence[Evidence], fold: Fold) -> Scores:
    return _of_pairs([(estimator.moments(one), bounds_of(one)) for one in seen], fold)


def _of_pairs(pairs: Sequence[tuple[Moments, tuple[np.ndarray, np.ndarray]]], fold: Fold) -> Scores:
    return Scores.of([moments for moments, _ in pairs], [bounds for _, bounds in pairs], fold.truth)
