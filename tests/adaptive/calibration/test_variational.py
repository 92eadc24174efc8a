"""Variational calibration: its stationary point, its uncertainty, learnt priors, histories that would run away."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.adaptive import CalibrationSettings, Responses, calibrate, simulate_population
from harness.adaptive.calibration.cells import Counts
from harness.adaptive.calibration.item_prior import ItemPrior
from harness.adaptive.calibration.learning import Hyperprior
from harness.adaptive.calibration.orientation import canonical_posterior
from harness.adaptive.calibration.posterior import Posterior, moment_features, pass_probability, symmetric
from harness.adaptive.calibration.variational import VariationalSettings, fit_variational

ITEMS = [f"item-{index}" for index in range(120)]
FAST = {"report": False, "average": False}


def moments(posterior: Posterior) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of every logit, (R, N) each, by their definition."""
    theta, item = posterior.theta, posterior.item
    x = np.column_stack([theta, -np.ones(len(theta))])
    spread = np.zeros((len(theta), x.shape[1], x.shape[1]))
    spread[:, :-1, :-1] = posterior.theta_covariance
    second = np.einsum("ri,rj->rij", x, x) + spread
    outer = np.einsum("ni,nj->nij", item, item) + posterior.item_covariance
    mean = x @ item.T
    return mean, np.einsum("rij,nij->rn", second, outer) - mean**2


def two_axes(runs: int, items: int) -> Responses:
    """A history with two strong abilities and a fifth of the cells missing."""
    rng = np.random.default_rng(7)
    theta, second = rng.normal(size=(runs, 2)), np.where(np.arange(items) % 2, 1.5, -1.5)
    logits = theta[:, :1] * 1.2 + theta[:, 1:] * second - rng.normal(size=items)
    trials = (rng.random((runs, items)) > 0.2).astype(float)
    passes = (rng.random((runs, items)) < 1 / (1 + np.exp(-logits))) * trials
    return Responses(tuple(f"r{r}" for r in range(runs)), tuple(f"i{i}" for i in range(items)), passes, trials)


