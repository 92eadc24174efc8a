"""Adaptive testing: calibrate items on past runs, choose the next task, estimate the whole suite from a part
of it.

Arrays in, frozen results out; numpy and scipy only; no state but the engine's, no file but a bank's own. In
five lines:

    history = Responses.from_cells(rows)                       # (run, item, True | False | None)
    bank = calibrate(history).bank.align(suite_item_ids)
    engine = AdaptiveEngine(bank, EngineSettings(seed=7, stops=(TasksStop(200),)))
    while isinstance(step := engine.next(), Choice):
        engine.observe(step.item, run_it(step.item))
    print(engine.estimate())
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.adaptive.bank import Alternative, Bank, prior_bank
    from harness.adaptive.bank_file import load_bank, save_bank
    from harness.adaptive.calibration.calibrate import Calibration, CalibrationSettings, calibrate
    from harness.adaptive.calibration.likelihood import Priors
    from harness.adaptive.calibration.sparse import SparseResponses
    from harness.adaptive.decision import Baseline, Decision, DecisionSettings, Verdict, decide
    from harness.adaptive.drift import BankComparison, ItemDrift, compare_banks
    from harness.adaptive.engine import AdaptiveEngine, EngineSettings
    from harness.adaptive.errors import AdaptiveError
    from harness.adaptive.estimators import Estimate, Estimator, Hybrid, PIrt, PosteriorPredictive, estimator_named
    from harness.adaptive.fit_report import FitReport
    from harness.adaptive.maintenance import (
        DriftState,
        Finding,
        FindingKind,
        Severity,
        ability_range,
        full_run_check,
        full_run_due,
        item_drift,
    )
    from harness.adaptive.planning.auto import PlanningSettings, auto_settings, planned
    from harness.adaptive.policies import DOptimal, PassRate, Policy, Random, policy_named
    from harness.adaptive.populations.simulate import Population, simulate_population
    from harness.adaptive.provenance import Convergence, Provenance
    from harness.adaptive.responses import Responses
    from harness.adaptive.selection import Candidate, Choice
    from harness.adaptive.state import AbilityState, Spent, Withdrawal
    from harness.adaptive.stops import (
        CostStop,
        DecisionStop,
        EndReason,
        StandardErrorStop,
        Stop,
        StopRule,
        StopView,
        TasksStop,
        TimeStop,
    )

# Where each public name lives. They are imported when they are asked for: an engine needs no optimiser, and scipy's
# weighs more than the rest of a coordinator.
_HOMES = {
    "bank": "Alternative Bank prior_bank",
    "bank_file": "load_bank save_bank",
    "calibration.calibrate": "Calibration CalibrationSettings calibrate",
    "decision": "Baseline Decision DecisionSettings Verdict decide",
    "engine": "AdaptiveEngine EngineSettings",
    "errors": "AdaptiveError",
    "estimators": "Estimate Estimator Hybrid PIrt PosteriorPredictive estimator_named",
    "calibration.likelihood": "Priors",
    "maintenance": "DriftState Finding FindingKind Severity ability_range full_run_check full_run_due item_drift",
    "planning.auto": "PlanningSettings auto_settings planned",
    "policies": "DOptimal PassRate Policy Random policy_named",
    "drift": "BankComparison ItemDrift compare_banks",
    "fit_report": "FitReport",
    "calibration.sparse": "SparseResponses",
    "provenance": "Convergence Provenance",
    "responses": "Responses",
    "selection": "Candidate Choice",
    "populations.simulate": "Population simulate_population",
    "state": "AbilityState Spent Withdrawal",
    "stops": "CostStop DecisionStop EndReason StandardErrorStop Stop StopRule StopView TasksStop TimeStop",
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME_OF[name]}"), name)


__all__ = [
    "AbilityState",
    "AdaptiveEngine",
    "AdaptiveError",
    "Alternative",
    "Bank",
    "BankComparison",
    "Baseline",
    "Calibration",
    "CalibrationSettings",
    "Candidate",
    "Choice",
    "Convergence",
    "CostStop",
    "DOptimal",
    "Decision",
    "DecisionSettings",
    "DecisionStop",
    "DriftState",
    "EndReason",
    "EngineSettings",
    "Estimate",
    "Estimator",
    "Finding",
    "FindingKind",
    "FitReport",
    "Hybrid",
    "ItemDrift",
    "PIrt",
    "PassRate",
    "PlanningSettings",
    "Policy",
    "Population",
    "PosteriorPredictive",
    "Priors",
    "Provenance",
    "Random",
    "Responses",
    "Severity",
    "SparseResponses",
    "Spent",
    "StandardErrorStop",
    "Stop",
    "StopRule",
    "StopView",
    "TasksStop",
    "TimeStop",
    "Verdict",
    "Withdrawal",
    "ability_range",
    "auto_settings",
    "calibrate",
    "compare_banks",
    "decide",
    "estimator_named",
    "full_run_check",
    "full_run_due",
    "item_drift",
    "load_bank",
    "planned",
    "policy_named",
    "prior_bank",
    "save_bank",
    "simulate_population",
]
