"""Back-testing: the folds, the yardstick, and that it picks what is better and keeps what is not."""

from __future__ import annotations

import json

import numpy as np
import pytest

from harness.adaptive import Bank, CalibrationSettings, Responses, calibrate, prior_bank, simulate_population
from harness.adaptive.errors import CalibrationError
from harness.adaptive.plan import Backtest
from harness.adaptive.planning.backtest import (
    BacktestSettings,
    backtest,
    better,
    conformal_factor,
    default_checkpoints,
    folds,
    random_error,
    subset,
)

ITEMS = [f"item-{i}" for i in range(150)]
QUICK = BacktestSettings(
    policies=("pass_rate",), shares=(0.0, 0.5, 1.0), model_errors=(0.02,), checkpoints=(15, 40, 80)
)


def rasch(history: Responses) -> Bank:
    return calibrate(history, CalibrationSettings(dims="rasch")).bank


def knows_nothing(history: Responses) -> Bank:
    return prior_bank(history.item_ids)


def test_runs_of_one_agent_stay_together_and_every_run_is_tested_once() -> None:
    agents = [f"agent-{r % 7}" for r in range(30)]
    tried = np.arange(30)
    parts = list(folds(agents, tried, BacktestSettings(folds=4)))
    assert len(parts) == 4
    assert sorted(r for _, test in parts for r in test.tolist()) == list(range(30))
    for train, test in parts:
        assert not {agents[r] for r in train} & {agents[r] for r in test}
    few = list(folds(agents, tried, BacktestSettings(folds=4, max_runs=12)))
    assert all(len(test) <= 3 for _, test in few)
    assert [test.tolist() for _, test in few] == [
        test.tolist() for _, test in folds(agents, tried, BacktestSettings(folds=4, max_runs=12))
    ]


def test_the_yardstick_is_the_expected_error_of_a_random_sample() -> None:
    rng = np.random.default_rng(5)
    outcomes = (rng.random((1, 400)) < 0.4).astype(float)
    for k in (40, 200):
        draws = np.array([rng.permutation(outcomes[0])[:k].mean() for _ in range(4000)])
        simulated = np.abs(draws - outcomes.mean()).mean()
        assert random_error(outcomes, np.ones((1, 400)), k)[0] == pytest.approx(simulated, rel=0.04)
    assert random_error(outcomes, np.ones((1, 400)), 400)[0] == 0.0


def test_a_model_that_knows_wins_over_one_that_does_not() -> None:
    history = simulate_population(3, 60, ITEMS, 1).responses()
    models = {"nothing": knows_nothing, "rasch": rasch}
    found = backtest(history, history.run_ids, models, QUICK)
    assert [row.plan.model for row in found.chosen] == ["rasch"] * 3
    assert [row.tasks for row in found.chosen] == [15, 40, 80]
    assert all(row.ratio < 0.9 for row in found.chosen)
    assert (found.agents, found.runs) == (60, 60)
    assert found.at(200) == found.chosen[-1]
    assert found.at(1) == found.chosen[0]
    assert found == backtest(history, history.run_ids, models, QUICK)


def test_a_history_that_no_ability_explains_is_hedged() -> None:
    """Items of two kinds that rank the agents in opposite order: what the sharper kind says misleads on the other."""
    rng = np.random.default_rng(8)
    theta = rng.normal(0, 1.5, 60)
    logits = np.where(np.arange(150) < 40, 2.5 * theta[:, None], -0.9 * theta[:, None]) - rng.normal(0, 0.5, 150)
    outcomes = (rng.random((60, 150)) < 1 / (1 + np.exp(-logits))).astype(float)
    runs = tuple(f"run-{r}" for r in range(60))
    history = Responses(runs, tuple(ITEMS), outcomes, np.ones(outcomes.shape))
    found = backtest(history, runs, {"rasch": rasch}, QUICK)
    plain = {row.tasks: row for row in found.rows if row.plan.policy == "pass_rate"}
    assert plain[80].ratio > 1.2
    assert found.at(80).ratio < 1.1
    assert found.at(80).plan.policy != "pass_rate"


def test_a_gain_within_the_noise_changes_nothing() -> None:
    rng = np.random.default_rng(0)
    old = rng.normal(1, 0.3, 20)
    assert not better(old - rng.normal(0.01, 0.3, 20), old)
    assert better(old - rng.normal(0.5, 0.3, 20), old)


def test_widening_makes_the_interval_cover_nine_in_ten_and_never_narrows_it() -> None:
    scaled = np.abs(np.random.default_rng(1).normal(0, 1.7, 5000))
    assert conformal_factor(scaled) == pytest.approx(1.7, rel=0.05)
    assert conformal_factor(np.zeros(10)) == 1.0
    assert conformal_factor(scaled / 3.4) == 1.0
    assert conformal_factor(np.full(3, 100.0)) == 5.0


def test_the_table_survives_json() -> None:
    history = simulate_population(3, 12, ITEMS[:40], 1).responses()
    settings = BacktestSettings(policies=("pass_rate",), shares=(0.0,), checkpoints=(5, 10))
    found = backtest(history, history.run_ids, {"rasch": rasch}, settings)
    assert Backtest.from_dict(json.loads(json.dumps(found.as_dict()))) == found
    assert found.widening == tuple((row.tasks, row.widening) for row in found.chosen)


def test_default_checkpoints_rise_and_fit_small_suites() -> None:
    assert default_checkpoints(519) == (25, 52, 104, 208, 311)
    assert default_checkpoints(80) == (8, 16, 25, 32, 48)
    assert default_checkpoints(6) == (3,)


def test_too_few_agents_are_refused() -> None:
    history = simulate_population(3, 3, ITEMS[:40], 1).responses()
    with pytest.raises(CalibrationError, match="3 agents"):
        backtest(history, history.run_ids, {"rasch": rasch})
    assert subset(history, np.array([2, 0])).run_ids == (history.run_ids[2], history.run_ids[0])
