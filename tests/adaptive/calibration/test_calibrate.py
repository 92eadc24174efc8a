"""Calibration: the gradient, recovery, missing cells, columns and runs that say nothing, orientation, determinism."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime

from harness.adaptive import (
    AdaptiveEngine,
    Bank,
    CalibrationSettings,
    EngineSettings,
    Priors,
    Responses,
    calibrate,
    simulate_population,
)
from harness.adaptive.calibration.cells import Counts
from harness.adaptive.calibration.items import ALL_FAILED, ALL_PASSED, EMPTY, REVERSED, SINGLE
from harness.adaptive.calibration.likelihood import Objective, Parameters
from harness.adaptive.calibration.model_choice import simplest_within_one_error
from harness.adaptive.calibration.orientation import canonical_axes
from harness.adaptive.calibration.start import starting_point
from harness.adaptive.errors import CalibrationError, ResponsesError, UnconvergedBankError

ITEMS_60 = [f"item-{index}" for index in range(60)]


def table(passes: np.ndarray, trials: np.ndarray | None = None) -> Responses:
    runs, items = passes.shape
    return Responses(
        tuple(f"run-{r}" for r in range(runs)),
        tuple(f"item-{i}" for i in range(items)),
        passes,
        np.ones_like(passes) if trials is None else trials,
    )


def spreads(bank: Bank) -> np.ndarray:
    """Standard deviation of each item's difficulty."""
    assert bank.item_covariance is not None
    return np.sqrt(bank.item_covariance[:, -1, -1])


@st.composite
def objectives(draw: st.DrawFn) -> tuple[Objective, np.ndarray]:
    runs, items = draw(st.integers(1, 6)), draw(st.integers(1, 7))
    rasch = draw(st.booleans())
    d = 1 if rasch else draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    trials = rng.integers(0, 4, (runs, items)).astype(float)
    passes = np.floor(trials * rng.random((runs, items)) + 0.5)
    cells = Counts.dense(passes, trials).cells() if draw(st.booleans()) else Counts.dense(passes, trials).sparse_cells()
    objective = Objective(cells, d, rasch, Priors(0.4, 0.7, 1.5), rng.normal())
    theta, item = starting_point(cells, d)
    start = objective.pack(Parameters(theta, item[:, :d], item[:, d]))
    at = start + 0.7 * rng.normal(size=start.size)
    return objective, at


@given(objectives())
@settings(max_examples=60, deadline=None)
def test_gradient_equals_finite_differences(case: tuple[Objective, np.ndarray]) -> None:
    objective, at = case
    _, gradient = objective.value_and_gradient(at)
    numeric = approx_fprime(at, lambda x: objective.value_and_gradient(x)[0], 1e-7)
    np.testing.assert_allclose(gradient, numeric, rtol=2e-4, atol=2e-4)


@given(objectives())
@settings(max_examples=40, deadline=None)
def test_packing_round_trips(case: tuple[Objective, np.ndarray]) -> None:
    objective, at = case
    np.testing.assert_allclose(objective.pack(objective.unpack(at)), at, atol=1e-12)


def test_parameters_are_recovered_in_one_dimension() -> None:
    truth = simulate_population(3, 250, ITEMS_60, d=1)
    fit = calibrate(truth.responses(), CalibrationSettings(dims=1))
    # θ ~ N(0, I) sets the scale, so slopes are comparable up to the sample's own spread of θ.
    scale, shift = truth.theta.std(), truth.theta.mean()
    slope = truth.alpha[:, 0] * scale
    fitted_scale, fitted_shift = fit.theta.std(), fit.theta.mean()
    assert np.sqrt(np.mean((fit.bank.alpha[:, 0] * fitted_scale - slope) ** 2)) < 0.25
    difficulty = truth.beta - truth.alpha[:, 0] * shift
    fitted = fit.bank.beta - fit.bank.alpha[:, 0] * fitted_shift
    assert np.sqrt(np.mean((fitted - difficulty) ** 2)) < 0.25
    assert np.corrcoef(fit.theta[:, 0], truth.theta[:, 0])[0, 1] > 0.95


