"""Between the adaptive engine, which knows arrays, and a run, which knows tasks and events."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness.adaptive.arrays import FloatArray
from harness.adaptive.bank import Bank, prior_bank
from harness.adaptive.bank_file import load_bank, save_bank
from harness.adaptive.engine import AdaptiveEngine, EngineSettings
from harness.adaptive.estimators import Estimator, estimator_named
from harness.adaptive.estimators.hybrid import Hybrid
from harness.adaptive.policies import ItemTraits, Policy, policy_for
from harness.adaptive.stops import CostStop, StandardErrorStop, StopRule, TasksStop, TimeStop
from harness.api.calibrating import CalibrationRequest, calibrated_bank
from harness.api.request import AdaptiveRequest, read_decision
from harness.protocols import EvidenceStore
from harness.records.base import canonical_json
from harness.records.errors import ConfigError
from harness.records.run import AdaptiveConfig, DecisionRule, RunConfig
from harness.report.endings import endings

AUTO = "auto"


def make_bank(request: AdaptiveRequest, tasks: tuple[str, ...]) -> Bank:
    """The bank of a run, aligned with its tasks; items that no history knows get prior-only parameters."""
    if request.bank is not None:
        return load_bank(request.bank).align(tasks)
    if request.history is None:
        return prior_bank(tasks, seed=request.seed)
    asked = CalibrationRequest(
        history=(request.history,),
        dims=request.dims or "auto",
        seed=request.seed,
        backtest=request.policy == AUTO,
    )
    return calibrated_bank(asked).align(tasks)


def keep_bank(bank: Bank, store: EvidenceStore) -> str:
    """Put the bank among the run's evidence; returns its digest."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bank.npz"
        save_bank(bank, path)
        return store.put_blob(path.read_bytes())


def read_bank(digest: str, store: EvidenceStore) -> Bank:
    """The bank that :func:`keep_bank` kept. Raises StoreError or BankFileError."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bank.npz"
        path.write_bytes(store.blob(digest))
        return load_bank(path)


def check_names(policies: Iterable[str], estimator: str | None) -> None:
    """Before anything is spent: raises EngineError for a policy or an estimator that there is not."""
    one = np.ones(1)
    everything = ItemTraits(one, one, one, ("group",), None, one, 1)
    for policy in policies:
        if policy != AUTO:
            policy_for(policy, prior_bank(("item",)), everything)
    if estimator is not None:
        estimator_named(estimator)


@dataclass(frozen=True)
class SuiteNow:
    """The tasks that a run is about, each with its version, and the version of their suite."""

    version: str
    tasks: Mapping[str, str]


def adaptive_config(request: AdaptiveRequest, bank: Bank, suite: SuiteNow, store: EvidenceStore) -> AdaptiveConfig:
    """What a new run stores of how it chooses and stops; the bank and a baseline's outcomes are put among the evidence.

    Raises EngineError for a policy that this bank cannot serve, StoreError for a baseline that is not in the store,
    ConfigError for one that has no grade for any of these tasks.
    """
    means = means_of(request.policy, request.estimator, bank, request.stop)
    return AdaptiveConfig(
        stop=request.stop,
        stop_se=request.stop_se,
        stop_cost=request.stop_cost,
        stop_seconds=request.stop_seconds,
        stop_decision=None if request.stop_decision is None else _rule(request.stop_decision, suite, store),
        policy=means.policy.name,
        estimator=means.estimator.name,
        model_error=means.estimator.model_error if isinstance(means.estimator, Hybrid) else None,
        widening=means.widening,
        asked_policy=AUTO if request.policy == AUTO else None,
        bank=keep_bank(bank, store),
        seed=request.seed,
    )


def _rule(asked: str, now: SuiteNow, store: EvidenceStore) -> DecisionRule:
    baseline, margin = read_decision(asked)
    if isinstance(baseline, float):
        return DecisionRule(baseline=asked.rpartition(":")[0], rate=baseline, margin=margin)
    row = store.run(baseline)
    same = row.config.suite_version == now.version
    ended = endings(store.trials(row.run))
    # Of a task that the baseline did not run only the suite says whether it is still the same.
    suite = [
        task
        for task in row.config.tasks
        if task in now.tasks and (ended[task].version == now.tasks[task] if task in ended else same)
    ]
    told = {task: [ended[task].passes, ended[task].graded] for task in suite if task in ended and ended[task].graded}
    if not told:
        raise ConfigError(
            "the baseline has no grade for any task of this run as it is now",
            place=f"run {row.run}",
            remedy="give a run of this suite, or a rate such as 62.5%",
        )
    blob = store.put_blob(canonical_json({"suite": suite, "outcomes": told}))
    return DecisionRule(baseline=row.run, outcomes=blob, margin=margin)


def engine_for(config: RunConfig, store: EvidenceStore) -> AdaptiveEngine:
    """A new engine of a run's own bank, policy, seed and stops. Raises EngineError for an unknown policy."""
    adaptive = config.adaptive
    if adaptive is None or adaptive.bank is None:
        raise ConfigError("this run is not adaptive")
    bank = read_bank(adaptive.bank, store)
    return AdaptiveEngine(bank, settings_for(adaptive, bank, store))


