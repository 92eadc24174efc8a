"""Calibration: from a history of outcomes to a bank.

    P(pass of run r on item i) = σ(α_i·θ_r − β_i)

A d-dimensional 2PL, after She & Lin 2026 (arXiv:2609.21267), section 3.3.1. By default every item and run has a
Gaussian posterior and the priors of the items are learnt (`variational`); `method="map"` gives the joint maximum a
posteriori instead (`likelihood`). Departures from that paper: a general axis that points to the raw score; Rasch among
the candidates for d; item uncertainty; a new agent starts at the mean and (widened) spread of past abilities instead of
0 and I.

What happens at the edges
- Under "variational" an item that all runs passed or failed has the posterior that its outcomes and the learnt prior
  give, finite and wide, and `Provenance.flagged` says so. An item with one outcome or none is marked prior-only
  (`held_out`). Under "map" all of these are held out of the joint fit with the reason and get the typical α of the
  others and the β that their outcomes and the prior give.
- A run without outcomes is left out; a run that passed or failed everything has a finite θ by the prior.
- Fewer than `min_runs_2pl` runs: Rasch, and `Provenance.notes` says so. No run at all: `prior_bank`.
- A fit that did not converge gives a bank that says so (`provenance.convergence`); the engine refuses it
  unless told otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from harness.adaptive.arrays import FloatArray
from harness.adaptive.bank import Alternative, Bank, prior_bank
from harness.adaptive.calibration.ability_prior import coming_covariance, past_abilities
from harness.adaptive.calibration.appraise_fit import report_fit
from harness.adaptive.calibration.candidate import Fitted, fit_candidate
from harness.adaptive.calibration.cells import Cells, Counts
from harness.adaptive.calibration.drift_choice import (
    DriftChoice,
    WalkSearch,
    choose_drift,
    fit_walking,
    most_periods,
    sd_of,
)
from harness.adaptive.calibration.item_prior import ItemPrior
from harness.adaptive.calibration.items import REVERSED, item_covariance, not_estimable, reversed_items
from harness.adaptive.calibration.likelihood import Parameters
from harness.adaptive.calibration.model_choice import (
    ROUGH,
    Scored,
    allowed_candidates,
    gone_too_far,
    hidden_cells,
    may_tell_kinds,
    mean_scores,
    score_candidate,
    simplest_within_one_error,
    stacking_weights,
)
from harness.adaptive.calibration.orientation import canonical_axes, canonical_posterior, orientation
from harness.adaptive.calibration.posterior import Posterior
from harness.adaptive.calibration.recency import run_weights
from harness.adaptive.calibration.settings import DRIFT_DAYS, CalibrationSettings, Candidate, Dims, Method
from harness.adaptive.calibration.sparse import SparseResponses, counts_of
from harness.adaptive.calibration.timeline import Timeline, timeline_of
from harness.adaptive.calibration.variational import settle_runs
from harness.adaptive.errors import CalibrationError
from harness.adaptive.provenance import Provenance
from harness.adaptive.responses import Responses

__all__ = ["Calibration", "CalibrationSettings", "Candidate", "Dims", "Method", "calibrate"]

_LEAST_WEIGHT = 0.02


@dataclass(frozen=True, eq=False)
class Calibration:
    """`bank`, and the abilities `theta` (R, d) of the runs named in `run_ids` (those with outcomes), in the
    bank's axes, with their posterior `theta_covariance` (R, d, d) (0 under "map").

    `loss` is minus the log-likelihood of the history at the fit, under "map" with the log prior (constants left out);
    `orientation` the correlation of θ₁ with the raw score (NaN under 2 runs or without spread).
    """

    bank: Bank
    run_ids: tuple[str, ...]
    theta: FloatArray
    theta_covariance: FloatArray
    loss: float
    orientation: float


@dataclass(frozen=True, eq=False)
class _History:
    """What is fitted: the runs with outcomes inside the window, their weighted cells and raw scores (R,)."""

    run_ids: tuple[str, ...]
    item_ids: tuple[str, ...]
    dates: tuple[str, ...]
    counts: Counts
    raw_score: FloatArray


@dataclass(frozen=True, eq=False)
class _Choice:
    """The model to fit, its start, and the candidates that were scored on the `hidden` cells (none if not needed);
    `drift` where items are best let move.
    """

    dims: Candidate
    kinds: int
    first: Posterior | None
    scored: tuple[Scored, ...]
    hidden: Counts
    drift: DriftChoice | None = None

    @property
    def probability(self) -> FloatArray | None:
        """What the chosen model says of the hidden cells, (h,)."""
        if self.drift is not None:
            return self.drift.scored.probability
        return next((one.probability for one in self.scored if one.dims == self.dims), None)


def calibrate(
    responses: Responses | SparseResponses,
    settings: CalibrationSettings | None = None,
    start: Calibration | Bank | None = None,
) -> Calibration:
    """Fit a bank to `responses`; deterministic given all three. Time O(iterations · cells · d²).

    From a `start` (the last calibration, or its bank) the same optimum is reached within tolerance in fewer
    iterations; with dims = "auto" its d is kept, so choose d anew by calibrating without one. With `settings.drift`
    the bank has items as they are after the latest run; other models are then not kept beside it.

    Raises
    ------
    CalibrationError
        If "auto" is asked for with no candidate that this history allows, or recency without dates.
    """
    settings = settings or CalibrationSettings()
    notes: list[str] = []
    history = _select(responses, settings, notes)
    if not history.run_ids:
        bank = prior_bank(responses.item_ids, settings.seed)
        return Calibration(bank, (), np.zeros((0, 1)), np.zeros((0, 1, 1)), 0.0, float("nan"))
    candidates = _candidates(history, settings, start, notes)
    first = None if start is None else _from_start(history, start, candidates[0])
    timeline = _timeline(history, settings, notes)
    choice = _choose(history, candidates, settings, first, timeline, _drift_of(start))
    fitted, drift_sd = _fit(history, choice, settings, timeline, notes)
    if fitted.posterior.prior.kinds > 1:
        told = int((fitted.posterior.prior.weight >= _LEAST_WEIGHT).sum())
        notes.append(f"items are drawn towards {told} kinds of their own, which predicts hidden outcomes better")
    calibration = _assemble(history, fitted, responses.sha256, settings, tuple(notes))
    bank = calibration.bank
    bank = replace(bank, provenance=replace(bank.provenance, drift_sd=drift_sd))
    if len(candidates) > 1 and choice.scored:
        scores = mean_scores(choice.scored, choice.hidden)
        bank = replace(bank, provenance=replace(bank.provenance, dimension_scores=scores))
        if settings.average and choice.drift is None:
            bank = replace(bank, alternatives=_alternatives(history, choice, settings))
    if settings.report:
        report = report_fit(history.counts, history.item_ids, fitted, choice.hidden, choice.probability)
        bank = replace(bank, report=report)
    return replace(calibration, bank=bank)


def _select(responses: Responses | SparseResponses, settings: CalibrationSettings, notes: list[str]) -> _History:
    counts = counts_of(responses)
    dates = responses.dates or ("",) * len(responses.run_ids)
    weight = run_weights(dates, settings.half_life_days, settings.window_days)
    trials = np.bincount(counts.runs, counts.trials, len(dates))
    used = np.flatnonzero((trials > 0) & (weight > 0)).astype(np.int64)
    if empty := int((trials == 0).sum()):
        notes.append(f"{empty} runs without any graded outcome left out")
    if old := int(((trials > 0) & (weight == 0)).sum()):
        notes.append(f"{old} runs more than {settings.window_days:g} days before the latest left out")
    passes = np.bincount(counts.runs, counts.passes, len(dates))
    return _History(
        run_ids=tuple(responses.run_ids[r] for r in used),
        item_ids=responses.item_ids,
        dates=tuple(dates[r] for r in used),
        counts=counts.of_runs(used, weight[used]),
        raw_score=passes[used] / trials[used],
    )


def _candidates(
    history: _History, settings: CalibrationSettings, start: Calibration | Bank | None, notes: list[str]
) -> list[Candidate]:
    """What may be fitted: one model, or several to choose from."""
    n_runs = len(history.run_ids)
    if settings.dims == "rasch":
        return ["rasch"]
    if n_runs < settings.min_runs_2pl:
        notes.append(f"{n_runs} runs are too few for discriminations (under {settings.min_runs_2pl}): Rasch")
        return ["rasch"]
    if settings.dims != "auto":
        return [settings.dims]
    if start is not None:
        bank = start if isinstance(start, Bank) else start.bank
        return ["rasch" if bank.provenance.method == "rasch" else bank.d]
    return allowed_candidates(settings, n_runs)


def _drift_of(start: Calibration | Bank | None) -> float:
    """`Provenance.drift_sd` of a start, 0 without one."""
    if start is None:
        return 0.0
    return (start if isinstance(start, Bank) else start.bank).provenance.drift_sd


def _timeline(history: _History, settings: CalibrationSettings, notes: list[str]) -> Timeline | None:
    """When the runs were made, if items may move; None if not, or "auto" cannot know."""
    if settings.drift == 0:
        return None
    richest = max((dims for dims in (settings.dims, *settings.candidates) if isinstance(dims, int)), default=1)
    timeline = timeline_of(history.dates, most_periods(len(history.item_ids), richest))
    if timeline is None and settings.drift != "auto":
        raise CalibrationError(
            "not every run has a date, or all have the same", place="drift", remedy="Date the runs, or leave drift out"
        )
    if timeline is None:
        notes.append("whether items drift was not asked: not every run has a date, or all have the same")
    return timeline


def _fit(
    history: _History, choice: _Choice, settings: CalibrationSettings, timeline: Timeline | None, notes: list[str]
) -> tuple[Fitted, float]:
    """The chosen model on all cells, and how far its items move (`Provenance.drift_sd`)."""
    if choice.drift is not None and timeline is not None:
        walk, start = choice.drift.variance_per_day, choice.drift.scored.fitted
        notes.append(choice.drift.note(max(history.dates)))
        return fit_walking(history.counts, timeline, walk, start, settings), sd_of(walk)
    if timeline is not None and settings.drift == "auto":
        notes.append("items that move predict hidden outcomes no better beyond chance: they are held still")
    still = fit_candidate(history.counts, choice.dims, replace(settings, kinds=choice.kinds), choice.first)
    if timeline is None or settings.drift == "auto":
        return still, 0.0
    return fit_walking(history.counts, timeline, settings.drift**2 / DRIFT_DAYS, still, settings), settings.drift


def _choose(
    history: _History,
    candidates: list[Candidate],
    settings: CalibrationSettings,
    first: Posterior | None,
    timeline: Timeline | None,
    guess: float,
) -> _Choice:
    """The model to fit and where to start it, by the cells hidden from `_Choice.scored`."""
    hide = hidden_cells(history.counts, history.run_ids, history.item_ids, settings.seed, settings.held_out_share)
    shown, hidden = history.counts.where(~hide), history.counts.where(hide)
    nothing_to_choose = len(candidates) == 1 and not may_tell_kinds(candidates[0], settings)
    asked = timeline is not None and settings.drift == "auto"
    if not hide.any() or (nothing_to_choose and not settings.report and not asked):
        return _Choice(candidates[0], 1, first, (), hidden)
    scored: list[Scored] = []
    for dims in candidates:
        scored.append(score_candidate(shown, hidden, dims, settings, first))
        if gone_too_far([one.by_run for one in scored]):
            break
    at = simplest_within_one_error([one.by_run for one in scored])
    chosen = scored[at]
    start = first if first is not None else chosen.plain
    choice = _Choice(chosen.dims, chosen.kinds, start, tuple(scored), hidden)
    if timeline is None:
        return choice
    drift = choose_drift(WalkSearch(shown, hidden, timeline, settings, guess), scored, at)
    return choice if drift is None else replace(choice, dims=drift.scored.dims, drift=drift)


def _assemble(
    history: _History, fitted: Fitted, history_sha256: str, settings: CalibrationSettings, notes: tuple[str, ...]
) -> Calibration:
    """The bank of a fit, in canonical axes."""
    cells = history.counts.cells()
    posterior, covariance = _oriented(cells, fitted, history.raw_score, settings)
    agreement = orientation(posterior.theta, history.raw_score)
    if agreement <= 0:
        notes = (*notes, f"general ability and raw score correlate at {agreement:.2f}: do not trust this bank")
    provenance = Provenance(
        method="rasch" if fitted.rasch else "2pl",
        d=posterior.d,
        seed=settings.seed,
        n_runs=len(history.run_ids),
        inference=settings.method,
        effective_runs=history.counts.effective_runs,
        history_sha256=history_sha256,
        first_date=min((date for date in history.dates if date), default=""),
        last_date=max((date for date in history.dates if date), default=""),
        convergence=fitted.convergence,
        held_out={history.item_ids[i]: why for i, why in sorted(fitted.held_out.items())},
        flagged=_flags(history.item_ids, cells, posterior, fitted.held_out),
        notes=notes,
    )
    mean, past = past_abilities(posterior.theta, posterior.theta_covariance)
    calibrated = np.ones(len(history.item_ids), dtype=np.bool_)
    calibrated[list(fitted.held_out)] = False
    bank = Bank(
        item_ids=history.item_ids,
        alpha=posterior.item[:, :-1],
        beta=posterior.item[:, -1],
        prior_mean=mean,
        prior_covariance=coming_covariance(past, posterior.item[:, :-1]),
        past_covariance=past,
        provenance=provenance,
        calibrated=calibrated,
        item_covariance=covariance,
    )
    return Calibration(bank, history.run_ids, posterior.theta, posterior.theta_covariance, fitted.loss, agreement)


def _oriented(
    cells: Cells, fitted: Fitted, raw_score: FloatArray, settings: CalibrationSettings
) -> tuple[Posterior, FloatArray]:
    """The posterior in canonical axes, and the covariance of the items' parameters."""
    if settings.method == "variational":
        turned = canonical_posterior(fitted.posterior, raw_score)
        return turned, turned.item_covariance
    item = fitted.posterior.item
    parameters = canonical_axes(Parameters(fitted.posterior.theta, item[:, :-1], item[:, -1]), raw_score)
    turned = replace(
        fitted.posterior, theta=parameters.theta, item=np.column_stack([parameters.alpha, parameters.beta])
    )
    return turned, item_covariance(cells, parameters, settings.priors, fitted.rasch)


