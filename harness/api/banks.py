"""From files of past runs to a bank; as a program, the process in which `calibrating` has that done."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import date, timedelta

import numpy as np

from harness.adaptive.bank import Bank
from harness.adaptive.bank_file import save_bank
from harness.adaptive.calibration import CalibrationSettings, calibrate
from harness.adaptive.errors import AdaptiveError
from harness.adaptive.responses import Responses
from harness.api.calibrating import UNUSABLE, CalibrationRequest
from harness.records.errors import AssayError, ConfigError
from harness.store.history import History, read_history


def calibrate_history(request: CalibrationRequest) -> Bank:
    """Read, select, fit. Raises ConfigError with file and line, CalibrationError for a request that cannot be met."""
    history = read_history(*request.history)
    notes = []
    if len(history.suite_versions) > 1:
        notes.append(f"{len(history.suite_versions)} suite versions: equal task names may be different tasks")
    if request.window_days is not None:
        history, note = within(history, request.window_days)
        notes.append(note)
    settings = CalibrationSettings(dims=request.dims, seed=request.seed)
    bank = calibrate(responses_of(history), settings).bank
    provenance = bank.provenance
    return replace(bank, provenance=replace(provenance, notes=(*provenance.notes, *notes)))


def responses_of(history: History) -> Responses:
    """The counts of a history, as calibration reads them: one row per agent and date, its repeats added up.

    Trials of one agent on one day share one ability; as rows of their own they would pass for as many agents.
    """
    keys = list(zip(history.agents, history.dates, strict=True))
    rows = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    if len(rows) == len(keys):
        names: tuple[str, ...] = history.run_ids
    else:
        named = [" ".join(part for part in key if part) for key in rows]
        names = tuple(named) if len(set(named)) == len(named) else tuple(" | ".join(key) for key in rows)
    at = np.array([rows[key] for key in keys], dtype=np.int64)
    passes, trials = (np.zeros((len(rows), len(history.tasks))) for _ in range(2))
    np.add.at(passes, at, history.passes)
    np.add.at(trials, at, history.trials)
    return Responses(names, history.tasks, passes, trials, tuple(day for _, day in rows))


def within(history: History, days: float) -> tuple[History, str]:
    """The runs at most `days` older than the last, and a note of what was left out. Raises ConfigError.

    A run without a date is older than any window.
    """
    dated = [_day(run, text) for run, text in zip(history.run_ids, history.dates, strict=True)]
    known = [day for day in dated if day is not None]
    if not known:
        raise ConfigError("no run of the history has a date", place="--window", remedy="leave the window out")
    first = max(known) - timedelta(days=days)
    kept = [number for number, day in enumerate(dated) if day is not None and day > first]
    undated = len(dated) - len(known)
    without = f", {undated} without a date" if undated else ""
    note = f"window of {days:g} days to {max(known)}: {len(dated) - len(kept)} of {len(dated)} runs left out{without}"
    return history.only(kept), note


def _day(run: str, text: str) -> date | None:
    if not text:
        return None
    try:
        return date.fromisoformat(text[:10])
    except ValueError:
        raise ConfigError(f"date {text!r} of run {run!r} is not like 2025-11-30", place="--window") from None


def main() -> int:
    """A request (JSON) in, a bank out; a fault of the input is one message and exit code UNUSABLE."""
    request, out = sys.argv[1:]
    try:
        save_bank(calibrate_history(CalibrationRequest.model_validate_json(request)), out)
    except (AssayError, AdaptiveError) as error:
        print(f"error: {error}", file=sys.stderr)
        return UNUSABLE
    return 0


if __name__ == "__main__":
    sys.exit(main())
