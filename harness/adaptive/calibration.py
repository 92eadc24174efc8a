"""Calibration: from a history of outcomes to a bank.

    P(pass of run r on item i) = σ(α_i·θ_r − β_i)

Joint MAP estimate of a d-dimensional 2PL with Gaussian priors (`likelihood` states the objective,
`orientation` what fixes the axes), after She & Lin 2026 (arXiv:2609.21267), section 3.3.1. Departures from
that paper: the general axis has α₁ > 0 by construction; Rasch is among the candidates for d; a new agent
starts at the mean and (widened) spread of past abilities instead of 0 and I.

What happens at the edges
- A column that is empty, has a single outcome or a constant one says nothing of its own α: it is held out of
  the joint fit with the reason, gets the typical α of the others, and the β that its outcomes and the prior
  give under that α. Finite always.
- A run without outcomes is left out; a run that passed or failed everything has a finite θ by the prior.
- Fewer than `min_runs_2pl` runs: Rasch, and `Provenance.notes` says so. No run at all: `prior_bank`.
- A fit that did not converge gives a bank that says so (`provenance.convergence`); the engine refuses it
  unless told otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from harness.adaptive.arrays import FloatArray
from harness.adaptive.bank import Bank, prior_bank
from harness.adaptive.errors import CalibrationError
from harness.adaptive.fit import fit_map
from harness.adaptive.items import (
    REVERSED,
    difficulty_given,
    item_covariance,
    not_estimable,
    reversed_items,
)
from harness.adaptive.keys import mix, name_keys, seeded_keys, uniforms
from harness.adaptive.likelihood import (
    Objective,
    Parameters,
    Priors,
    centre_difficulty,
    run_log_likelihood,
)
from harness.adaptive.orientation import canonical_axes, orientation
from harness.adaptive.provenance import Convergence, Provenance
from harness.adaptive.responses import Responses

Dims = int | Literal["auto", "rasch"]

ABILITY_WIDENING = 1.2  # a coming agent is more often outside the past range than inside it
ABILITY_SHRINKAGE_RUNS = 5.0


@dataclass(frozen=True)
class CalibrationSettings:
    """`dims`: d ≥ 1, "rasch" (d = 1, α = 1), or "auto": by held-out likelihood among `candidates`, which go
    from simple to rich; the simplest within one standard error of the best is taken.

    `held_out_share` of the cells is hidden for "auto", drawn by `seed`, run and item name. `tolerance` is on
    the gradient in units of posterior standard deviation (`Convergence`).
    """

    dims: Dims = "auto"
    seed: int = 0
    priors: Priors = field(default_factory=Priors)
    candidates: tuple[int | Literal["rasch"], ...] = ("rasch", 1, 2, 3, 5)
    held_out_share: float = 0.15
    min_runs_2pl: int = 8
    max_iterations: int = 500
    tolerance: float = 1e-3

    def __post_init__(self) -> None:
        for dims in (self.dims, *self.candidates):
            if isinstance(dims, int) and dims < 1:
                raise CalibrationError(f"d = {dims}", place="dims", remedy="Give d ≥ 1, 'rasch' or 'auto'")
        if not 0 < self.held_out_share < 1 or self.max_iterations < 1 or not self.tolerance > 0:
            raise CalibrationError(
                f"{self.held_out_share}, {self.max_iterations}, {self.tolerance}",
                place="held_out_share, max_iterations, tolerance",
                remedy="Give a share in (0, 1), at least one iteration and a tolerance above 0",
            )


@dataclass(frozen=True, eq=False)
class Calibration:
    """`bank`, and the abilities `theta` (R, d) of the runs named in `run_ids` (those with outcomes), in the
    bank's axes.

    `loss` is the negative log posterior at the fit (constants left out); `orientation` the correlation of θ₁
    with the raw score (NaN under 2 runs or without spread).
    """

    bank: Bank
    run_ids: tuple[str, ...]
    theta: FloatArray
    loss: float
    orientation: float


@dataclass(frozen=True, eq=False)
class _ItemFit:
    """A joint fit, completed for the columns that were held out of it."""

    parameters: Parameters
    held_out: dict[int, str]
    rasch: bool
    loss: float
    convergence: Convergence


def calibrate(responses: Responses, settings: CalibrationSettings | None = None) -> Calibration:
    """Fit a bank to `responses`; deterministic given both. Time O(iterations · R · N · d).

    Raises
    ------
    CalibrationError
        If "auto" is asked for with no candidate that this history allows.
    """
    settings = settings or CalibrationSettings()
    used = np.flatnonzero(responses.trials.sum(axis=1) > 0)
    run_ids = tuple(responses.run_ids[r] for r in used)
    passes, trials = responses.passes[used], responses.trials[used]
    if not len(used):
        bank = prior_bank(responses.item_ids, settings.seed)
        return Calibration(bank, (), np.zeros((0, 1)), 0.0, float("nan"))
    notes: list[str] = []
    if len(used) < len(responses.run_ids):
        notes.append(f"{len(responses.run_ids) - len(used)} runs without any graded outcome left out")
    dims, scores = _resolve_dims(run_ids, responses.item_ids, passes, trials, settings, notes)
    fit = _fit_items(passes, trials, dims, settings)
    raw_score = passes.sum(axis=1) / trials.sum(axis=1)
    oriented = canonical_axes(fit.parameters, raw_score)
    agreement = orientation(oriented.theta, raw_score)
    if agreement <= 0:
        notes.append(f"general ability and raw score correlate at {agreement:.2f}: do not trust this bank")
    provenance = Provenance(
        method="rasch" if fit.rasch else "2pl",
        d=oriented.alpha.shape[1],
        seed=settings.seed,
        n_runs=len(used),
        history_sha256=responses.sha256,
        first_date=min((date for date in responses.dates if date), default=""),
        last_date=max((date for date in responses.dates if date), default=""),
        convergence=fit.convergence,
        held_out={responses.item_ids[i]: why for i, why in sorted(fit.held_out.items())},
        flagged=_flags(responses.item_ids, passes, trials, oriented, fit.held_out),
        dimension_scores=scores,
        notes=tuple(notes),
    )
    mean, covariance = ability_prior(oriented.theta)
    calibrated = np.ones(len(responses.item_ids), dtype=np.bool_)
    calibrated[list(fit.held_out)] = False
    bank = Bank(
        item_ids=responses.item_ids,
        alpha=oriented.alpha,
        beta=oriented.beta,
        prior_mean=mean,
        prior_covariance=covariance,
        provenance=provenance,
        calibrated=calibrated,
        item_covariance=item_covariance(trials, oriented, settings.priors, fit.rasch),
    )
    return Calibration(bank, run_ids, oriented.theta, fit.loss, agreement)


def ability_prior(theta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean (d,) and covariance (d, d) for a coming agent from past abilities `theta` (R, d), R ≥ 1.

    Covariance = 1.2 (S + 5 I) / (R + 5), S the scatter about the mean: shrunk towards the prior of
    calibration where runs are few.
    """
    mean = theta.mean(axis=0)
    scatter = (theta - mean).T @ (theta - mean)
    n_runs, d = theta.shape
    shrunk = (scatter + ABILITY_SHRINKAGE_RUNS * np.eye(d)) / (n_runs + ABILITY_SHRINKAGE_RUNS)
    return mean, ABILITY_WIDENING * shrunk