def _alternatives(history: _History, choice: _Choice, settings: CalibrationSettings) -> tuple[Alternative, ...]:
    """The candidates besides the chosen one that stacking gives at least 2 %, fitted to the whole history."""
    weights = stacking_weights(choice.hidden, [one.probability for one in choice.scored])
    kept = [
        (weight, one)
        for weight, one in zip(weights, choice.scored, strict=True)
        if one.dims == choice.dims or weight >= _LEAST_WEIGHT
    ]
    total = sum(weight for weight, _ in kept)
    found: list[Alternative] = []
    rough = replace(settings, tolerance=ROUGH * settings.tolerance)
    for weight, one in kept:
        if one.dims != choice.dims:
            fitted = fit_candidate(history.counts, one.dims, replace(rough, kinds=one.kinds), one.plain)
            bank = _assemble(history, fitted, "", settings, ()).bank
            found.append(Alternative(float(weight / total), bank))
    return tuple(found)


def _from_start(history: _History, start: Calibration | Bank, dims: Candidate) -> Posterior | None:
    """A posterior of this history's runs and items in the axes of `start`; None if it has another d."""
    bank = start if isinstance(start, Bank) else start.bank
    d = 1 if dims == "rasch" else dims
    if bank.d != d:
        return None
    whole = bank.align(history.item_ids)
    item_covariance = whole.item_covariance
    if item_covariance is None:
        item_covariance = np.tile(0.05 * np.eye(d + 1), (len(whole), 1, 1))
    if dims == "rasch":
        item_covariance = item_covariance * np.outer([0.0, 1.0], [0.0, 1.0])
    item = np.column_stack([whole.alpha, whole.beta])
    theta = np.tile(bank.prior_mean, (len(history.run_ids), 1))
    theta_covariance = np.tile(bank.prior_covariance, (len(history.run_ids), 1, 1))
    off = item - item.mean(axis=0)
    prior = (off.T @ off + item_covariance.sum(axis=0)) / len(item) + 1e-6 * np.eye(d + 1)
    unsettled = Posterior(theta, theta_covariance, item, item_covariance, ItemPrior.gaussian(item.mean(axis=0), prior))
    posterior = settle_runs(history.counts.cells(), unsettled)
    if isinstance(start, Bank):
        return posterior
    known = {run: position for position, run in enumerate(start.run_ids)}
    theta, theta_covariance = posterior.theta.copy(), posterior.theta_covariance.copy()
    for row, run in enumerate(history.run_ids):
        if run in known:
            theta[row], spread = start.theta[known[run]], start.theta_covariance[known[run]]
            if spread.any():
                theta_covariance[row] = spread
    return replace(posterior, theta=theta, theta_covariance=theta_covariance)


def _flags(
    item_ids: tuple[str, ...], cells: Cells, posterior: Posterior, held_out: Mapping[int, str]
) -> dict[str, str]:
    """Items that look wrong or say little though they were fitted."""
    flags = {item_ids[i]: why for i, why in not_estimable(cells).items() if i not in held_out}
    suspicious = reversed_items(cells, posterior.theta[:, 0])
    flags.update({item_ids[i]: REVERSED for i in np.flatnonzero(suspicious) if int(i) not in held_out})
    return flags
