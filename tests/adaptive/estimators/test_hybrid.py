"""The default estimate: the model's where it is right, the drawn items' where it is not."""

from __future__ import annotations

import numpy as np
import pytest

from harness.adaptive import AbilityState, AdaptiveEngine, Choice, EngineSettings, PosteriorPredictive, TasksStop
from harness.adaptive.errors import EngineError
from harness.adaptive.estimators import estimate_of
from harness.adaptive.estimators.hybrid import MISFIT_PROBABILITY, MISFIT_SD, Hybrid, residual_shift
from harness.adaptive.estimators.posterior_predictive import averaged
from harness.adaptive.evidence import Evidence
from harness.adaptive.planning.trajectories import Study, Trajectories, run_study
from harness.adaptive.policies import Hedged, PassRate

from ..banks import random_bank

BANK = random_bank(3, n=300, d=2)


def mean_error(found: Trajectories, name: str) -> np.ndarray:
    return np.asarray(np.abs(found.errors(name)).mean(axis=0))


def trial_run(outcomes: np.ndarray, share: float) -> Trajectories:
    estimators = (PosteriorPredictive(), Hybrid(0.02))
    study = Study(Hedged(PassRate(), share), estimators, (60, 120), tuple(range(len(outcomes))))
    return run_study(BANK, outcomes, np.ones(outcomes.shape), study)


def test_without_drawn_items_it_is_the_posterior_predictive_estimate() -> None:
    outcomes = (np.random.default_rng(1).random((5, 300)) < 0.5).astype(float)
    found = trial_run(outcomes, 0.0)
    np.testing.assert_array_equal(found.moments["hybrid"].value, found.moments["posterior_predictive"].value)
    wider = found.moments["hybrid"].standard_error / found.moments["posterior_predictive"].standard_error
    assert (wider > 1).all()


def test_a_right_model_loses_little_and_a_wrong_one_is_corrected() -> None:
    rng = np.random.default_rng(2)
    theta = rng.multivariate_normal(BANK.prior_mean, BANK.prior_covariance, 80)
    right = (rng.random((80, 300)) < BANK.probability(theta)).astype(float)
    found = trial_run(right, 0.25)
    assert (mean_error(found, "hybrid") < 1.1 * mean_error(found, "posterior_predictive")).all()
    # Half of the items, those the policy looks at last, are passed by nobody: no ability explains that.
    dull = np.argsort(np.linalg.norm(BANK.alpha, axis=1))[:150]
    wrong = right.copy()
    wrong[:, dull] = 0.0
    found = trial_run(wrong, 0.5)
    assert (mean_error(found, "hybrid") < np.array([0.8, 0.5]) * mean_error(found, "posterior_predictive")).all()


def test_the_shift_is_the_posterior_mean_of_two_normals() -> None:
    rng = np.random.default_rng(4)
    found = trial_run((rng.random((3, 300)) < 0.3).astype(float), 0.5)
    assert (found.moments["hybrid"].standard_error > 0).all()
    evidence = evidence_of(rng)
    _, q = averaged(evidence)
    shift = residual_shift(evidence, q, 0.02)
    drawn = evidence.random
    residual = (evidence.passes - q[evidence.items])[drawn]
    assert shift.mean == pytest.approx(residual.mean())
    typical = (q * (1 - q))[evidence.items][drawn].mean()
    n = int(drawn.sum())
    noise = max((float((residual**2).sum()) + 4 * typical) / (n + 4), typical) / n
    density = [
        p * np.exp(-0.5 * residual.mean() ** 2 / (sd**2 + noise)) / np.sqrt(sd**2 + noise)
        for p, sd in ((1 - MISFIT_PROBABILITY, 0.02), (MISFIT_PROBABILITY, MISFIT_SD))
    ]
    weight = np.array(density) / sum(density)
    share = np.array([0.02**2 / (0.02**2 + noise), MISFIT_SD**2 / (MISFIT_SD**2 + noise)])
    assert shift.expected == pytest.approx(float(weight @ share) * residual.mean())
    assert shift.misfit == pytest.approx(weight[1])
    second = float(weight @ (share * noise + share**2 * residual.mean() ** 2))
    assert shift.variance == pytest.approx(second - float(shift.expected) ** 2)


def evidence_of(rng: np.random.Generator) -> Evidence:
    settings = EngineSettings(policy=Hedged(PassRate(), 0.5), seed=3, stops=(TasksStop(40),))
    engine = AdaptiveEngine(BANK, settings)
    while isinstance(step := engine.next(), Choice):
        engine.observe(step.item, bool(rng.random() < 0.2))
    return engine.state.evidence


def test_nothing_executed_and_everything_executed() -> None:
    start = AbilityState.start(BANK)
    nothing = estimate_of(Hybrid(), start.evidence)
    assert 0 < nothing.lower < nothing.value < nothing.upper < 1
    small = random_bank(3, n=10, d=2)
    state = AbilityState.rebuild(small, [(i, i < 4) for i in range(10)])
    done = estimate_of(Hybrid(), state.evidence)
    assert (done.value, done.lower, done.upper, done.standard_error) == (0.4, 0.4, 0.4, 0.0)
    with pytest.raises(EngineError, match="at least 0"):
        Hybrid(-0.1)
