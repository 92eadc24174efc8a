"""Simulated lineages: the source's shape and figures, and each regime's fault, measured."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from harness.adaptive import AdaptiveError
from harness.adaptive.populations.lineage import PLAIN, Shape, simulate_lineage
from harness.adaptive.populations.regimes import (
    CATEGORIES,
    CHANGE,
    JUMP,
    REGIMES,
    TESTLET_ITEMS,
    families,
    simulate_regime,
)


def test_the_shape_is_the_published_one() -> None:
    lineage = simulate_lineage(1)
    assert lineage.outcomes.shape == (574, 519)
    assert np.flatnonzero(lineage.days < 28).tolist() == list(range(287))
    assert lineage.days[-1] == 51
    history = lineage.responses(range(287))
    assert (history.dates[0], history.dates[-1]) == ("2026-01-01", "2026-01-28")


def test_random_sampling_errs_as_published() -> None:
    """2.94, 1.79 and 1.18 points at 100, 200 and 300 of 519 (arXiv:2609.21267, section 5.1)."""
    rates = np.concatenate([simulate_lineage(seed).outcomes[287:].mean(axis=1) for seed in range(1, 6)])
    for k, published in ((100, 2.94), (200, 1.79), (300, 1.18)):
        spread = np.sqrt(rates * (1 - rates) / k * (519 - k) / 518)
        assert 100 * np.sqrt(2 / np.pi) * spread.mean() == pytest.approx(published, rel=0.06)


def test_runs_of_neighbouring_times_are_alike() -> None:
    lineage = simulate_lineage(2)
    theta = lineage.truth.theta if lineage.truth else np.zeros((0, 0))
    near = np.linalg.norm(theta[1:] - theta[:-1], axis=1)
    far = np.linalg.norm(theta[287:] - theta[:287], axis=1)
    assert np.median(near) < 0.6 * np.median(far)


@pytest.mark.parametrize("name", REGIMES)
def test_a_regime_is_a_function_of_its_seed(name: str) -> None:
    shape = Shape(n_runs=30, n_items=40)
    one, same, other = (simulate_regime(name, seed, shape) for seed in (1, 1, 2))
    assert np.array_equal(one.outcomes, same.outcomes)
    assert not np.array_equal(one.outcomes, other.outcomes)
    assert set(np.unique(one.outcomes)) <= {0.0, 1.0}
    z = (one.outcomes - one.probability).sum() / np.sqrt((one.probability * (1 - one.probability)).sum())
    assert abs(z) < 4


def test_an_unknown_regime_is_refused_with_the_names() -> None:
    with pytest.raises(AdaptiveError, match="testlets"):
        simulate_regime("sideways", 1)
    with pytest.raises(AdaptiveError, match="at least one"):
        Shape(n_items=0)


def test_each_regime_has_its_fault() -> None:
    plain = simulate_regime("plain", 3)
    assert plain.truth is not None
    noise = plain.outcomes - plain.probability

    categories = simulate_regime("categories", 3)
    assert len(np.unique(categories.item_groups)) == CATEGORIES
    assert categories.truth is not None
    assert categories.truth.alpha.shape[1] == CATEGORIES + 1

    lucky = simulate_regime("testlets", 3)
    # Given θ, outcomes of one group go together: the residual of a neighbour within it says something.
    residual = lucky.outcomes - plain.probability
    inside = np.arange(0, 516, TESTLET_ITEMS)
    assert (residual[:, inside] * residual[:, inside + 1]).mean() > 5 * abs((noise[:, :-1] * noise[:, 1:]).mean())

    guessing = simulate_regime("guessing", 3)
    hard = guessing.probability.min(axis=0)
    assert (hard > 0.2).sum() > (plain.probability.min(axis=0) > 0.2).sum()

    drift = simulate_regime("drift", 3)
    moved = np.log(drift.probability / (1 - drift.probability)) - plain.truth.logits
    assert np.abs(moved[0]).max() < CHANGE + 1
    assert 0.8 < moved[-1].std() < 1.8

    jump = simulate_regime("jump", 3)
    assert jump.truth is not None
    gained = jump.truth.theta[:, 0] - plain.truth.theta[:, 0]
    assert gained[:344].max() == 0.0
    assert gained[344:].min() == pytest.approx(JUMP)


def test_families_follow_the_lineage_they_are_tested_on() -> None:
    shape = replace(PLAIN, n_runs=40, n_items=50)
    both, alone = families(4, shape), simulate_lineage(4, shape)
    assert np.array_equal(both.outcomes[:40], alone.outcomes)
    assert sorted(set(both.families.tolist())) == [0, 1, 2, 3, 4, 5]
    assert (both.days[40:] > both.days[39]).all()
