"""The prior of a coming agent: wide, and widest in the direction of being good all over."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.adaptive.calibration.ability_prior import GENERAL_ROOM, ROOM, coming_covariance, past_abilities
from harness.adaptive.calibration.calibrate import CalibrationSettings, calibrate
from harness.adaptive.populations.lineage import Shape, simulate_lineage
from harness.adaptive.state import AbilityState


def test_past_abilities_are_shrunk_towards_the_calibration_prior() -> None:
    mean, covariance = past_abilities(np.array([[1.0], [3.0]]))
    assert mean == pytest.approx([2.0])
    assert covariance == pytest.approx(np.array([[1.2 * (2.0 + 5.0) / 7.0]]))
    _, known = past_abilities(np.array([[1.0], [3.0]]), np.full((2, 1, 1), 0.5))
    assert known == pytest.approx(np.array([[1.2 * (3.0 + 5.0) / 7.0]]))


@given(st.integers(0, 10**6), st.integers(1, 6))
def test_the_general_direction_gets_its_room_and_what_is_independent_of_it_the_other(seed: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(d, d)) + 2.0 * np.eye(d)
    past, alpha = root @ root.T, rng.normal(0.5, 1.0, (20, d))
    wide, general = coming_covariance(past, alpha), alpha.mean(axis=0)
    assert general @ wide @ general == pytest.approx(GENERAL_ROOM**2 * (general @ past @ general))
    other = rng.normal(size=d)
    other -= general * (general @ past @ other) / (general @ past @ general)
    assert other @ wide @ other == pytest.approx(ROOM**2 * (other @ past @ other))
    assert general @ wide @ other == pytest.approx(0.0, abs=1e-9 * float(np.trace(wide)))


def test_loadings_that_cancel_out_have_no_direction() -> None:
    assert coming_covariance(np.eye(2), np.array([[1.0, 1.0], [-1.0, -1.0]])) == pytest.approx(ROOM**2 * np.eye(2))


def test_an_agent_better_than_any_before_is_followed_and_called_new() -> None:
    """Five standard deviations of the past up, the prior pulls the estimate down by less than half of one of them."""
    lineage = simulate_lineage(3, Shape(n_runs=60, n_items=120))
    bank = calibrate(lineage.responses(range(60)), CalibrationSettings(dims=1)).bank
    assert bank.past_covariance is not None
    deviation = float(np.sqrt(bank.past_covariance[0, 0]))
    truth = float(bank.prior_mean[0]) + 5.0 * deviation
    p = bank.probability(np.array([truth]))
    state = AbilityState.start(bank)
    # Outcomes as expected at the truth: a hundred trials an item leave no luck.
    for item in np.argsort(-p * (1 - p))[:10]:
        state = state.observe(int(item), round(100 * float(p[item])), 100)
    assert abs(float(state.theta[0]) - truth) < 0.5 * deviation
    assert bank.past_distance(state.theta, state.covariance) > 4.0
