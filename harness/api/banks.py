"""From files of past runs to a bank; as a program, the process in which `calibrating` has that done."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

import numpy as np

from harness.adaptive.bank import Bank
from harness.adaptive.bank_file import load_bank, save_bank
from harness.adaptive.calibration import CalibrationSettings, calibrate
from harness.adaptive.errors import AdaptiveError
from harness.adaptive.likelihood import Priors
from harness.adaptive.planning import PlanningSettings, planned
from harness.adaptive.responses import Responses
from harness.api.calibrating import UNUSABLE, CalibrationRequest
from harness.records.errors import AssayError, ConfigError
from harness.store.history import Amounts, History, read_history


def calibrate_history(request: CalibrationRequest) -> Bank:
    """Read and fit. Raises ConfigError with file and line, AdaptiveError for a request that cannot be met."""
    history = read_history(*request.history)
    if request.prior and request.method != "map":
        raise ConfigError("priors are learnt from the history", place="--prior", remedy="--method map takes given ones")
    settings = CalibrationSettings(
        dims=request.dims,
        seed=request.seed,
        method=request.method,
        priors=_priors(request.prior),
        window_days=request.window_days,
        half_life_days=request.half_life_days,
    )
    start = None if request.start is None else load_bank(request.start)
    bank = bank_of(history, settings, start, tested=request.backtest)
    if len(history.suite_versions) < 2:
        return bank
    note = f"{len(history.suite_versions)} suite versions: equal task names may be different tasks"
    return replace(bank, provenance=replace(bank.provenance, notes=(*bank.provenance.notes, note)))


def bank_of(
    history: History, settings: CalibrationSettings, start: Bank | None = None, *, tested: bool = False
) -> Bank:
    """The bank of a history, with what its tasks cost and took; `tested` with a back-test, see `planned`.

    From a `start` the fit goes on in that bank's model and axes.
    """
    counts = counts_of(history)
    if start is not None:
        settings = replace(settings, dims="rasch" if start.provenance.method == "rasch" else start.d)
    bank = None if start is None else calibrate(counts.responses, settings, start).bank
    if tested:
        found = planned(counts.responses, counts.agents, PlanningSettings(calibration=settings)).bank
        bank = found if bank is None else replace(bank, backtest=found.backtest)
    elif bank is None:
        bank = calibrate(counts.responses, settings).bank
    return replace(bank, cost_usd=_mean(history.cost_usd), duration_s=_mean(history.seconds))


def _mean(amounts: Amounts | None) -> Amounts | None:
    """The mean of each task's known amounts, NaN where there is none."""
    if amounts is None:
        return None
    known = np.isfinite(amounts)
    total = np.where(known, amounts, 0.0).sum(axis=0)
    return np.asarray(np.divide(total, known.sum(axis=0), out=np.full(len(total), np.nan), where=known.any(axis=0)))


def _priors(asked: Mapping[str, float]) -> Priors:
    known = {field.name for field in fields(Priors)}
    unknown = sorted(asked.keys() - known)
    if unknown:
        raise ConfigError(
            f"no prior is called {unknown[0]!r}", place="--prior", remedy=f"give {', '.join(sorted(known))}"
        )
    return Priors(**asked)


@dataclass(frozen=True, eq=False)
class CountedRuns:
    """A history as calibration reads it, and whose run each row is."""

    responses: Responses
    agents: tuple[str, ...]


def counts_of(history: History) -> CountedRuns:
    """The counts of a history: one row per agent and date, its repeats added up.

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
    responses = Responses(names, history.tasks, passes, trials, tuple(day for _, day in rows))
    return CountedRuns(responses, tuple(agent for agent, _ in rows))


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
