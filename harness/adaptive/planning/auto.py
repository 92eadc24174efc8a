"""From a history to a bank that knows how to use itself: calibration, back-test, and the winner in the bank.

`planned` calibrates as `calibrate` does, back-tests every model, policy and random share on the history, and gives the
bank of the winning model with the table in it (`Bank.backtest`). `auto_settings` turns that into the settings of an
engine for a run of a given length: what `--policy auto` means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from harness.adaptive.bank import Bank
from harness.adaptive.calibration.calibrate import Calibration, calibrate
from harness.adaptive.calibration.model_choice import affordable
from harness.adaptive.calibration.settings import CalibrationSettings, Candidate
from harness.adaptive.engine import DEFAULT_TASKS, EngineSettings
from harness.adaptive.errors import EngineError
from harness.adaptive.estimators import PosteriorPredictive
from harness.adaptive.estimators.hybrid import Hybrid
from harness.adaptive.planning.backtest import LEAST_AGENTS, BacktestSettings, Fit, backtest
from harness.adaptive.policies import DOptimal, policy_named
from harness.adaptive.responses import Responses
from harness.adaptive.stops import StopRule, TasksStop

BACKTESTED: tuple[Candidate, ...] = ("rasch", 1, 3)


@dataclass(frozen=True)
class PlanningSettings:
    """How to calibrate, what to back-test, and the `models` to choose from besides the calibration's own."""

    calibration: CalibrationSettings = field(default_factory=CalibrationSettings)
    backtest: BacktestSettings = field(default_factory=BacktestSettings)
    models: tuple[Candidate, ...] = BACKTESTED


def planned(
    responses: Responses, agents: Sequence[str] | None = None, settings: PlanningSettings | None = None
) -> Calibration:
    """The calibration of the model that did best on past agents, its bank carrying the table.

    `agents` (R,) says whose run each is (each its own if None). A history of fewer than 4 agents, or too thin for
    discriminations, is calibrated without a back-test, and the bank has none.

    Raises
    ------
    CalibrationError
        As `calibrate` does.
    """
    settings = settings or PlanningSettings()
    owners = tuple(agents) if agents is not None else responses.run_ids
    first = calibrate(responses, settings.calibration)
    if len(set(owners)) < LEAST_AGENTS or not first.run_ids:
        return first
    reference = label_of(first.bank)
    models = {label: _fit(label, settings.calibration) for label in _labels(reference, len(first.run_ids), settings)}
    table = backtest(responses, owners, models, settings.backtest, reference)
    winner = table.chosen[0].plan.model
    chosen = first
    if winner != reference:
        dims: Candidate = "rasch" if winner == "rasch" else int(winner)
        chosen = calibrate(responses, replace(settings.calibration, dims=dims))
    return replace(chosen, bank=replace(chosen.bank, backtest=table))


def label_of(bank: Bank) -> str:
    """The name of a bank's model in a back-test: "rasch" or d."""
    return "rasch" if bank.provenance.method == "rasch" else str(bank.d)


def auto_settings(bank: Bank, tasks: int = DEFAULT_TASKS, seed: int = 0, level: float = 0.95) -> EngineSettings:
    """The engine settings that did best on past agents in runs of about so many tasks.

    Without a back-test in the bank: D-optimal choice and the posterior predictive estimate, as calibrated.
    """
    stops: tuple[StopRule, ...] = (TasksStop(tasks),)
    if bank.backtest is None:
        return EngineSettings(DOptimal(), PosteriorPredictive(), stops, seed, level)
    plan = bank.backtest.at(tasks).plan
    if plan.model != label_of(bank):
        raise EngineError(
            f"its back-test chose the model {plan.model!r}, but it is {label_of(bank)!r}",
            place=f"bank {bank.digest[:12]}",
            remedy="Calibrate again, or name a policy",
        )
    return EngineSettings(
        policy=policy_named(plan.policy),
        estimator=Hybrid(plan.model_error),
        stops=stops,
        seed=seed,
        level=level,
        widening=bank.backtest.widening,
    )


def _labels(reference: str, n_runs: int, settings: PlanningSettings) -> list[str]:
    """The models to try, the reference first: those with d at most a quarter of the runs, if d is to be chosen."""
    if settings.calibration.dims != "auto" or n_runs < settings.calibration.min_runs_2pl:
        return [reference]
    others = [str(dims) for dims in settings.models if affordable(dims, n_runs)]
    return [reference, *(label for label in others if label != reference)]


def _fit(label: str, calibration: CalibrationSettings) -> Fit:
    dims: Candidate = "rasch" if label == "rasch" else int(label)
    # Tested agents are of all dates, and items as they are now would be held against what they were.
    own = replace(calibration, dims=dims, report=False, drift=0.0)

    def fit(history: Responses) -> Bank:
        return calibrate(history, own).bank

    return fit
