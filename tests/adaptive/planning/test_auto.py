"""From a history to a bank that says how to use itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.adaptive import AdaptiveEngine, Choice, load_bank, prior_bank, save_bank, simulate_population
from harness.adaptive.calibration.settings import CalibrationSettings
from harness.adaptive.errors import EngineError
from harness.adaptive.estimators import PosteriorPredictive
from harness.adaptive.estimators.hybrid import Hybrid
from harness.adaptive.planning.auto import PlanningSettings, auto_settings, label_of, planned
from harness.adaptive.planning.backtest import BacktestSettings
from harness.adaptive.policies import DOptimal

QUICK = PlanningSettings(
    backtest=BacktestSettings(policies=("pass_rate",), shares=(0.0, 0.25), model_errors=(0.02,), checkpoints=(10, 30)),
    models=("rasch", 1),
)


def test_the_bank_carries_the_table_and_an_engine_follows_it(tmp_path: Path) -> None:
    history = simulate_population(5, 40, [f"item-{i}" for i in range(80)], 1).responses()
    bank = planned(history, settings=QUICK).bank
    assert bank.backtest is not None
    assert {row.plan.model for row in bank.backtest.rows} >= {"rasch", "1"}
    assert bank.backtest.chosen[0].plan.model == label_of(bank)
    save_bank(bank, tmp_path / "bank.npz")
    again = load_bank(tmp_path / "bank.npz")
    assert again.backtest == bank.backtest
    assert again.digest == bank.digest
    assert replace(bank, backtest=None).digest != bank.digest
    settings = auto_settings(again.align([*bank.item_ids[:50], "new"]), tasks=30, seed=2)
    plan = bank.backtest.at(30).plan
    assert settings.policy.name == plan.policy
    assert settings.estimator == Hybrid(plan.model_error)
    engine = AdaptiveEngine(again, settings)
    plain = AdaptiveEngine(again, replace(settings, widening=((30, 2.0),)))
    assert isinstance(engine.next(), Choice)
    assert plain.estimate().standard_error == pytest.approx(
        engine.estimate().standard_error * 2.0 / bank.backtest.widening[0][1]
    )


def test_a_thin_history_is_calibrated_without_a_back_test() -> None:
    bank = planned(simulate_population(5, 3, ["a", "b", "c"], 1).responses(), settings=QUICK).bank
    assert bank.backtest is None
    assert auto_settings(bank).policy == DOptimal()
    assert auto_settings(prior_bank(["a", "b"])).estimator == PosteriorPredictive()


def test_given_dimensions_are_kept() -> None:
    history = simulate_population(5, 20, [f"item-{i}" for i in range(40)], 1).responses()
    settings = replace(QUICK, calibration=CalibrationSettings(dims=1))
    bank = planned(history, settings=settings).bank
    assert bank.backtest is not None
    assert {row.plan.model for row in bank.backtest.rows} == {"1"}
    broken = replace(bank, provenance=replace(bank.provenance, method="rasch"))
    with pytest.raises(EngineError, match="chose the model '1'"):
        auto_settings(broken)
