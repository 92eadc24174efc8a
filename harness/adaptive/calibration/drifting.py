"""Variational calibration of items whose difficulties move.

The model is that of `variational`, but the difficulty of an item in the period t of a run is

    β_i1 as learnt with α_i (`item_prior`),      β_it = β_i,t−1 + N(0, q · days between the periods)

with one q for all items; loadings stay. q(φ_i) is the Gaussian of α_i and β_i1 … β_iT together, from the sums of
`variational` per period by `smoother`; runs, the prior of an item (on the first period) and the scale of the abilities
are as there. A fit that holds items still lays their movement upon the abilities: one more axis, on which runs differ
by their date. Here that axis is not needed and dies out (automatic relevance), so fewer abilities predict better.

A shift of all items alike cannot be told from one of all abilities, and makes no difference to any prediction.

Sources: Fahrmeir & Tutz 2001, "Multivariate statistical modelling based on generalized linear models", section 8.2, for
the state-space form; Glickman 1999, Applied Statistics 48, for strengths that walk.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from harness.adaptive.arrays import FloatArray, IntArray
from harness.adaptive.calibration.candidate import Fitted
from harness.adaptive.calibration.cells import Block, Cells, Counts, DenseBlock
from harness.adaptive.calibration.learning import Hyperprior, learn_prior, run_scale
from harness.adaptive.calibration.posterior import (
    Posterior,
    moment_features,
    padded_covariance,
    pass_probability,
    symmetric,
    with_constant,
)
from harness.adaptive.calibration.smoother import smoothed
from harness.adaptive.calibration.timeline import Timeline
from harness.adaptive.calibration.variational import LEAST_DAMPING, LONGEST_STEP, RECOVERY, Rows, run_pass
from harness.adaptive.provenance import Convergence


@dataclass(frozen=True, eq=False)
class Drifting(Fitted):
    """A fit whose `posterior` has the items as they are after the latest run; `items` (T, N, d+1) and their
    `covariances` are those of each period, `period` (R,) that of each run.
    """

    items: FloatArray
    covariances: FloatArray
    period: IntArray

    def probability(self, block: Block) -> FloatArray:
        """P(pass) at the block's cells, with the items of the run's period."""
        period = self.period[block.rows]
        x = with_constant(self.posterior.theta[block.rows])
        spread = padded_covariance(self.posterior.theta_covariance[block.rows])
        found = np.empty(block.trials.shape)
        of_run = period if isinstance(block, DenseBlock) else np.repeat(period, np.diff(block.pointers))
        for t in np.unique(period):
            features = moment_features(self.items[t], self.covariances[t], twice=True)
            here = period == t
            if isinstance(block, DenseBlock):
                logit = x[here] @ self.items[t].T
                square = moment_features(x[here], spread[here], twice=False) @ features.T
            else:
                cells = np.flatnonzero(of_run == t)
                runs = np.repeat(np.arange(len(x)), np.diff(block.pointers))[cells]
                at = block.items[cells]
                logit = np.einsum("cq,cq->c", x[runs], self.items[t][at])
                square = np.einsum("cq,cq->c", moment_features(x, spread, twice=False)[runs], features[at])
            found[of_run == t] = pass_probability(logit, square - logit**2)
        return found


@dataclass(frozen=True)
class DriftingSettings:
    """The hyperprior on loadings, and when to stop: `tolerance` in posterior standard deviations."""

    hyperprior: Hyperprior
    max_iterations: int
    tolerance: float


@dataclass(frozen=True, eq=False)
class _State:
    """Runs, and items by period; `prior` in `whole`, whose items are those of the first period."""

    whole: Posterior
    items: FloatArray
    covariances: FloatArray


def fit_drifting(
    counts: Counts, timeline: Timeline, variance_per_day: float, start: Fitted, settings: DriftingSettings
) -> Drifting:
    """`counts` with difficulties that walk by q = `variance_per_day`, from the fit `start` of the same runs and items
    (drifting or not), which says d, and whether it is Rasch.

    O(iterations · (cells · d² + T N d³)) time, O(cells + T N d²) memory. Not converging is reported in the result; its
    `loss` is left NaN.
    """
    parts = [np.flatnonzero(timeline.period == t) for t in range(len(timeline.times))]
    cells = [counts.of_runs(rows, np.ones(len(rows))).cells() for rows in parts]
    walk = variance_per_day * timeline.gaps
    now = _begin(start, len(parts))
    runs = [Rows.at_rest(now.whole.theta[rows], now.whole.theta_covariance[rows]) for rows in parts]
    damping, direction = np.ones(counts.n_items), np.zeros_like(now.items)
    iterations, steepest = 0, float("inf")
    while iterations < settings.max_iterations and not steepest <= settings.tolerance:
        iterations += 1
        now, runs, precision, linear = _move_runs(now, parts, cells, runs)
        means, covariances = _items_given(now, precision, linear, walk, start.rasch)
        move = means - now.items
        deviation = np.sqrt(np.maximum(np.einsum("tnii->tni", covariances), 1e-12))
        steepest = max(float(np.max(np.abs(move) / deviation)), *(part.steepest for part in runs))
        turned = (move * direction).sum(axis=(0, 2)) < 0
        damping = np.where(turned, damping * 0.5, damping * RECOVERY).clip(LEAST_DAMPING, 1.0)
        length = np.sqrt((move**2).sum(axis=2)).max(axis=0)
        share = (damping * np.minimum(1.0, LONGEST_STEP / np.maximum(length, LONGEST_STEP)))[None, :, None]
        direction = move
        now = replace(
            now,
            items=now.items + share * move,
            covariances=share[..., None] * covariances + (1.0 - share[..., None]) * now.covariances,
        )
        now = _learn(now, settings.hyperprior, start.rasch)
    ended = Convergence(steepest <= settings.tolerance, iterations, steepest, settings.tolerance)
    return _finished(now, timeline, variance_per_day, start, ended)


def _begin(start: Fitted, n_periods: int) -> _State:
    if isinstance(start, Drifting):
        first = replace(start.posterior, item=start.items[0], item_covariance=start.covariances[0])
        return _State(first, start.items, start.covariances)
    whole = start.posterior
    items = np.tile(whole.item, (n_periods, 1, 1))
    return _State(whole, items, np.tile(whole.item_covariance, (n_periods, 1, 1, 1)))


def _move_runs(
    now: _State, parts: list[IntArray], cells: list[Cells], runs: list[Rows]
) -> tuple[_State, list[Rows], FloatArray, FloatArray]:
    """All runs moved once, and of the items the precisions and linear terms of every period."""
    theta, theta_covariance = now.whole.theta.copy(), now.whole.theta_covariance.copy()
    moved: list[Rows] = []
    precision, linear = np.empty_like(now.covariances), np.empty_like(now.items)
    for t, rows in enumerate(parts):
        of_period = replace(
            now.whole,
            theta=now.whole.theta[rows],
            theta_covariance=now.whole.theta_covariance[rows],
            item=now.items[t],
            item_covariance=now.covariances[t],
        )
        part, features, linear[t] = run_pass(cells[t], of_period, runs[t])
        precision[t] = symmetric(features, now.items.shape[2])
        theta[rows], theta_covariance[rows] = part.mean, part.covariance
        moved.append(part)
    whole = replace(now.whole, theta=theta, theta_covariance=theta_covariance)
    return replace(now, whole=whole), moved, precision, linear


def _items_given(
    now: _State, precision: FloatArray, linear: FloatArray, walk: FloatArray, rasch: bool
) -> tuple[FloatArray, FloatArray]:
    """Items of every period; under Rasch only β moves and α counts as known."""
    prior_precision, prior_linear = now.whole.prior.pulls(now.items[0], now.covariances[0])
    if not rasch:
        return smoothed(precision, linear, (prior_precision, prior_linear), walk)
    free, alpha = slice(1, 2), now.items[0, :, :1]
    means, covariances = now.items.copy(), np.zeros_like(now.covariances)
    means[:, :, free], covariances[:, :, free, free] = smoothed(
        precision[:, :, free, free],
        linear[:, :, free] - precision[:, :, free, 0] * alpha,
        (prior_precision[:, free, free], prior_linear[:, free] - prior_precision[:, free, 0] * alpha),
        walk,
    )
    return means, covariances


def _learn(now: _State, hyperprior: Hyperprior, rasch: bool) -> _State:
    """The scale of the runs folded into the items, and the prior of an item at its best."""
    n_periods, n_items, width = now.items.shape
    first = replace(now.whole, item=now.items[0], item_covariance=now.covariances[0])
    every = replace(
        now.whole,
        item=now.items.reshape(-1, width),
        item_covariance=now.covariances.reshape(-1, width, width),
    ).change_axes(*run_scale(first, hyperprior, rasch))
    items = every.item.reshape(n_periods, n_items, width)
    covariances = every.item_covariance.reshape(n_periods, n_items, width, width)
    covariances = (covariances + covariances.transpose(0, 1, 3, 2)) / 2.0
    first = replace(every, item=items[0], item_covariance=covariances[0])
    return _State(learn_prior(first, hyperprior, rasch), items, covariances)


def _finished(now: _State, timeline: Timeline, variance_per_day: float, start: Fitted, ended: Convergence) -> Drifting:
    last = now.covariances[-1].copy()
    last[:, -1, -1] += variance_per_day * timeline.ahead
    return Drifting(
        posterior=replace(now.whole, item=now.items[-1], item_covariance=last),
        held_out=start.held_out,
        rasch=start.rasch,
        loss=float("nan"),
        convergence=ended,
        items=now.items,
        covariances=now.covariances,
        period=timeline.period,
    )