@pytest.mark.parametrize("dims", ["rasch", 1, 2])
def test_the_fit_solves_the_equations_it_states(dims: int | str) -> None:
    history = two_axes(40, 30)
    rasch, d = dims == "rasch", 1 if dims == "rasch" else int(dims)
    cells = Counts.dense(history.passes, history.trials).cells()
    fit = fit_variational(cells, d, rasch, VariationalSettings())
    assert fit.convergence.converged
    q = fit.posterior
    mean, variance = moments(q)
    kappa = 1 / np.sqrt(1 + np.pi / 8 * variance)
    p = 1 / (1 + np.exp(-kappa * mean))
    weight = history.trials * kappa * p * (1 - p)
    outer = np.einsum("ni,nj->nij", q.item, q.item) + q.item_covariance
    pull = history.passes - history.trials * p
    loading = q.item[:, :d]
    for r in range(40):
        precision = np.eye(d) + np.einsum("n,nij->ij", weight[r], outer[:, :d, :d])
        bracket = (pull[r] + weight[r] * (loading @ q.theta[r]))[:, None] * loading
        linear = (bracket + weight[r][:, None] * q.item_covariance[:, :d, d]).sum(axis=0)
        assert solved(precision, linear, q.theta[r], q.theta_covariance[r])
    if rasch:
        assert np.ptp(q.item[:, 0]) == 0
        return
    x = np.column_stack([q.theta, -np.ones(40)])
    second = np.einsum("ri,rj->rij", x, x)
    second[:, :d, :d] += q.theta_covariance
    prior = np.linalg.inv(q.prior.covariance[0])
    for i in range(30):
        precision = prior + np.einsum("r,rij->ij", weight[:, i], second)
        linear = prior @ q.prior.mean[0] + ((pull[:, i] + weight[:, i] * mean[:, i])[:, None] * x).sum(axis=0)
        assert solved(precision, linear, q.item[i], q.item_covariance[i])
    np.testing.assert_allclose(q.prior.mean[0], q.item.mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(q.theta.mean(axis=0), 0, atol=1e-9)


def solved(precision: np.ndarray, linear: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> bool:
    """Whether this mean and covariance solve the equations: in units of a standard deviation, and relatively."""
    slope = (precision @ mean - linear) / np.sqrt(np.diag(precision))
    return bool(np.abs(slope).max() < 0.004 and np.allclose(np.linalg.inv(precision), covariance, rtol=0.01, atol=1e-4))


@given(st.integers(0, 2**31), st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_a_change_of_axes_changes_no_logit(seed: int, d: int) -> None:
    rng = np.random.default_rng(seed)

    def spread(n: int, size: int) -> np.ndarray:
        root = rng.normal(size=(n, size, size))
        return root @ root.transpose(0, 2, 1)

    q = Posterior(
        theta=rng.normal(size=(7, d)),
        theta_covariance=spread(7, d),
        item=rng.normal(size=(9, d + 1)),
        item_covariance=spread(9, d + 1),
        prior=ItemPrior.gaussian(rng.normal(size=d + 1), spread(1, d + 1)[0]),
    )
    raw = rng.random(7)
    basis = rng.normal(size=(d, d)) + 2 * np.eye(d)
    canonical = canonical_posterior(q, raw)
    for other in (q.change_axes(basis, rng.normal(size=d)), canonical):
        for found, expected in zip(moments(other), moments(q), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    if d > 1:
        np.testing.assert_allclose(canonical.item[:, 1:d].mean(axis=0), 0, atol=1e-9)
    assert all(np.cov(canonical.theta[:, axis], raw)[0, 1] >= -1e-12 for axis in range(d))
    features = moment_features(q.item, q.item_covariance, twice=False)
    outer = np.einsum("ni,nj->nij", q.item, q.item) + q.item_covariance
    np.testing.assert_allclose(symmetric(features, d + 1), outer, atol=1e-12)


def test_the_mean_probability_is_close_to_the_integral() -> None:
    nodes, weights = np.polynomial.hermite_e.hermegauss(81)
    for mean in (-4.0, -1.0, 0.0, 2.0):
        for variance in (0.0, 0.5, 3.0):
            exact = (1 / (1 + np.exp(-(mean + np.sqrt(variance) * nodes)))) @ weights / weights.sum()
            assert abs(pass_probability(np.array([mean]), np.array([variance]))[0] - exact) < 0.02


def test_true_parameters_lie_where_the_posterior_says() -> None:
    z = []
    for seed in range(4):
        truth = simulate_population(seed, 120, ITEMS, d=1)
        fit = calibrate(truth.responses(), CalibrationSettings(dims=1, **FAST))  # type: ignore[arg-type]
        scale, shift = truth.theta.std(), truth.theta.mean()
        found_scale, found_shift = fit.theta.std(), fit.theta.mean()
        turn = np.array([[found_scale, 0.0], [-found_shift, 1.0]])
        exact = np.column_stack([truth.alpha[:, 0] * scale, truth.beta - truth.alpha[:, 0] * shift])
        found = np.column_stack([fit.bank.alpha, fit.bank.beta]) @ turn.T
        assert fit.bank.item_covariance is not None
        deviation = np.sqrt(np.einsum("ij,njk,ik->ni", turn, fit.bank.item_covariance, turn))
        z.append((found - exact) / deviation)
    spread = np.concatenate(z).std(axis=0)
    assert (spread > 0.8).all(), spread
    # That runs and items count as independent of each other makes the posterior narrow.
    assert (spread < 1.4).all(), spread


def test_superfluous_axes_cost_little_and_map_pays_for_them() -> None:
    truth = simulate_population(5, 160, ITEMS, d=2)
    exact = np.array([truth.probability(agent) for agent in range(160)])
    errors = {}
    for method in ("variational", "map"):
        for d in (2, 5):
            chosen = CalibrationSettings(dims=d, method=method, **FAST)  # type: ignore[arg-type]
            fit = calibrate(truth.responses(), chosen)
            errors[method, d] = float(np.abs(fit.bank.probability(fit.theta) - exact).mean())
            if (method, d) == ("variational", 5):
                size = np.sqrt((fit.bank.alpha**2).mean(axis=0))
                assert size[2:].max() < 0.3
    assert errors["variational", 5] < 1.25 * errors["variational", 2]
    assert errors["variational", 5] < 0.85 * errors["map", 5]


def test_a_perfectly_ordered_history_does_not_run_away() -> None:
    ability, difficulty = np.linspace(-2, 2, 40), np.linspace(-2.2, 2.2, 60)
    passes = (ability[:, None] > difficulty).astype(float)
    for copies in (1, 5):
        table = np.repeat(passes, copies, axis=0)
        history = Responses(tuple(f"r{r}" for r in range(len(table))), tuple(ITEMS[:60]), table, np.ones_like(table))
        fit = calibrate(history, CalibrationSettings(dims=1, **FAST))  # type: ignore[arg-type]
        assert fit.bank.provenance.convergence.converged
        assert (fit.bank.alpha[:, 0] > 0).all()
        assert fit.bank.alpha.max() < 25
        assert np.corrcoef(fit.bank.beta, difficulty)[0, 1] > 0.95


def test_copies_of_runs_converge() -> None:
    history = simulate_population(3, 30, ITEMS, d=2).responses()
    table = np.repeat(history.passes, 5, axis=0)
    copied = Responses(tuple(f"r{r}" for r in range(150)), tuple(ITEMS), table, np.ones_like(table))
    for d in (1, 2):
        fit = calibrate(copied, CalibrationSettings(dims=d, **FAST))  # type: ignore[arg-type]
        assert fit.bank.provenance.convergence.converged
        assert np.abs(fit.bank.alpha).max() < 8


def test_the_hyperprior_moves_towards_nothing_with_many_runs() -> None:
    assert Hyperprior(0.4).for_runs(20) == Hyperprior(0.4)
    assert Hyperprior(0.4).for_runs(200).loading_sd == pytest.approx(0.2)