def settings_for(adaptive: AdaptiveConfig, bank: Bank, store: EvidenceStore) -> EngineSettings:
    """Engine settings of a stored configuration. `stop_se` is in percentage points there, in fractions here.

    The number of tasks is asked last: what stopped a run is the reason that was meant.
    """
    stops: list[StopRule] = []
    if adaptive.stop_decision is not None:
        stops.append(_decision_stop(adaptive.stop_decision, bank, store))
    if adaptive.stop_se is not None:
        stops.append(StandardErrorStop(adaptive.stop_se / 100))
    if adaptive.stop_cost is not None:
        stops.append(CostStop(adaptive.stop_cost))
    if adaptive.stop_seconds is not None:
        stops.append(TimeStop(adaptive.stop_seconds))
    error = adaptive.model_error
    return EngineSettings(
        policy=policy_of(adaptive.policy, bank, adaptive.stop),
        estimator=estimator_named(adaptive.estimator) if error is None else Hybrid(error),
        stops=(*stops, TasksStop(adaptive.stop)),
        seed=adaptive.seed,
        widening=adaptive.widening,
    )


def _decision_stop(rule: DecisionRule, bank: Bank, store: EvidenceStore) -> StopRule:
    # The arithmetic of decisions is loaded by those who ask for one.
    from harness.adaptive.decision import Baseline, DecisionSettings
    from harness.adaptive.stops import DecisionStop

    if rule.rate is not None:
        baseline = Baseline.of_rate(rule.rate)
    else:
        told = json.loads(store.blob(rule.outcomes or ""))
        outcomes = {task: (passes, trials) for task, (passes, trials) in told["outcomes"].items()}
        baseline = Baseline.of_outcomes(bank, outcomes, told["suite"])
    widening = 1.0 if bank.backtest is None else bank.backtest.widening
    return DecisionStop(baseline, rule.margin, rule.alpha, DecisionSettings(widening=widening))


@dataclass(frozen=True)
class Means:
    """How items are chosen and their outcomes read; `widening` as in `EngineSettings`."""

    policy: Policy
    estimator: Estimator
    widening: tuple[tuple[int, float], ...] = ()


def means_of(policy: str, estimator: str | None, bank: Bank, stop: int) -> Means:
    """The policy and the estimator asked for; `auto` is what the bank's back-test found best for runs of `stop` tasks.

    An estimator that is named goes before that of `auto`, and then has no widening: none is known for it. Raises
    EngineError, also for costs that the bank lacks.
    """
    if policy == AUTO:
        # What plans can calibrate as well, with an optimiser that a coordinator should not carry for nothing.
        from harness.adaptive.planning.auto import auto_settings

        found = auto_settings(bank, min(stop, len(bank)))
        if estimator is None:
            return Means(found.policy, found.estimator, found.widening)
        return Means(found.policy, estimator_named(estimator))
    chosen = policy_of(policy, bank, stop)
    return Means(chosen, EngineSettings().estimator if estimator is None else estimator_named(estimator))


def policy_of(name: str, bank: Bank, stop: int) -> Policy:
    """The policy of a run of `stop` tasks over this bank. Raises EngineError, also for costs that the bank lacks."""
    return policy_for(name, bank, traits_of(bank, stop))


def traits_of(bank: Bank, stop: int) -> ItemTraits:
    """What is known of the bank's items beside their parameters; a task's group is the folder in its name."""
    folders = tuple(item.rpartition("/")[0] for item in bank.item_ids)
    return ItemTraits(
        cost_usd=_positive(bank.cost_usd),
        duration_s=_positive(bank.duration_s),
        groups=folders if any(folders) else None,
        tasks=min(stop, len(bank)),
    )


def _positive(amounts: FloatArray | None) -> FloatArray | None:
    """Amounts that value can be divided by: a cost of 0 says that nothing was measured."""
    if amounts is None or not (amounts > 0).any():
        return None
    return np.where(amounts > 0, amounts, np.nan)
