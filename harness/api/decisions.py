"""Decides between two stored runs, complete or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from harness.adaptive.bank import Bank, prior_bank
from harness.adaptive.bank_file import load_bank
from harness.adaptive.decision import Baseline, DecisionSettings, decide, evidence_of
from harness.adaptive.evidence import Evidence
from harness.adaptive.state import Withdrawal
from harness.api.adaptive import read_bank
from harness.api.estimates import NO_BANK
from harness.api.request import DEFAULT_STORE
from harness.api.stores import open_store
from harness.records.base import Record
from harness.records.errors import ConfigError
from harness.records.run import RunRow
from harness.report.decisions import DecisionReport
from harness.report.endings import Ending, endings
from harness.store.flat import agent_name


class GateRequest(Record):
    """`baseline` is a run of the same or another store, or a rate (a share). `margin`, `alpha`, `beta` are shares."""

    run: str
    baseline: str | float
    margin: float = 0.02
    alpha: float = 0.05
    beta: float | None = None
    truth: Literal["suite", "agent"] = "suite"
    bank: str | None = None
    store: str = DEFAULT_STORE
    baseline_store: str | None = None


@dataclass(frozen=True, eq=False)
class _Side:
    row: RunRow
    endings: Mapping[str, Ending]
    bank: Bank | None

    @property
    def unavailable(self) -> frozenset[str]:
        return frozenset(task for task, ended in self.endings.items() if ended.without is Withdrawal.UNAVAILABLE)


def gate(request: GateRequest) -> DecisionReport:
    """Better, no worse, worse, or undecided, with error rates that hold however often it is asked.

    Both runs are read with one bank: the one named, else the candidate's own, else the baseline's. Tasks that are
    unavailable in either are left out. If the suite's version changed in between, only tasks that both ran at one
    version are compared.

    Raises
    ------
    StoreError, BankFileError
        If a run or the bank is not there.
    ConfigError, EngineError
        If the two have no task in common, or margin or error rates cannot be meant.
    """
    candidate = _side(request.run, request.store)
    against = None
    if isinstance(request.baseline, str):
        against = _side(request.baseline, request.baseline_store or request.store)
    tasks, notes = _compared(candidate, against)
    bank = _bank(request, candidate, against)
    if bank is None:
        notes.append(NO_BANK)
    known = prior_bank(tasks) if bank is None else bank.align(tasks)
    ungraded = np.array([_ungraded(candidate, task) for task in tasks], dtype=np.bool_)
    widening = 1.0 if known.backtest is None else known.backtest.widening
    settings = DecisionSettings(beta=request.beta, truth=request.truth, widening=widening)
    baseline = Baseline.of_rate(request.baseline) if isinstance(request.baseline, float) else None
    if against is not None:
        baseline = Baseline.of_run(_evidence(against, known))
    assert baseline is not None
    found = decide(_evidence(candidate, known), baseline, request.margin, request.alpha, settings, ungraded)
    return DecisionReport(
        candidate=candidate.row.run,
        candidate_agent=agent_name(candidate.row.config),
        baseline=against.row.run if against else f"{100 * float(request.baseline):g} %",
        baseline_agent=agent_name(against.row.config) if against else None,
        verdict=found.verdict.value,
        sentence=found.sentence,
        truth=found.truth,
        difference=found.difference,
        standard_error=found.standard_error,
        lower=found.lower,
        upper=found.upper,
        margin=found.margin,
        alpha=found.alpha,
        beta=found.beta,
        tasks=found.n_items,
        executed=found.executed,
        remaining=found.remaining,
        paired=found.paired,
        within_reach=found.within_reach,
        notes=tuple(notes),
    )


def _side(run: str, folder: str) -> _Side:
    with open_store(folder) as store:
        row = store.run(run)
        own = row.config.adaptive.bank if row.config.adaptive is not None else None
        return _Side(row, endings(store.trials(row.run)), None if own is None else read_bank(own, store))


def _bank(request: GateRequest, candidate: _Side, against: _Side | None) -> Bank | None:
    if request.bank is not None:
        return load_bank(request.bank)
    known = [side.bank for side in (candidate, against) if side is not None and side.bank is not None]
    calibrated = [bank for bank in known if bank.provenance.method != "prior"]
    return next(iter(calibrated), None)


def _compared(candidate: _Side, against: _Side | None) -> tuple[tuple[str, ...], list[str]]:
    """The tasks whose rates are compared, in the candidate's order, and what a reader must know of the choice."""
    tasks, notes = candidate.row.config.tasks, []
    out = candidate.unavailable
    if against is not None:
        common = set(tasks) & set(against.row.config.tasks)
        only = len(set(tasks) | set(against.row.config.tasks)) - len(common)
        if only:
            notes.append(f"{only} tasks of one run only are left out")
        out = out | against.unavailable
        tasks = tuple(task for task in tasks if task in common)
        if candidate.row.config.suite_version != against.row.config.suite_version:
            ran = {task: (candidate.endings.get(task), against.endings.get(task)) for task in tasks}
            tasks = tuple(t for t, (own, other) in ran.items() if own and other and own.version == other.version)
            notes.append(f"the suite has changed in between: only the {len(tasks)} tasks that both ran unchanged count")
        unsettled = sum(_ungraded(against, task) for task in tasks if task not in out)
        if unsettled:
            notes.append(f"{unsettled} tasks of the baseline ran without a grade: they are predicted")
    if out & set(tasks):
        notes.append(f"{len(out & set(tasks))} unavailable tasks are left out")
    kept = tuple(task for task in tasks if task not in out)
    if not kept:
        raise ConfigError("the runs have no task in common", remedy="compare runs of one suite")
    return kept, notes


def _evidence(side: _Side, bank: Bank) -> Evidence:
    ended = [side.endings.get(task) for task in bank.item_ids]
    passes = np.array([one.passes if one else 0 for one in ended], dtype=np.float64)
    return evidence_of(bank, passes, np.array([one.graded if one else 0 for one in ended], dtype=np.float64))


def _ungraded(side: _Side, task: str) -> bool:
    ended = side.endings.get(task)
    return ended is not None and ended.without is Withdrawal.UNGRADED
