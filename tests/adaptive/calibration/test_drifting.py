"""Items whose difficulties move: the fit, the choice of how far, and what a bank says of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest

from harness.adaptive import CalibrationSettings, Responses, calibrate
from harness.adaptive.arrays import sigmoid
from harness.adaptive.calibration.candidate import fit_candidate
from harness.adaptive.calibration.cells import Counts
from harness.adaptive.calibration.drift_choice import most_periods
from harness.adaptive.calibration.drifting import DriftingSettings, fit_drifting
from harness.adaptive.calibration.learning import Hyperprior
from harness.adaptive.calibration.timeline import timeline_of
from harness.adaptive.errors import CalibrationError

QUICK = CalibrationSettings(candidates=("rasch", 1, 2), average=False, report=False)
DAYS = 40


def history(walk: float, runs: int = 160, items: int = 60, missing: float = 0.0) -> tuple[Responses, np.ndarray]:
    """One ability; difficulties that walk by `walk` logits (sd) in 40 days, and what they are on the last day."""
    rng = np.random.default_rng(11)
    day = np.sort(rng.integers(0, DAYS, size=runs))
    day[-1] = DAYS - 1
    theta, alpha = rng.normal(size=runs), np.exp(rng.normal(0.0, 0.2, size=items))
    steps = rng.normal(0.0, walk / np.sqrt(DAYS), size=(DAYS, items))
    beta = rng.normal(size=items) + np.cumsum(steps, axis=0)
    passed = rng.random((runs, items)) < sigmoid(theta[:, None] * alpha - beta[day])
    trials = (rng.random((runs, items)) >= missing).astype(np.float64)
    dates = tuple((date(2026, 3, 1) + timedelta(days=int(d))).isoformat() for d in day)
    names = tuple(f"r{r}" for r in range(runs)), tuple(f"i{i}" for i in range(items))
    return Responses(*names, passed * trials, trials, dates), beta[-1]


def error(found: np.ndarray, truth: np.ndarray) -> float:
    """Root mean square, a common shift aside."""
    off = found - truth
    return float(np.sqrt(((off - off.mean()) ** 2).mean()))


@pytest.mark.parametrize("dims", ["rasch", 1, 2])
def test_a_walk_of_nothing_is_the_fit_that_holds_items(dims: int | str) -> None:
    past, _ = history(0.0, runs=60, items=30)
    counts = Counts.dense(past.passes, past.trials)
    timeline = timeline_of(past.dates, 5)
    assert timeline is not None
    still = fit_candidate(counts, dims, replace(QUICK, kinds=1, tolerance=1e-4))  # type: ignore[arg-type]
    how = DriftingSettings(Hyperprior(0.4).for_runs(60), 200, 1e-4)
    found = fit_drifting(counts, timeline, 1e-12, still, how)
    assert found.convergence.converged
    for t in range(5):
        np.testing.assert_allclose(found.items[t], still.posterior.item, atol=2e-3)
        np.testing.assert_allclose(found.covariances[t], still.posterior.item_covariance, atol=2e-3)
    np.testing.assert_allclose(found.posterior.theta, still.posterior.theta, atol=2e-3)


def test_auto_finds_how_far_items_moved_and_where_they_are() -> None:
    past, now = history(2.0)
    held = calibrate(past, QUICK).bank
    bank = calibrate(past, replace(QUICK, drift="auto")).bank
    in_thirty_days = 2.0 * np.sqrt(30 / DAYS)
    assert 0.6 * in_thirty_days < bank.provenance.drift_sd < 1.6 * in_thirty_days
    assert error(bank.beta, now) < 0.75 * error(held.beta, now)
    assert any("difficulties move by" in note and past.dates[-1] in note for note in bank.provenance.notes)
    assert bank.item_covariance is not None
    off = (bank.beta - now - (bank.beta - now).mean()) / np.sqrt(bank.item_covariance[:, -1, -1])
    assert 0.8 < float(np.sqrt((off**2).mean())) < 1.3  # as uncertain as it says


def test_auto_on_items_that_hold_is_the_ordinary_bank() -> None:
    past, _ = history(0.0)
    held, asked = calibrate(past, QUICK).bank, calibrate(past, replace(QUICK, drift="auto")).bank
    assert asked.provenance.drift_sd == 0.0
    assert any("held still" in note for note in asked.provenance.notes)
    np.testing.assert_array_equal(asked.beta, held.beta)
    np.testing.assert_array_equal(asked.alpha, held.alpha)


def test_a_given_walk_is_taken() -> None:
    past, now = history(2.0)
    given = calibrate(past, replace(QUICK, dims=1, drift=1.7)).bank
    assert given.provenance.drift_sd == 1.7
    assert error(given.beta, now) < 0.75 * error(calibrate(past, replace(QUICK, dims=1)).bank.beta, now)
    again = calibrate(past, replace(QUICK, dims=1, drift=1.7), start=given).bank
    np.testing.assert_allclose(again.beta, given.beta, atol=0.1)


def test_a_walk_that_predicts_worse_says_so() -> None:
    past, _ = history(0.0)
    (note,) = [
        n for n in calibrate(past, replace(QUICK, dims=1, drift=50.0, report=True)).bank.provenance.notes if "nats" in n
    ]
    assert "hidden outcomes worse by" in note
    assert "by -" not in note


def test_rasch_items_move_and_stay_alike() -> None:
    past, now = history(2.0)
    bank = calibrate(past, replace(QUICK, dims="rasch", drift="auto")).bank
    assert bank.provenance.drift_sd > 0
    assert np.ptp(bank.alpha) < 1e-12
    assert error(bank.beta, now) < 0.75 * error(calibrate(past, replace(QUICK, dims="rasch")).bank.beta, now)


def test_sparse_and_dense_predict_alike() -> None:
    past, _ = history(1.0, missing=0.5)
    counts = Counts.dense(past.passes, past.trials)
    timeline = timeline_of(past.dates, 4)
    assert timeline is not None
    still = fit_candidate(counts, 2, replace(QUICK, kinds=1))
    found = fit_drifting(counts, timeline, 0.02, still, DriftingSettings(Hyperprior(), 40, 0.05))
    dense = np.concatenate([found.probability(block) for block in counts.cells().blocks])
    sparse = np.concatenate([found.probability(block) for block in counts.sparse_cells().blocks])
    np.testing.assert_allclose(sparse, dense[counts.runs, counts.items], atol=1e-12)
    # The averaged probability of one cell by its definition.
    r, i = int(counts.runs[7]), int(counts.items[7])
    x, t = np.append(found.posterior.theta[r], -1.0), timeline.period[r]
    mean, spread = found.items[t, i], found.covariances[t, i]
    of_run = np.zeros((3, 3))
    of_run[:2, :2] = found.posterior.theta_covariance[r]
    variance = np.sum((np.outer(mean, mean) + spread) * (np.outer(x, x) + of_run)) - (mean @ x) ** 2
    assert sparse[7] == pytest.approx(float(sigmoid(np.array(mean @ x / np.sqrt(1 + np.pi * variance / 8)))))


def test_what_cannot_be_asked_is_refused_or_said() -> None:
    past, _ = history(1.0, runs=40, items=20)
    undated = Responses(past.run_ids, past.item_ids, past.passes, past.trials)
    with pytest.raises(CalibrationError, match="date"):
        calibrate(undated, replace(QUICK, drift=1.0))
    bank = calibrate(undated, replace(QUICK, drift="auto")).bank
    assert any("drift was not asked" in note for note in bank.provenance.notes)
    np.testing.assert_array_equal(bank.beta, calibrate(undated, QUICK).bank.beta)
    with pytest.raises(CalibrationError, match="variational"):
        CalibrationSettings(method="map", drift="auto")
    with pytest.raises(CalibrationError, match="30 days"):
        CalibrationSettings(drift=-1.0)
    with pytest.raises(CalibrationError, match="30 days"):
        CalibrationSettings(drift="Auto")  # type: ignore[arg-type]


def test_periods_are_of_equal_length_and_end_with_the_latest_run() -> None:
    dates = ["2026-01-01", "2026-01-21", "2026-01-11", "2026-01-20T12:00:00+00:00", "2026-01-16"]
    found = timeline_of(dates, 4)
    assert found is not None
    np.testing.assert_array_equal(found.period, [0, 3, 1, 3, 2])
    np.testing.assert_allclose(found.times - found.times[0], [0.0, 10.0, 15.0, 19.75])
    np.testing.assert_allclose(found.gaps, [10.0, 5.0, 4.75])
    assert found.span_days == 20.0
    assert found.ahead == pytest.approx(0.25 + 2.5)
    assert timeline_of(["2026-01-01"] * 3, 4) is None
    assert timeline_of(["2026-01-01", ""], 4) is None
    assert timeline_of([], 4) is None


def test_large_banks_get_fewer_periods() -> None:
    assert most_periods(519, 12) == 16
    assert most_periods(100_000, 3) == 2