def test_several_dimensions_predict_better_than_one_where_there_are_several() -> None:
    truth = simulate_population(5, 200, [f"item-{i}" for i in range(200)], d=3)
    fit = calibrate(truth.responses(), CalibrationSettings(average=False, report=False))
    scores = fit.bank.provenance.dimension_scores
    assert set(scores) == {"rasch", "1", "2", "3", "5"}
    assert fit.bank.d in {2, 3, 5}
    assert scores[str(fit.bank.d)] > max(scores["rasch"], scores["1"])
    exact = np.array([truth.probability(agent) for agent in range(200)])
    error = np.abs(fit.bank.probability(fit.theta) - exact).mean()
    one = calibrate(truth.responses(), CalibrationSettings(dims=1))
    assert error < 0.8 * np.abs(one.bank.probability(one.theta) - exact).mean()


def test_a_richer_model_must_win_by_more_than_one_standard_error() -> None:
    simple, rich = np.array([-10.0, -12.0, -9.0, -11.0]), np.array([-10.0, -9.0, -12.0, -10.0])
    assert rich.sum() > simple.sum()
    assert simplest_within_one_error([simple, rich]) == 0
    assert simplest_within_one_error([simple, rich + 5]) == 1
    assert simplest_within_one_error([simple, rich + 5, rich + 4]) == 1
    assert simplest_within_one_error([simple[:1], rich[:1] + 50]) == 0


def test_missing_cells_are_not_failures() -> None:
    """CASES S09: 30 % missing recovers the parameters, 30 % set to zero does not."""
    truth = simulate_population(11, 250, ITEMS_60, d=1)
    whole, holed = truth.responses(), truth.responses(missing=0.3)
    assert 0.25 < 1 - holed.trials.mean() < 0.35
    zeroed = table(np.array(holed.passes), np.ones_like(holed.trials))
    chosen = CalibrationSettings(dims=1)
    reference = calibrate(whole, chosen).bank.beta
    assert np.abs(calibrate(holed, chosen).bank.beta - reference).mean() < 0.2
    assert np.abs(calibrate(zeroed, chosen).bank.beta - reference).mean() > 0.5


def test_few_outcomes_give_wide_item_covariance() -> None:
    """CASES S09: an item seen by few runs keeps nearly its prior spread."""
    truth = simulate_population(11, 120, ITEMS_60, d=1)
    trials = np.ones((120, 60))
    trials[5:, 0] = 0
    passes = np.array(truth.responses().passes) * trials
    passes[:5, 0] = [1, 0, 1, 0, 1]
    covariance = calibrate(table(passes, trials), CalibrationSettings(dims=1)).bank.item_covariance
    assert covariance is not None
    spread = np.sqrt(covariance[:, 1, 1])
    assert spread[0] > 2.5 * np.median(spread)


def test_from_cells_keeps_a_missing_grade_apart_from_a_failure() -> None:
    history = Responses.from_cells(
        [("a", "x", True), ("a", "y", None), ("b", "x", False), ("a", "x", False)], dates={"a": "2026-01-02"}
    )
    assert history.run_ids == ("a", "b")
    assert history.item_ids == ("x", "y")
    assert history.trials.tolist() == [[2, 0], [1, 0]]
    assert history.passes.tolist() == [[1, 0], [0, 0]]
    assert history.dates == ("2026-01-02", "")
    with pytest.raises(ResponsesError, match="not listed"):
        Responses.from_cells([("a", "x", True)], item_ids=["y"])


