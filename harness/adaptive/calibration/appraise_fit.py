"""From a fit and its held-out predictions to a `FitReport`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from harness.adaptive.arrays import FloatArray
from harness.adaptive.calibration.candidate import Fitted
from harness.adaptive.calibration.cells import Counts
from harness.adaptive.calibration.residuals import effective_runs, mean_squares, misfits, residual_pairs
from harness.adaptive.fit_report import CalibrationBin, FitReport

_BINS = 10
_FEW_RUNS = 20
_FEW_TRIALS = 5
_OFF_BY = 3.0  # standard errors


def report_fit(
    counts: Counts,
    item_ids: Sequence[str],
    fitted: Fitted,
    hidden: Counts | None = None,
    probability: FloatArray | None = None,
) -> FitReport:
    """The report on `fitted`; `probability` (h,) is what a fit without the `hidden` cells (h,) says of them."""
    squares = mean_squares(counts.cells(), fitted)
    named, misfitting = misfits(item_ids, squares)
    pairs, pairs_found, groups = residual_pairs(counts, fitted, item_ids)
    independent = effective_runs(counts, fitted)
    bins: tuple[CalibrationBin, ...] = ()
    score: float | None = None
    if hidden is not None and probability is not None and hidden.trials.sum() > 0:
        bins = calibration_curve(hidden, probability)
        p = np.clip(probability, 1e-12, 1.0 - 1e-12)
        gain = hidden.passes @ np.log(p) + (hidden.trials - hidden.passes) @ np.log1p(-p)
        score = float(gain / hidden.trials.sum())
    held_out = sum((one.trials for one in bins), 0.0)
    gaps = sum(one.trials * abs(one.predicted - one.observed) for one in bins)
    return FitReport(
        n_runs=counts.n_runs,
        n_items=counts.n_items,
        effective_runs=independent,
        held_out_trials=held_out,
        held_out_log_likelihood=score,
        calibration=bins,
        calibration_error=gaps / held_out if bins else None,
        misfits=named,
        misfits_found=misfitting,
        pairs=pairs,
        pairs_found=pairs_found,
        groups=groups,
        thin=too_thin_for(counts, fitted, independent, bins),
    )


def calibration_curve(hidden: Counts, probability: FloatArray) -> tuple[CalibrationBin, ...]:
    """Ten bins of equal width; a bin without trials is left out."""
    place = np.minimum((probability * _BINS).astype(np.int64), _BINS - 1)
    trials = np.bincount(place, hidden.trials, _BINS)
    passes = np.bincount(place, hidden.passes, _BINS)
    predicted = np.bincount(place, hidden.trials * probability, _BINS)
    return tuple(
        CalibrationBin(
            lower=at / _BINS,
            upper=(at + 1) / _BINS,
            predicted=float(predicted[at] / trials[at]),
            observed=float(passes[at] / trials[at]),
            trials=float(trials[at]),
        )
        for at in range(_BINS)
        if trials[at] > 0
    )


def too_thin_for(counts: Counts, fitted: Fitted, independent: float, bins: Sequence[CalibrationBin]) -> tuple[str, ...]:
    """What the history does not allow, in sentences; empty if nothing was found."""
    said: list[str] = []
    if counts.effective_runs < _FEW_RUNS:
        said.append(
            f"{counts.effective_runs:.3g} runs: discriminations rest mostly on what items have in common, "
            f"and intervals are rough (about {_FEW_RUNS} runs are steady)"
        )
    if independent < 0.7 * counts.n_runs:
        said.append(
            f"the {counts.n_runs} runs are worth about {independent:.3g} independent ones: near duplicates tell little "
            "of agents not like them"
        )
    k = np.bincount(counts.items, counts.passes, counts.n_items)
    n = np.bincount(counts.items, counts.trials, counts.n_items)
    if few := int((n < _FEW_TRIALS).sum()):
        said.append(f"{few} of {counts.n_items} items have fewer than {_FEW_TRIALS} trials: these are guesses")
    constant = int(((n >= 2) & ((k <= 0) | (k >= n))).sum())
    if constant > counts.n_items // 4:
        said.append(
            f"{constant} of {counts.n_items} items were passed by all or failed by all: how they tell agents apart is "
            "unknown"
        )
    run_n = np.bincount(counts.runs, counts.trials, counts.n_runs)
    run_k = np.bincount(counts.runs, counts.passes, counts.n_runs)
    rates = run_k[run_n > 0] / run_n[run_n > 0]
    if len(rates) and np.ptp(rates) < 0.2:
        said.append(
            f"pass rates run from {100 * rates.min():.0f} % to {100 * rates.max():.0f} %: an agent outside is "
            "extrapolated"
        )
    off = [one for one in bins if _is_off(one)]
    if off:
        worst = max(off, key=lambda one: one.trials * abs(one.predicted - one.observed))
        said.append(
            f"held-out predictions of {100 * worst.predicted:.0f} % came true in {100 * worst.observed:.0f} %: the "
            "model does not hold in this history"
        )
    if not fitted.convergence.converged:
        said.append("the fit did not converge")
    return tuple(said)


def _is_off(one: CalibrationBin) -> bool:
    error = np.sqrt(max(one.predicted * (1.0 - one.predicted), 1e-4) / one.trials)
    gap = abs(one.predicted - one.observed)
    return bool(gap > _OFF_BY * error and gap > 0.03)
