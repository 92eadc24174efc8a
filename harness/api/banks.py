"""From files of past runs to a bank; as a program, the process in which `calibrating` has that done."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

import numpy as np

from harness.adaptive.bank import Bank
from harness.adaptive.bank_file import load_bank, save_bank
from harness.adaptive.calibration.calibrate import CalibrationSettings, calibrate
from harness.adaptive.calibration.cells import DENSE_FILL
from harness.adaptive.calibration.likelihood import Priors
from harness.adaptive.calibration.sparse import SparseResponses
from harness.adaptive.errors import AdaptiveError
from harness.adaptive.planning.auto import PlanningSettings, planned
from harness.adaptive.responses import Responses
from harness.api.calibrating import UNUSABLE, CalibrationRequest
from harness.records.errors import AssayError, ConfigError
from harness.store.history import History, read_history
from harness.store.history_table import Amounts


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
        drift=request.drift,
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
        dense = counts.responses if isinstance(counts.responses, Responses) else counts.responses.dense()
        found = planned(dense, counts.agents, PlanningSettings(calibration=settings)).bank
        bank = found if bank is None else replace(bank, backtest=found.backtest)
    elif bank is None:
        bank = calibrate(counts.responses, settings).bank
    cells = history.cells
    return replace(bank, cost_usd=_mean(history, cells.cost_usd), duration_s=_mean(history, cells.seconds))


def _mean(history: History, amounts: Amounts) -> Amounts | None:
    """The mean of each task's known amounts (c,), (N,), NaN where there is none; None where nothing is known."""
    known = np.isfinite(amounts)
    if not known.any():
        return None
    n_items = len(history.tasks)
    count = np.bincount(history.cells.items[known], minlength=n_items)
    total = np.bincount(history.cells.items[known], amounts[known], n_items)
    return np.asarray(np.divide(total, count, out=np.full(n_items, np.nan), where=count > 0))


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

    responses: Responses | SparseResponses
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
    cells = history.merged([rows[key] for key in keys])
    responses = SparseResponses(
        names,
        history.tasks,
        cells.runs,
        cells.items,
        cells.passes.astype(np.float64),
        cells.trials.astype(np.float64),
        tuple(day for _, day in rows),
    )
    full = len(cells.runs) >= DENSE_FILL * len(rows) * len(history.tasks)
    return CountedRuns(responses.dense() if full else responses, tuple(agent for agent, _ in rows))


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
