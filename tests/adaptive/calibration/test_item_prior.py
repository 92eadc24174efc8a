"""Kinds of items: shares against the density they approximate, the common width against its optimum, planted kinds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from harness.adaptive import CalibrationSettings, Responses, calibrate, simulate_population
from harness.adaptive.calibration.cells import Counts
from harness.adaptive.calibration.item_prior import ItemPrior, split
from harness.adaptive.calibration.learning import Hyperprior, common_width, learn_prior
from harness.adaptive.calibration.posterior import Posterior
from harness.adaptive.calibration.variational import VariationalSettings, fit_variational


def widths(rng: np.random.Generator, n: int, size: int) -> np.ndarray:
    root = rng.normal(size=(n, size, size + 2))
    return root @ root.transpose(0, 2, 1) / size + 0.1 * np.eye(size)


def mixture(rng: np.random.Generator, kinds: int, size: int) -> ItemPrior:
    weight = rng.dirichlet(np.ones(kinds))
    return ItemPrior(weight, rng.normal(size=(kinds, size)), widths(rng, kinds, size), np.eye(size))


@given(st.integers(0, 2**31), st.integers(1, 5), st.integers(2, 4))
@settings(max_examples=30)
def test_shares_of_known_items_are_those_of_the_density(seed: int, kinds: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    prior, items = mixture(rng, kinds, size), rng.normal(size=(6, size))
    density = np.stack(
        [
            weight * np.atleast_1d(multivariate_normal(mean, covariance).pdf(items))
            for weight, mean, covariance in zip(prior.weight, prior.mean, prior.covariance, strict=True)
        ],
        axis=1,
    )
    shares = prior.shares(items, np.zeros((6, size, size)))
    np.testing.assert_allclose(shares, density / density.sum(axis=1, keepdims=True), rtol=1e-6, atol=1e-12)


@given(st.integers(0, 2**31), st.integers(1, 4))
@settings(max_examples=30)
def test_a_change_of_axes_changes_no_share_and_no_pull(seed: int, kinds: int) -> None:
    rng = np.random.default_rng(seed)
    prior, items, spread = mixture(rng, kinds, 3), rng.normal(size=(5, 3)), widths(rng, 5, 3)
    turn = rng.normal(size=(3, 3)) + 3 * np.eye(3)
    turned, turned_spread = prior.turned(turn), turn @ spread @ turn.T
    np.testing.assert_allclose(turned.shares(items @ turn.T, turned_spread), prior.shares(items, spread), atol=1e-7)
    precision, linear = prior.pulls(items, spread)
    there, linear_there = turned.pulls(items @ turn.T, turned_spread)
    np.testing.assert_allclose(turn.T @ there @ turn, precision, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(linear_there @ turn, linear, rtol=1e-6, atol=1e-7)


@given(st.integers(0, 2**31), st.integers(2, 6), st.integers(1, 3))
@settings(max_examples=30)
def test_thecommon_width_is_the_best_one(seed: int, kinds: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    covariance, hyperprior, n_items = widths(rng, kinds, d + 1), Hyperprior(0.3), 20
    found = common_width(covariance, n_items, hyperprior)
    lent, held, total = d + 3.0, hyperprior.weight * n_items, np.linalg.inv(covariance).sum(axis=0)

    def objective(width: np.ndarray) -> float:
        loading = width[:d, :d]
        fits = lent / 2 * (kinds * np.linalg.slogdet(width)[1] - np.trace(width @ total))
        pull = np.linalg.slogdet(loading)[1] + hyperprior.loading_sd**2 * np.trace(np.linalg.inv(loading))
        return float(fits - held / 2 * pull)

    assert np.linalg.eigvalsh(found)[0] > 0
    root = np.linalg.cholesky(found)
    for _ in range(20):
        step = rng.normal(size=(d + 1, d + 1)) * 0.01
        assert objective(root @ (np.eye(d + 1) + step + step.T) @ root.T) <= objective(found) + 1e-9


def test_split_finds_kinds_that_are_apart_and_learning_gives_their_width() -> None:
    rng = np.random.default_rng(2)
    centres = np.array([[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]])
    label = np.repeat([0, 1, 2], [40, 60, 100])
    items = centres[label] + 0.1 * rng.normal(size=(200, 3))
    wide = ItemPrior.gaussian(items.mean(axis=0), np.cov(items.T))
    prior = split(wide, items, 3)
    assert sorted(np.round(prior.weight * 200).tolist()) == [40, 60, 100]
    now = Posterior(np.zeros((4, 2)), np.tile(np.eye(2), (4, 1, 1)), items, np.zeros((200, 3, 3)), prior)
    for _ in range(30):
        now = learn_prior(now, Hyperprior(0.1), rasch=False)
    found = now.prior.mean[np.argsort(now.prior.weight)]
    np.testing.assert_allclose(found, centres, atol=0.05)
    np.testing.assert_allclose(np.sqrt(np.einsum("kii->ki", now.prior.covariance)), 0.1, atol=0.03)


def skills(seed: int, runs: int, items: int) -> tuple[Responses, np.ndarray]:
    """A history in which every item asks for one of four skills, and the chances it was drawn from."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(runs, 4))
    loading = np.zeros((items, 4))
    loading[np.arange(items), np.arange(items) % 4] = 1.5 + 0.2 * rng.normal(size=items)
    chance = 1 / (1 + np.exp(-(theta @ loading.T - rng.normal(size=items))))
    passes = (rng.random((runs, items)) < chance).astype(float)
    names = tuple(f"r{r}" for r in range(runs)), tuple(f"i{i}" for i in range(items))
    return Responses(*names, passes, np.ones_like(passes)), chance