def test_columns_that_say_nothing_are_held_out_with_a_reason() -> None:
    """CASES S06."""
    rng = np.random.default_rng(4)
    passes, trials = (rng.random((20, 10)) < 0.5).astype(float), np.ones((20, 10))
    passes[:, 2], passes[:, 3] = 1, 0
    trials[:, 4] = passes[:, 4] = 0
    trials[1:, 5] = passes[1:, 5] = 0
    fit = calibrate(table(passes, trials), CalibrationSettings(dims=1, method="map"))
    provenance = fit.bank.provenance
    assert provenance.convergence.converged
    assert provenance.held_out == {
        "item-2": ALL_PASSED,
        "item-3": ALL_FAILED,
        "item-4": EMPTY,
        "item-5": SINGLE,
    }
    assert np.flatnonzero(~fit.bank.calibrated).tolist() == [2, 3, 4, 5]
    p = fit.bank.probability(fit.theta).mean(axis=0)
    assert p[2] > 0.85
    assert p[3] < 0.15
    fit = calibrate(table(passes, trials), CalibrationSettings(dims=1, report=False))
    assert fit.bank.provenance.held_out == {"item-4": EMPTY, "item-5": SINGLE}
    assert {item: fit.bank.provenance.flagged.get(item) for item in ("item-2", "item-3")} == {
        "item-2": ALL_PASSED,
        "item-3": ALL_FAILED,
    }
    p, spread = fit.bank.probability(fit.theta).mean(axis=0), spreads(fit.bank)
    assert p[2] > 0.85
    assert p[3] < 0.15
    # Wider than an item with both outcomes, narrower than one never seen, which has the learnt prior.
    assert spread[[0, 1, 6, 7, 8, 9]].max() < min(spread[2], spread[3]) < max(spread[2], spread[3]) < spread[4]


def test_perfect_runs_and_holes_converge_and_a_cut_fit_says_so_and_is_refused() -> None:
    """CASES S07."""
    rng = np.random.default_rng(7)
    passes, trials = (rng.random((5, 30)) < 0.5).astype(float), np.ones((5, 30))
    passes[:2] = 1
    holes = rng.random((5, 30)) < 0.3
    trials[holes] = passes[holes] = 0
    history = table(passes, trials)
    bank = calibrate(history).bank
    assert bank.provenance.convergence.converged
    assert bank.provenance.method == "rasch"
    assert "5 runs are too few" in bank.provenance.notes[0]
    for array in (bank.alpha, bank.beta, bank.prior_covariance, bank.item_covariance):
        assert np.isfinite(array).all()  # type: ignore[arg-type]
    cut = calibrate(history, CalibrationSettings(max_iterations=1)).bank
    assert not cut.provenance.convergence.converged
    assert cut.provenance.convergence.max_gradient > cut.provenance.convergence.tolerance
    with pytest.raises(UnconvergedBankError, match="more iterations"):
        AdaptiveEngine(cut)
    AdaptiveEngine(cut, EngineSettings(allow_unconverged=True))


def test_a_shared_seed_or_another_gives_one_order_of_runs_with_positive_discriminations() -> None:
    """CASES S08."""
    truth = simulate_population(2, 80, ITEMS_60, d=2)
    history = truth.responses()
    fits = [calibrate(history, CalibrationSettings(dims=2, seed=seed, report=seed == 0)) for seed in range(3)]
    for fit in fits:
        assert (fit.bank.alpha[:, 0] > 0).all()
        assert fit.orientation > 0.5
        assert np.array_equal(np.argsort(fit.theta[:, 0]), np.argsort(fits[0].theta[:, 0]))


def test_an_item_with_reversed_keys_is_flagged_and_only_a_variational_bank_gives_it_a_negative_slope() -> None:
    """CASES S08."""
    passes = np.array(simulate_population(2, 120, ITEMS_60, d=1).responses().passes)
    passes[:, 7] = 1 - passes[:, 7]
    bank = calibrate(table(passes), CalibrationSettings(dims=1, method="map")).bank
    assert bank.provenance.flagged == {"item-7": REVERSED}
    assert 0 < bank.alpha[7, 0] < 0.5
    bank = calibrate(table(passes), CalibrationSettings(dims=1)).bank
    assert bank.provenance.flagged == {"item-7": REVERSED}
    assert bank.alpha[7, 0] < 0


