"""Which dimension: fitted on a part of the cells, scored on the rest; and how far each model is to be believed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from harness.adaptive.arrays import BoolArray, FloatArray
from harness.adaptive.calibration.candidate import Fitted, fit_candidate, log_likelihood
from harness.adaptive.calibration.cells import Counts
from harness.adaptive.calibration.posterior import Posterior
from harness.adaptive.calibration.settings import CalibrationSettings, Candidate
from harness.adaptive.errors import CalibrationError
from harness.adaptive.keys import mix, name_keys, seeded_keys, uniforms

ROUGH = 10.0  # comparing models needs no more
_STACKING_STEPS = 500
_STACKING_TOLERANCE = 1e-6
_SURE = 1e-9
_AT_LEAST = 4  # candidates scored before the search may end


@dataclass(frozen=True, eq=False)
class Scored:
    """A candidate fitted to the shown cells, the held-out log-likelihood of each run (R,), and the probability it gives
    each hidden cell (h,). `plain` is the posterior with one kind of items, from which others may start."""

    dims: Candidate
    fitted: Fitted
    plain: Posterior
    by_run: FloatArray
    probability: FloatArray

    @property
    def kinds(self) -> int:
        """How many kinds of items its prior tells apart."""
        return self.fitted.posterior.prior.kinds


def hidden_cells(counts: Counts, run_ids: Sequence[str], item_ids: Sequence[str], seed: int, share: float) -> BoolArray:
    """Which cells (c,) to hide: each with probability `share`, by its run's and item's name alone."""
    keys = mix(seeded_keys(seed, "held-out cells", run_ids)[counts.runs], name_keys(item_ids)[counts.items])
    return np.asarray(uniforms(keys) < share)


def affordable(dims: Candidate, n_runs: int) -> bool:
    """Whether so many runs can tell d abilities: d at most a quarter of them."""
    return dims == "rasch" or dims <= n_runs // 4


def allowed_candidates(settings: CalibrationSettings, n_runs: int) -> list[Candidate]:
    """The candidates with d at most a quarter of the runs; raises CalibrationError if there is none."""
    allowed = [dims for dims in settings.candidates if affordable(dims, n_runs)]
    if not allowed:
        raise CalibrationError(
            f"no candidate d fits {n_runs} runs (at most a quarter of them)",
            place="candidates",
            remedy="Add 'rasch' or 1 to the candidates",
        )
    return allowed


def score_candidate(
    shown: Counts, hidden: Counts, dims: Candidate, settings: CalibrationSettings, start: Posterior | None = None
) -> Scored:
    """`dims` fitted to `shown` (more roughly) from `start`, and asked for `hidden`: with kinds of items if these are
    worth it.
    """
    rough = replace(settings, tolerance=ROUGH * settings.tolerance)
    fitted = fit_candidate(shown, dims, replace(rough, kinds=1), start)
    plain = scored_on(hidden, dims, fitted, fitted.posterior)
    if not may_tell_kinds(dims, settings):
        return plain
    mixed = scored_on(hidden, dims, fit_candidate(shown, dims, rough, fitted.posterior), fitted.posterior)
    return (plain, mixed)[simplest_within_one_error([plain.by_run, mixed.by_run])]


def may_tell_kinds(dims: Candidate, settings: CalibrationSettings) -> bool:
    """Whether a mixture of kinds of items is to be tried."""
    return settings.method == "variational" and settings.kinds > 1 and dims != "rasch" and dims > 1


def scored_on(hidden: Counts, dims: Candidate, fitted: Fitted, plain: Posterior) -> Scored:
    """What `fitted` says of the hidden cells."""
    cells = hidden.sparse_cells()
    probability = [fitted.probability(block) for block in cells.blocks]
    by_run = log_likelihood(fitted, cells)
    return Scored(dims, fitted, plain, by_run, np.concatenate(probability) if probability else np.zeros(0))


def simplest_within_one_error(by_run: Sequence[FloatArray]) -> int:
    """Position of the first candidate whose total is within one standard error of the best total.

    `by_run`: for each candidate, from simple to rich, the held-out log-likelihood of every run, (R,). The
    error is that of the paired difference to the best, runs being the independent units: √(R ·
    var_r(difference)). With few runs a richer model must earn its place (Breiman et al. 1984, "Classification
    and Regression Trees", section 3.4.3: the 1-SE rule).
    """
    totals = [float(gains.sum()) for gains in by_run]
    best = int(np.argmax(totals))
    for position, gains in enumerate(by_run[:best]):
        lead = by_run[best] - gains
        error = float(np.sqrt(len(lead) * lead.var(ddof=1))) if len(lead) > 1 else float("inf")
        if totals[best] - totals[position] <= error:
            return position
    return best


def gone_too_far(by_run: Sequence[FloatArray]) -> bool:
    """Whether the last of the candidates, from simple to rich, is under the best total."""
    totals = [float(gains.sum()) for gains in by_run]
    return len(totals) > _AT_LEAST and totals[-1] < max(totals)


def stacking_weights(hidden: Counts, probabilities: Sequence[FloatArray]) -> FloatArray:
    """Weights (M,) ≥ 0 with sum 1 that maximise Σ_cells k log Σ_m w_m p_m + (n − k) log(1 − Σ_m w_m p_m).

    `probabilities`: each model's P(pass) of the hidden cells, (h,). Expectation maximisation from equal weights; the
    problem is concave. Equal weights if there is nothing to score on. Source: Wolpert 1992, "Stacked generalization";
    Yao et al. 2018, "Using stacking to average Bayesian predictive distributions", equation 4.
    """
    models = np.clip(np.array(probabilities), _SURE, 1.0 - _SURE)
    weights = np.full(len(models), 1.0 / len(models))
    total = float(hidden.trials.sum())
    if total == 0:
        return weights
    for _ in range(_STACKING_STEPS):
        passed = models / (weights @ models) @ hidden.passes
        # Σ w (1 − p) rather than 1 − Σ w p: else an error in Σ w = 1 grows from step to step.
        failed = (1.0 - models) / (weights @ (1.0 - models)) @ (hidden.trials - hidden.passes)
        after = weights * (passed + failed) / total
        if float(np.max(np.abs(after - weights))) < _STACKING_TOLERANCE:
            return np.asarray(after)
        weights = after
    return weights


def mean_scores(scored: Sequence[Scored], hidden: Counts) -> Mapping[str, float]:
    """Candidate → mean held-out log-likelihood per trial."""
    total = float(hidden.trials.sum())
    return {str(one.dims): float(one.by_run.sum() / total) for one in scored}