def test_kinds_are_told_apart_where_there_are_some_and_help() -> None:
    history, chance = skills(1, 120, 200)
    errors = []
    for kinds in (1, 8):
        fit = calibrate(history, CalibrationSettings(dims=4, kinds=kinds, report=False, average=False))
        assert fit.bank.provenance.convergence.converged
        assert any("kinds" in note for note in fit.bank.provenance.notes) == (kinds > 1)
        errors.append(float(np.abs(fit.bank.probability(fit.theta) - chance).mean()))
    assert errors[1] < 0.95 * errors[0]


def test_a_fit_with_kinds_stays_where_it_is() -> None:
    history, _ = skills(2, 60, 80)
    cells = Counts.dense(history.passes, history.trials).cells()
    chosen = VariationalSettings(kinds=4)
    first = fit_variational(cells, 4, False, chosen)
    assert first.posterior.prior.kinds == 4
    again = fit_variational(cells, 4, False, chosen, first.posterior)
    assert again.convergence.iterations <= 2
    np.testing.assert_allclose(again.posterior.item, first.posterior.item, atol=0.1)


def test_no_kinds_where_items_are_alike() -> None:
    history = simulate_population(4, 40, [f"item-{i}" for i in range(60)], d=2).responses()
    one, many = (
        calibrate(history, CalibrationSettings(dims=2, kinds=kinds, report=False, average=False)) for kinds in (1, 8)
    )
    np.testing.assert_allclose(one.bank.probability(one.theta), many.bank.probability(many.theta), atol=0.02)


@pytest.mark.parametrize("items", [2, 5])
def test_fewer_items_than_kinds(items: int) -> None:
    history, _ = skills(3, 40, items)
    fit = calibrate(history, CalibrationSettings(dims=2, report=False))
    assert np.isfinite(fit.bank.alpha).all()


def test_kinds_that_do_not_settle_give_way_to_one() -> None:
    history, _ = skills(4, 30, 60)
    cells = Counts.dense(history.passes, history.trials).cells()
    one = fit_variational(cells, 3, False, VariationalSettings())
    several = fit_variational(cells, 3, False, VariationalSettings(kinds=5))
    assert several.posterior.prior.kinds == 5
    hurried = VariationalSettings(kinds=5, max_iterations=3)
    for start in (one.posterior, several.posterior):
        fit = fit_variational(cells, 3, False, hurried, start)
        assert fit.posterior.prior.kinds == 1 or fit.convergence.converged
    fresh = fit_variational(cells, 3, False, hurried)
    assert fresh.posterior.prior.kinds == 1
    assert not fresh.convergence.converged