@given(st.integers(0, 2**31), st.integers(2, 5))
@settings(max_examples=30, deadline=None)
def test_canonical_axes_undo_any_rotation_and_change_no_probability(seed: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    theta, alpha = rng.normal(size=(12, d)), np.abs(rng.normal(size=(9, d)))
    raw = rng.random(12)
    rotation, _ = np.linalg.qr(rng.normal(size=(d - 1, d - 1)))
    turned = Parameters(
        np.column_stack([theta[:, 0], theta[:, 1:] @ rotation]),
        np.column_stack([alpha[:, 0], alpha[:, 1:] @ rotation]),
        np.zeros(9),
    )
    one = canonical_axes(Parameters(theta, alpha, np.zeros(9)), raw)
    other = canonical_axes(turned, raw)
    np.testing.assert_allclose(one.alpha, other.alpha, atol=1e-8)
    np.testing.assert_allclose(one.theta, other.theta, atol=1e-8)
    np.testing.assert_allclose(one.theta @ one.alpha.T, theta @ alpha.T, atol=1e-9)
    assert all(np.cov(one.theta[:, j], raw)[0, 1] >= 0 for j in range(1, d))


@pytest.mark.parametrize("runs", [0, 1, 2, 5, 8, 20])
def test_any_number_of_runs_gives_a_finite_bank_that_says_what_it_is(runs: int) -> None:
    history = simulate_population(1, max(runs, 1), ITEMS_60, d=2).responses(range(runs))
    fit = calibrate(history)
    provenance = fit.bank.provenance
    assert provenance.n_runs == runs
    assert provenance.method == ("prior" if runs == 0 else provenance.method)
    if runs < 8:
        assert provenance.method in {"prior", "rasch"}
        assert provenance.notes
    assert np.isfinite(fit.bank.probability(fit.bank.prior_mean)).all()
    assert fit.theta.shape == (runs, fit.bank.d)
    assert provenance.convergence.converged


def test_calibration_is_deterministic_and_names_its_history() -> None:
    population = simulate_population(1, 40, ITEMS_60, d=2)
    cells = population.responses()
    dated = Responses(
        cells.run_ids, cells.item_ids, cells.passes, cells.trials, tuple(f"2026-01-{1 + r % 28:02}" for r in range(40))
    )
    quick = CalibrationSettings(max_iterations=40)
    one, two = calibrate(dated, quick), calibrate(dated, quick)
    assert one.bank.digest == two.bank.digest
    assert one.bank.provenance.history_sha256 == dated.sha256 != cells.sha256
    assert (one.bank.provenance.first_date, one.bank.provenance.last_date) == ("2026-01-01", "2026-01-28")


def test_a_run_without_outcomes_is_left_out_and_noted() -> None:
    history = simulate_population(1, 12, ITEMS_60, d=1).responses()
    passes, trials = np.array(history.passes), np.array(history.trials)
    passes[3] = trials[3] = 0
    fit = calibrate(table(passes, trials), CalibrationSettings(dims=1))
    assert "run-3" not in fit.run_ids
    assert len(fit.run_ids) == len(fit.theta) == fit.bank.provenance.n_runs == 11
    assert "1 runs without" in fit.bank.provenance.notes[0]


def test_counts_weigh_as_that_many_trials() -> None:
    history = simulate_population(1, 30, ITEMS_60, d=1).responses()
    twice = table(np.array(history.passes) * 2, np.array(history.trials) * 2)
    doubled = Responses(tuple(f"run-{r}" for r in range(30)), twice.item_ids, history.passes * 2, history.trials * 2)
    settings_1d = CalibrationSettings(dims=1)
    assert np.array_equal(calibrate(twice, settings_1d).bank.beta, calibrate(doubled, settings_1d).bank.beta)
    single, double = calibrate(history, settings_1d).bank, calibrate(twice, settings_1d).bank
    assert single.item_covariance is not None
    assert double.item_covariance is not None
    assert (double.item_covariance[:, 1, 1] < single.item_covariance[:, 1, 1]).all()


@pytest.mark.parametrize(
    ("passes", "trials", "message"),
    [
        ([[2.0]], [[1.0]], "more passes than trials"),
        ([[-1.0]], [[1.0]], "not negative"),
        ([[float("nan")]], [[1.0]], "not NaN"),
        ([[0.5]], [[1.0]], "whole"),
        ([[1.0, 0.0]], [[1.0, 1.0]], "one row per run"),
    ],
)
def test_impossible_responses_are_refused_with_a_remedy(
    passes: list[list[float]], trials: list[list[float]], message: str
) -> None:
    with pytest.raises(ResponsesError, match=message) as caught:
        Responses(("r",), ("i",), np.array(passes), np.array(trials))
    assert caught.value.place
    assert caught.value.remedy


def test_impossible_settings_are_refused() -> None:
    with pytest.raises(CalibrationError, match="d ≥ 1"):
        CalibrationSettings(dims=0)
    with pytest.raises(CalibrationError, match="standard deviation"):
        Priors(difficulty_sd=0)
    with pytest.raises(ResponsesError, match="twice"):
        Responses(("r", "r"), ("i",), np.zeros((2, 1)), np.zeros((2, 1)))
    few = simulate_population(1, 12, ITEMS_60).responses()
    with pytest.raises(CalibrationError, match="quarter"):
        calibrate(few, CalibrationSettings(candidates=(5,)))


@pytest.mark.parametrize("method", ["variational", "map"])
@pytest.mark.parametrize("dims", ["rasch", 1, 2])
def test_a_warm_start_reaches_the_same_bank_sooner(method: str, dims: int | str) -> None:
    rng = np.random.default_rng(3)
    theta, second = rng.normal(size=(90, 2)), np.where(np.arange(60) % 2, 1.2, -1.2)
    logits = theta[:, :1] * 1.2 + theta[:, 1:] * second - rng.normal(size=60)
    passes = (rng.random((90, 60)) < 1 / (1 + np.exp(-logits))).astype(float)
    chosen = CalibrationSettings(dims=dims, method=method, report=False)  # type: ignore[arg-type]
    for own in (replace(chosen, kinds=1), chosen):
        before, cold = calibrate(table(passes[:80]), own), calibrate(table(passes), own)
        for start in (before, before.bank):
            warm = calibrate(table(passes), own, start)
            assert warm.bank.provenance.convergence.converged
            np.testing.assert_allclose(warm.bank.probability(warm.theta), cold.bank.probability(cold.theta), atol=0.02)
            if method == "variational" and own.kinds == 1:  # several start from where one led
                few = replace(own, max_iterations=5)
                nearer, farther = calibrate(table(passes), few, start), calibrate(table(passes), few)
                left = [one.bank.provenance.convergence.max_gradient for one in (nearer, farther)]
                assert left[0] < 0.5 * left[1]
    auto = CalibrationSettings(method=method, report=False)  # type: ignore[arg-type]
    kept = calibrate(table(passes), auto, before.bank).bank
    assert (kept.d, kept.provenance.method) == (before.bank.d, before.bank.provenance.method)


def test_a_start_with_other_items_and_runs_is_used_where_it_knows() -> None:
    population = simulate_population(8, 60, ITEMS_60, d=1)
    before = calibrate(population.responses(range(40)), CalibrationSettings(dims=1))
    history = population.responses(range(20, 60))
    renamed = Responses(
        history.run_ids, (*ITEMS_60[:50], *(f"new-{i}" for i in range(10))), history.passes, history.trials
    )
    chosen = CalibrationSettings(dims=1, report=False)
    warm, cold = calibrate(renamed, chosen, before), calibrate(renamed, chosen)
    np.testing.assert_allclose(warm.bank.beta, cold.bank.beta, atol=0.03)