def _resolve_dims(
    run_ids: tuple[str, ...],
    item_ids: tuple[str, ...],
    passes: FloatArray,
    trials: FloatArray,
    settings: CalibrationSettings,
    notes: list[str],
) -> tuple[int | Literal["rasch"], Mapping[str, float]]:
    """The dimension to fit and the held-out scores that chose it (empty unless "auto" had a choice)."""
    if settings.dims == "rasch":
        return "rasch", {}
    if len(run_ids) < settings.min_runs_2pl:
        notes.append(f"{len(run_ids)} runs are too few for discriminations (under {settings.min_runs_2pl}): Rasch")
        return "rasch", {}
    if settings.dims != "auto":
        return settings.dims, {}
    keys = mix(seeded_keys(settings.seed, "held-out cells", run_ids)[:, None], name_keys(item_ids)[None, :])
    hidden = uniforms(keys) < settings.held_out_share
    n_hidden = trials[hidden].sum()
    allowed = [dims for dims in settings.candidates if dims == "rasch" or dims <= len(run_ids) // 4]
    if not allowed:
        raise CalibrationError(
            f"no candidate d fits {len(run_ids)} runs (at most a quarter of them)",
            place="candidates",
            remedy="Add 'rasch' or 1 to the candidates",
        )
    if len(allowed) == 1 or n_hidden == 0:
        return allowed[0], {}
    by_run: list[FloatArray] = []
    rough = replace(settings, tolerance=10.0 * settings.tolerance)  # comparing needs no more
    for dims in allowed:
        fit = _fit_items(np.where(hidden, 0.0, passes), np.where(hidden, 0.0, trials), dims, rough)
        shown = np.where(hidden, passes, 0.0), np.where(hidden, trials, 0.0)
        by_run.append(run_log_likelihood(*shown, fit.parameters))
    scores = {str(dims): float(gains.sum() / n_hidden) for dims, gains in zip(allowed, by_run, strict=True)}
    return allowed[simplest_within_one_error(by_run)], scores


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


def _fit_items(
    passes: FloatArray, trials: FloatArray, dims: int | Literal["rasch"], settings: CalibrationSettings
) -> _ItemFit:
    """Joint fit of the estimable columns, then stand-in parameters for the others."""
    rasch = dims == "rasch"
    d = 1 if dims == "rasch" else dims
    held_out = not_estimable(passes, trials)
    kept = np.setdiff1d(np.arange(passes.shape[1]), list(held_out))
    centre = centre_difficulty(passes[:, kept], trials[:, kept])
    objective = Objective(passes[:, kept], trials[:, kept], d, rasch, settings.priors, centre)
    fit = fit_map(objective, settings.max_iterations, settings.tolerance)
    alpha, beta = np.zeros((passes.shape[1], d)), np.zeros(passes.shape[1])
    alpha[:, 0] = 1.0
    alpha[kept], beta[kept] = fit.parameters.alpha, fit.parameters.beta
    if held_out:
        out = np.array(sorted(held_out))
        if len(kept):
            alpha[out, 0] = np.exp(np.log(fit.parameters.alpha[:, 0]).mean())
        theta = fit.parameters.theta
        beta[out] = difficulty_given(passes[:, out], trials[:, out], theta @ alpha[out].T, centre, settings.priors)
    return _ItemFit(Parameters(fit.parameters.theta, alpha, beta), held_out, rasch, fit.loss, fit.convergence)


def _flags(
    item_ids: tuple[str, ...],
    passes: FloatArray,
    trials: FloatArray,
    parameters: Parameters,
    held_out: Mapping[int, str],
) -> dict[str, str]:
    suspicious = reversed_items(passes, trials, parameters.theta[:, 0])
    return {item_ids[i]: REVERSED for i in np.flatnonzero(suspicious) if int(i) not in held_out}
