"""gp-IRT's two constants from a history, as She & Lin 2026 (arXiv:2609.21267), sections 3.3.3 and 4.2, found theirs.

The runs in order of date are halved; a model is calibrated on the first half; each run of the second half reveals a
random half of its outcomes, θ̂ is estimated from them and p-IRT predicts the run's pass rate. b̂² is the square of the
mean absolute error, σ̂² the mean over all runs of ȳ(1 − ȳ). Apart from `gp_irt`, because calibration needs an optimiser
and an estimate does not.
"""

from __future__ import annotations

import numpy as np

from harness.adaptive.ability import Outcomes, maximise
from harness.adaptive.arrays import FloatArray
from harness.adaptive.bank import Bank
from harness.adaptive.calibration.calibrate import CalibrationSettings, calibrate
from harness.adaptive.errors import CalibrationError
from harness.adaptive.estimators.gp_irt import GpIrt
from harness.adaptive.estimators.protocol import Estimator
from harness.adaptive.estimators.stratified import WEIGHTED
from harness.adaptive.keys import mix, name_keys, seeded_keys, uniforms
from harness.adaptive.responses import Responses

TOLERANCE = 1e-8


def gp_irt_from(
    history: Responses,
    settings: CalibrationSettings | None = None,
    weighted: Estimator = WEIGHTED,
    seed: int = 0,
) -> GpIrt:
    """The estimator with the constants of this history; `settings` calibrate the first half, `seed` reveals.

    Runs without dates count as in order. Raises CalibrationError under two runs with outcomes.
    """
    order = sorted(range(len(history.run_ids)), key=lambda run: history.dates[run] if history.dates else "")
    runs = [run for run in order if history.trials[run].sum() > 0]
    if len(runs) < 2:
        raise CalibrationError(
            f"{len(runs)} runs with outcomes", place="history", remedy="Give at least two: one to fit, one to predict"
        )
    first, second = runs[: len(runs) // 2], runs[len(runs) // 2 :]
    bank = calibrate(_runs(history, first), settings).bank
    names = [history.run_ids[run] for run in second]
    error = _half_revealed(bank, history.passes[second], history.trials[second], names, seed)
    rates = history.pass_rates[runs]
    return GpIrt(float(np.abs(error).mean() ** 2), float((rates * (1.0 - rates)).mean()), weighted)


def _half_revealed(bank: Bank, passes: FloatArray, trials: FloatArray, names: list[str], seed: int) -> FloatArray:
    """p-IRT minus pass rate for each run, (R,), with half of its items revealed, those of the smallest keys."""
    keys = uniforms(mix(seeded_keys(seed, "reveal", names)[:, None], name_keys(bank.item_ids)[None, :]))
    seen = trials > 0
    rank = np.argsort(np.argsort(np.where(seen, keys, 2.0), axis=1), axis=1)
    revealed = rank < np.ceil(seen.sum(axis=1, keepdims=True) / 2.0)
    shape = (len(names), len(bank), bank.d)
    outcomes = Outcomes(
        loadings=np.broadcast_to(bank.alpha, shape),
        offsets=np.broadcast_to(bank.beta, shape[:2]),
        passes=passes * revealed,
        trials=trials * revealed,
        mean=bank.prior_mean,
        precision=bank.prior_precision,
    )
    theta = maximise(np.tile(bank.prior_mean, (len(names), 1)), outcomes, TOLERANCE)
    rates = np.divide(passes, trials, out=np.zeros(passes.shape), where=seen)
    predicted = np.where(revealed, rates, bank.probability(theta)) * seen
    return np.asarray((predicted - rates).sum(axis=1) / seen.sum(axis=1))


def _runs(history: Responses, runs: list[int]) -> Responses:
    dates = tuple(history.dates[run] for run in runs) if history.dates else ()
    ids = tuple(history.run_ids[run] for run in runs)
    return Responses(ids, history.item_ids, history.passes[runs], history.trials[runs], dates)
