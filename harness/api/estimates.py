"""Estimates of stored runs, taken apart."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from harness.adaptive.appraisal import expected_error, person_fit
from harness.adaptive.bank import Bank, prior_bank
from harness.adaptive.bank_file import load_bank
from harness.adaptive.engine import AdaptiveEngine, EngineSettings
from harness.adaptive.maintenance import ability_range
from harness.adaptive.selection import Choice
from harness.adaptive.state import Withdrawal
from harness.adaptive.stops import Stop
from harness.api.adaptive import read_bank, settings_for
from harness.api.request import DEFAULT_STORE
from harness.api.stores import open_store
from harness.protocols import EvidenceStore
from harness.records.errors import ConfigError
from harness.records.run import RunRow
from harness.report.endings import endings
from harness.report.estimates import EstimateReport, SurpriseLine
from harness.runner.schedule import STOP, UPDATE
from harness.store.flat import agent_name

NO_BANK = "no bank: every task counts alike, and the rest is predicted to go as what ran"


def appraise(run: str, store: str = DEFAULT_STORE, bank: str | None = None) -> EstimateReport:
    """The estimate of a run, by id, unique prefix or `latest`, with what stands behind it.

    An adaptive run is read with the bank it ran with; a fixed one with `bank` (a file), or with none.

    Raises
    ------
    StoreError, BankFileError
        If there is no such run, or the bank cannot be read.
    ConfigError
        If every task of the run is unavailable.
    """
    with open_store(store) as opened:
        row = opened.run(run)
        engine = engine_of(row, opened, None if bank is None else load_bank(bank))
        ended = [str(event.payload["detail"]) for event in opened.events(row.run, [STOP])]
    return _report(row, engine, ended[-1] if ended else None)


def engine_of(row: RunRow, store: EvidenceStore, bank: Bank | None = None) -> AdaptiveEngine:
    """The engine after all that the run has shown so far, without a stop: `next` says what would be run now.

    With `bank` the run is read with that one, whatever it ran with; it is aligned with the run's tasks.
    """
    adaptive = row.config.adaptive
    if adaptive is not None and adaptive.bank is not None and bank is None:
        own = read_bank(adaptive.bank, store)
        engine = AdaptiveEngine(own, replace(settings_for(adaptive, own, store), stops=()))
        engine.replay(event.payload for event in store.events(row.run, [UPDATE]))
        return engine
    tasks = row.config.tasks
    known = prior_bank(tasks) if bank is None else bank.align(tasks)
    asked = EngineSettings(seed=row.config.seed) if adaptive is None else settings_for(adaptive, known, store)
    engine = AdaptiveEngine(known, replace(asked, stops=()))
    for task, ended in endings(store.trials(row.run)).items():
        if ended.graded:
            engine.observe(task, ended.passes, ended.graded)
        else:
            engine.withdraw(task, ended.without or Withdrawal.UNGRADED, ended.why)
    return engine


def _report(row: RunRow, engine: AdaptiveEngine, ended: str | None) -> EstimateReport:
    state, found, fit = engine.state, engine.estimate(), person_fit(engine.state)
    if found.n_items == 0:
        raise ConfigError("every task is unavailable: there is nothing to estimate", place=f"run {row.run}")
    withdrawn = [kind for kind, _ in state.withdrawn.values()]
    step: Choice | Stop = engine.next()
    after = _error_after(engine, step.item) if isinstance(step, Choice) else None
    passed = sum(passes / trials for passes, trials in zip(state.passes, state.trials, strict=True))
    share = passed / found.n_items if found.n_items else 0.0
    provenance = engine.bank.provenance
    return EstimateReport(
        run=row.run,
        agent=agent_name(row.config),
        suite=row.config.suite,
        adaptive=row.config.adaptive is not None,
        value=found.value,
        lower=found.lower,
        upper=found.upper,
        level=found.level,
        standard_error=found.standard_error,
        method=found.method,
        tasks=found.n_items,
        executed=found.executed,
        passed_share=share,
        predicted=found.n_items - found.executed,
        predicted_share=found.value - share,
        ungraded=withdrawn.count(Withdrawal.UNGRADED),
        unavailable=withdrawn.count(Withdrawal.UNAVAILABLE),
        bank=engine.bank.digest,
        bank_method=provenance.method,
        ability=tuple(state.theta.tolist()),
        ability_sd=tuple(np.sqrt(np.diagonal(state.covariance)).tolist()),
        fit=fit.lz if math.isfinite(fit.lz) else None,
        misfits=fit.misfits,
        surprises=tuple(
            SurpriseLine(task=odd.item, expected=odd.expected, rate=odd.rate, residual=odd.residual)
            for odd in fit.surprises
        ),
        next_task=step.item if isinstance(step, Choice) else None,
        error_after=after,
        ended=ended,
        notes=tuple(_notes(engine)),
    )


def _error_after(engine: AdaptiveEngine, item: str) -> float:
    pairs = engine.settings.widening or ((0, 1.0),)
    tasks, factors = zip(*pairs, strict=True)
    widening = float(np.interp(len(engine.state.items) + 1, tasks, factors))
    return expected_error(engine.state, item, engine.settings.estimator, widening)


def _notes(engine: AdaptiveEngine) -> Iterator[str]:
    if engine.bank.provenance.method == "prior":
        yield NO_BANK
    elif engine.state.items:
        state = engine.state
        found = ability_range(engine.bank, state.theta, covariance=state.covariance)
        if found is not None:
            yield f"{found.sentence}: {found.remedy[:1].lower()}{found.remedy[1:]}"
