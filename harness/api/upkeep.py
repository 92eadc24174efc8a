"""Whether a bank still holds for recent runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from harness.adaptive.arrays import FloatArray
from harness.adaptive.bank import Bank
from harness.adaptive.bank_file import load_bank
from harness.adaptive.maintenance import Finding, item_drift
from harness.records.errors import ConfigError
from harness.report.upkeep import DriftReport, FindingLine
from harness.store.history import History, read_history


def drift(bank_file: str, histories: Sequence[str], alpha: float = 0.05) -> DriftReport:
    """Items that recent runs find easier or harder than the bank says; runs in order of date, then of the files.

    Raises
    ------
    ConfigError
        With file and line, or if no task of the runs is in the bank.
    BankFileError, AdaptiveError
        If the bank cannot be read, or alpha is no rate.
    """
    bank, history = load_bank(bank_file), read_history(*histories)
    known = [task for task in history.tasks if task in bank.index]
    if not known:
        raise ConfigError(
            "no task of these runs is in the bank", place=", ".join(histories), remedy="give runs of its suite"
        )
    order = sorted(range(len(history.run_ids)), key=lambda run: history.dates[run])
    passes, trials = _counts(history, bank, order, known)
    found = item_drift(bank, passes, trials, alpha)
    return DriftReport(
        bank=bank.digest,
        runs=len(order),
        items=len(known),
        alpha=alpha,
        findings=tuple(_line(finding, [history.run_ids[run] for run in order]) for finding in found),
        notes=tuple(_notes(bank, history, known)),
    )


def _counts(history: History, bank: Bank, order: Sequence[int], known: Sequence[str]) -> tuple[FloatArray, FloatArray]:
    at, place = bank.positions(known), [history.tasks.index(task) for task in known]
    passes, trials = (np.zeros((len(order), len(bank))) for _ in range(2))
    passes[:, at] = history.passes[np.ix_(order, place)]
    trials[:, at] = history.trials[np.ix_(order, place)]
    return passes, trials


def _line(finding: Finding, runs: Sequence[str]) -> FindingLine:
    event = finding.as_event()
    since = finding.numbers.get("since_run")
    return FindingLine(**event, since=None if since is None else runs[int(since)])


def _notes(bank: Bank, history: History, known: Sequence[str]) -> list[str]:
    notes = []
    if len(known) < len(history.tasks):
        notes.append(f"{len(history.tasks) - len(known)} tasks of these runs are not in the bank")
    last = bank.provenance.last_date
    seen = sum(bool(day) and day <= last for day in history.dates)
    if seen:
        notes.append(
            f"{seen} of {len(history.dates)} runs are no later than the bank's last ({last}): it may know them"
        )
    return notes
