"""How much a run counts by its age."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from harness.adaptive import CalibrationSettings, Responses, calibrate, simulate_population
from harness.adaptive.calibration.recency import run_weights
from harness.adaptive.errors import CalibrationError

ITEMS = [f"item-{index}" for index in range(60)]


def test_a_half_life_halves_and_a_window_cuts() -> None:
    dates = ["2026-01-01", "2026-01-31", "", "2026-01-30T12:00:00+00:00"]
    np.testing.assert_allclose(run_weights(dates, 30.0, None), [0.5, 1.0, 1.0, 2.0 ** (-0.5 / 30)])
    np.testing.assert_array_equal(run_weights(dates, None, 7.0), [0.0, 1.0, 1.0, 1.0])
    np.testing.assert_array_equal(run_weights(dates, None, 30.0), [1.0, 1.0, 1.0, 1.0])
    np.testing.assert_array_equal(run_weights(["x"], None, None), [1.0])


def test_an_age_without_a_date_is_refused() -> None:
    with pytest.raises(CalibrationError, match="no run has a date"):
        run_weights(["", ""], 7.0, None)
    with pytest.raises(CalibrationError, match="not ISO"):
        run_weights(["yesterday"], 7.0, None)
    with pytest.raises(CalibrationError, match="days"):
        CalibrationSettings(window_days=0)


def drifted() -> tuple[Responses, np.ndarray]:
    """60 old runs, then 60 new ones for which the first ten items are harder by two logits."""
    population = simulate_population(4, 120, ITEMS, d=1)
    passes = np.array(population.responses().passes)
    new = np.arange(120) % 2 == 1
    logits = population.theta[:, :1] * population.alpha[:, 0] - population.beta - 2.0 * (np.arange(60) < 10)
    redrawn = (np.random.default_rng(0).random((120, 60)) < 1 / (1 + np.exp(-logits))).astype(float)
    passes[np.ix_(new, np.arange(10))] = redrawn[np.ix_(new, np.arange(10))]
    dates = tuple("2026-03-01" if late else "2026-01-01" for late in new)
    return Responses(
        tuple(f"r{r}" for r in range(120)), tuple(ITEMS), passes, np.ones((120, 60)), dates
    ), population.beta


@pytest.mark.parametrize("method", ["variational", "map"])
def test_recent_runs_say_how_hard_items_are_now(method: str) -> None:
    history, beta = drifted()
    one = CalibrationSettings(dims=1, method=method, report=False)  # type: ignore[arg-type]
    shifts = {}
    for name, extra in {"all": {}, "half": {"half_life_days": 14.0}, "window": {"window_days": 28.0}}.items():
        bank = calibrate(history, replace(one, **extra)).bank  # type: ignore[arg-type]
        off = bank.beta - beta
        shifts[name] = float(off[:10].mean() - off[10:].mean())
        if name == "window":
            assert bank.provenance.n_runs == bank.provenance.effective_runs == 60
            assert any("60 runs more than 28 days" in note for note in bank.provenance.notes)
        if name == "half":
            assert bank.provenance.effective_runs == pytest.approx(60 + 60 * 2 ** (-59 / 14))
    assert shifts["all"] < 1.4
    assert 1.5 < shifts["half"] < 2.5
    assert 1.5 < shifts["window"] < 2.5


def test_a_weight_is_that_many_trials() -> None:
    history = simulate_population(1, 30, ITEMS, d=1).responses()
    dates = tuple("2026-01-01" if r < 15 else "2026-01-11" for r in range(30))
    dated = Responses(history.run_ids, history.item_ids, history.passes * 2, history.trials * 2, dates)
    times = np.where(np.arange(30) < 15, 1.0, 2.0)[:, None]
    counted = Responses(history.run_ids, history.item_ids, history.passes * times, history.trials * times)
    weighted = calibrate(dated, CalibrationSettings(dims="rasch", half_life_days=10.0, report=False)).bank
    np.testing.assert_allclose(
        weighted.beta, calibrate(counted, CalibrationSettings(dims="rasch", report=False)).bank.beta, atol=1e-8
    )
