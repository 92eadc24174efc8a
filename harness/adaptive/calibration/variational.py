"""Variational calibration: a Gaussian posterior for every run and every item, loading priors learnt from the history.

The model is that of `likelihood`. With x_r = (θ_r, −1) and φ_i = (α_i, β_i) the logit is z = φ·x, and

    P(pass) = σ(φ_i·x_r),      θ_r ~ N(0, I),      φ_i ~ N(a, Ω),      q = Π_r N(θ_r; m_r, S_r) Π_i N(φ_i; μ_i, V_i)

(or a mixture of Gaussians in place of N(a, Ω): see below).

In q the logit of a cell has mean and variance z̄ = μ·x̄ and v = Σ E[φφᵀ]∘E[xxᵀ] − z̄², hence, with κ = 1/√(1 + πv/8),
the expected probability p̄ = σ(κz̄) and its slope w = κ p̄(1 − p̄) (MacKay 1992, equation 10). The stationary point of
the Gaussian evidence bound (Opper & Archambeau 2009, "The variational Gaussian approximation revisited", equations
10–11; Stein's identity for the factor that is averaged over) solves, for n trials and k passes a cell,

    V_i⁻¹ = Ω⁻¹ + Σ_r n w E[xxᵀ],      V_i⁻¹ μ_i = Ω⁻¹ a + Σ_r (k − n p̄ + n w z̄) x̄
    S_r⁻¹ = I + Σ_i n w E[ααᵀ],        S_r⁻¹ m_r = Σ_i [(k − n p̄ + n w α̂·m_r) α̂ + n w Cov(α, β)],      α̂ = E α

taken as they stand as the next values: a Newton step for each run, then for each item. One evaluation of the cells
serves both, because k − n p̄ + n w z̄ is to first order the same before and after the runs moved. (The bound of
Jaakkola & Jordan would be monotone, but its weight exceeds σ' threefold at |z| = 3: extreme items then look far better
known than they are; held-out likelihood was worse on every matrix tried.)

Learnt at every pass, by empirical Bayes:
- the prior of an item. Of one kind: a and Ω are the mean and covariance of q over the items. A direction of θ that the
  history does not need loses its loadings (automatic relevance determination in any rotation), so a superfluous axis
  costs little. Of several kinds (`item_prior`, from the fit with one): Ω⁻¹ and Ω⁻¹ a above are the item's own, by its
  shares in the kinds. On the loadings Ω has an inverse Wishart prior, s² I with the weight of a share ρ of the items
  (`Hyperprior`): with few runs, or many copies of few, some items are separable, and their scale would run away.
- the mean and covariance of the runs are folded into the items (parameter expansion: Liu, Rubin & Wu 1998) by
  θ = Lθ' + m̄ with L² = (R C + ρN s² Ω_αα⁻¹)/(R + ρN), C = mean of S_r + (m_r − m̄)(m_r − m̄)ᵀ: the stationary scale
  of bound and hyperprior together, in one step instead of hundreds.

Rasch is d = 1 with one α for all items, learnt through L.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from harness.adaptive.arrays import FloatArray, sigmoid
from harness.adaptive.calibration.cells import Block, Cells
from harness.adaptive.calibration.item_prior import ItemPrior, split
from harness.adaptive.calibration.learning import Hyperprior, fold_runs, learn_prior
from harness.adaptive.calibration.posterior import (
    Posterior,
    moment_features,
    padded_covariance,
    symmetric,
    with_constant,
)
from harness.adaptive.calibration.start import starting_point
from harness.adaptive.provenance import Convergence

LONGEST_STEP = 1.0
_COARSER_BY_KINDS, _COARSEST, _LONGEST_BY_KINDS = 20.0, 0.1, 150
LEAST_DAMPING, RECOVERY = 1.0 / 16.0, 1.3
_START_RUN_VARIANCE, _START_ITEM_VARIANCE = 0.2, 0.05
_START_LOADING_VARIANCE, _START_DIFFICULTY_VARIANCE = 0.25, 4.0


@dataclass(frozen=True)
class VariationalSettings:
    """The hyperprior on loadings, how many `kinds` of items to tell apart, and when to stop (as in `Convergence`)."""

    hyperprior: Hyperprior = field(default_factory=Hyperprior)
    kinds: int = 1
    max_iterations: int = 1000
    tolerance: float = 1e-3


@dataclass(frozen=True, eq=False)
class VariationalFit:
    """The posterior where the iteration stopped (axes not yet canonical), and how it stopped."""

    posterior: Posterior
    convergence: Convergence


@dataclass(frozen=True, eq=False)
class Rows:
    """Gaussians of n rows on their way: `mean` (n, q), `covariance` (n, q, q), `damping` (n,) in (0, 1], the last
    `direction` (n, q), and the `steepest` slope met, in units of conditional standard deviations."""

    mean: FloatArray
    covariance: FloatArray
    damping: FloatArray
    direction: FloatArray
    steepest: float = 0.0

    @classmethod
    def at_rest(cls, mean: FloatArray, covariance: FloatArray) -> Rows:
        """Before the first step."""
        return cls(mean, covariance, np.ones(len(mean)), np.zeros_like(mean))

    def part(self, rows: slice) -> Rows:
        """These rows alone."""
        return Rows(self.mean[rows], self.covariance[rows], self.damping[rows], self.direction[rows])


def fit_variational(
    cells: Cells, d: int, rasch: bool, settings: VariationalSettings, start: Posterior | None = None
) -> VariationalFit:
    """The posterior of `cells` at dimension `d`, from `start` (of the same runs, items and d) or from the data.

    With several kinds of items to tell apart: from the fit with one; kinds that do not settle (as where most items are
    separable) give way to one. Deterministic. O(iterations · cells · d²) time, O(cells + (R + N) d²) memory. Not
    converging is reported in the result and is not an error here.
    """
    now = start if start is not None else _from_data(cells, d, rasch)
    if cells.n_runs == 0 or cells.n_items == 0:
        return VariationalFit(now, Convergence(True, 0, 0.0, settings.tolerance))
    if rasch or settings.kinds == 1:
        return _iterate(cells, _one_kind(now), rasch, settings)
    # Where kinds overlap, items move between them for long without a probability changing.
    coarser = min(_COARSER_BY_KINDS * settings.tolerance, max(_COARSEST, settings.tolerance))
    hurried = replace(settings, tolerance=coarser, max_iterations=min(_LONGEST_BY_KINDS, settings.max_iterations))
    several = now
    if now.prior.kinds == 1:
        now = _iterate(cells, now, rasch, hurried).posterior
        several = replace(now, prior=split(now.prior, now.item, min(settings.kinds, cells.n_items)))
    fit = _iterate(cells, several, rasch, hurried)
    return fit if fit.convergence.converged else _iterate(cells, _one_kind(now), rasch, settings)


def _one_kind(now: Posterior) -> Posterior:
    """`now` with the prior of one kind as wide as all of its own together."""
    if now.prior.kinds == 1:
        return now
    mean = now.prior.weight @ now.prior.mean
    off = now.prior.mean - mean
    spread = np.tensordot(now.prior.weight, now.prior.covariance, axes=1) + (now.prior.weight * off.T) @ off
    return replace(now, prior=ItemPrior.gaussian(mean, spread))


def _iterate(cells: Cells, now: Posterior, rasch: bool, settings: VariationalSettings) -> VariationalFit:
    runs = Rows.at_rest(now.theta, now.theta_covariance)
    items = Rows.at_rest(now.item, now.item_covariance)
    iterations, steepest = 0, float("inf")
    while iterations < settings.max_iterations and not steepest <= settings.tolerance:
        iterations += 1
        runs, precision, linear = run_pass(cells, now, runs)
        items = _item_step(now, precision, linear, items, rasch)
        moved = replace(
            now,
            theta=runs.mean,
            theta_covariance=runs.covariance,
            item=items.mean,
            item_covariance=items.covariance,
        )
        now = learn_prior(fold_runs(moved, settings.hyperprior, rasch), settings.hyperprior, rasch)
        steepest = max(runs.steepest, items.steepest)
    return VariationalFit(now, Convergence(steepest <= settings.tolerance, iterations, steepest, settings.tolerance))


def settle_runs(cells: Cells, now: Posterior, passes: int = 6) -> Posterior:
    """`now` with the runs moved to what these items say of them, items held fixed; for starting from a bank."""
    runs = Rows.at_rest(now.theta, now.theta_covariance)
    for _ in range(passes):
        runs = run_pass(cells, now, runs)[0]
        now = replace(now, theta=runs.mean, theta_covariance=runs.covariance)
    return now


def _from_data(cells: Cells, d: int, rasch: bool) -> Posterior:
    theta, item = starting_point(cells, d)
    run_covariance = np.tile(_START_RUN_VARIANCE * np.eye(d), (cells.n_runs, 1, 1))
    item_covariance = np.tile(_START_ITEM_VARIANCE * np.eye(d + 1), (cells.n_items, 1, 1))
    prior_mean, prior_covariance = np.zeros(d + 1), np.eye(d + 1)
    # Wide: learning widens a narrow prior slowly, and narrows a wide one at once.
    prior_covariance[:d, :d] *= _START_LOADING_VARIANCE
    prior_covariance[d, d] = _START_DIFFICULTY_VARIANCE
    if cells.n_items:
        prior_mean = item.mean(axis=0)
    if rasch:
        item_covariance[:, 0, :] = item_covariance[:, :, 0] = 0.0
    return Posterior(theta, run_covariance, item, item_covariance, ItemPrior.gaussian(prior_mean, prior_covariance))


def run_pass(cells: Cells, now: Posterior, runs: Rows) -> tuple[Rows, FloatArray, FloatArray]:
    """All runs moved once, and of the items Σ_r n w E[xxᵀ] (as features) and Σ_r (k − n p̄ + n w z̄) x̄."""
    item_features = moment_features(now.item, now.item_covariance, twice=True)
    loading_features = _loading_features(now)
    precision, linear = np.zeros_like(item_features), np.zeros_like(now.item)
    parts: list[Rows] = []
    for block in cells.blocks:
        pull, weight = _cell_terms(block, now, item_features)
        before = replace(runs.part(block.rows), mean=now.theta[block.rows], covariance=now.theta_covariance[block.rows])
        part = _newton(before, *_run_equations(block, now, pull, weight, loading_features))
        x = with_constant(part.mean)
        precision += block.by_item(weight, moment_features(x, padded_covariance(part.covariance), twice=False))
        linear += block.by_item(pull, x)
        parts.append(part)
    gathered = Rows(
        mean=np.concatenate([part.mean for part in parts]),
        covariance=np.concatenate([part.covariance for part in parts]),
        damping=np.concatenate([part.damping for part in parts]),
        direction=np.concatenate([part.direction for part in parts]),
        steepest=float(np.max([part.steepest for part in parts])),
    )
    return gathered, precision, linear


def _cell_terms(block: Block, now: Posterior, item_features: FloatArray) -> tuple[FloatArray, FloatArray]:
    """k − n p̄ + n w z̄ and n w at every cell of the block."""
    x = with_constant(now.theta[block.rows])
    spread = padded_covariance(now.theta_covariance[block.rows])
    logit = block.products(x, now.item)
    variance = block.products(moment_features(x, spread, twice=False), item_features)
    variance -= logit * logit
    np.maximum(variance, 0.0, out=variance)
    shrink = 1.0 / np.sqrt(1.0 + np.pi / 8.0 * variance)
    probability = sigmoid(shrink * logit)
    weight = block.trials * (shrink * probability * (1.0 - probability))
    pull = block.passes - block.trials * probability + weight * logit
    return pull, weight


def _loading_features(now: Posterior) -> FloatArray:
    """Per item: the upper triangle of E[ααᵀ], then β̂ α̂ + Cov(α, β), (N, d(d+1)/2 + d)."""
    d = now.d
    mean, covariance = now.item, now.item_covariance
    second = moment_features(mean[:, :d], covariance[:, :d, :d], twice=False)
    return np.column_stack([second, mean[:, :d] * mean[:, d:] + covariance[:, :d, d]])


def _run_equations(
    block: Block, now: Posterior, pull: FloatArray, weight: FloatArray, loading_features: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """S_r⁻¹ (r, d, d) and S_r⁻¹ m_r (r, d) of the block's runs.

    α̂·m = z̄ + β̂, so the bracket of the module's equation is pull·α̂ + n w (β̂ α̂ + Cov(α, β)).
    """
    d = now.d
    sums = block.by_run(weight, loading_features)
    triangle = d * (d + 1) // 2
    precision = symmetric(sums[:, :triangle], d) + np.eye(d)
    return precision, block.by_run(pull, now.item[:, :d]) + sums[:, triangle:]


def _item_step(now: Posterior, precision: FloatArray, linear: FloatArray, items: Rows, rasch: bool) -> Rows:
    """All items moved once; under Rasch only β moves and α counts as known."""
    prior_precision, prior_linear = now.prior.pulls(now.item, now.item_covariance)
    before = replace(items, mean=now.item, covariance=now.item_covariance)
    full = symmetric(precision, now.d + 1) + prior_precision
    target = linear + prior_linear
    if not rasch:
        return _newton(before, full, target)
    free = slice(1, 2)
    known = replace(
        before,
        mean=now.item[:, free],
        covariance=now.item_covariance[:, free, free],
        direction=items.direction[:, free],
    )
    moved = _newton(known, full[:, free, free], target[:, free] - full[:, free, 0] * now.item[:, :1])
    covariance = np.zeros_like(now.item_covariance)
    covariance[:, free, free] = moved.covariance
    return replace(
        moved,
        mean=np.column_stack([now.item[:, 0], moved.mean]),
        covariance=covariance,
        direction=np.column_stack([np.zeros(len(now.item)), moved.direction]),
    )


def _newton(before: Rows, precision: FloatArray, linear: FloatArray) -> Rows:
    """Towards mean = precision⁻¹ linear and covariance = precision⁻¹, n rows at once.

    A step is at most 1 long. A row whose steps turn back (an item passed by all but one run can jump across its
    optimum for ever) halves its damping down to 1/16; otherwise damping recovers to 1. Precisions are damped alike.
    """
    step = np.linalg.solve(precision, linear[:, :, None])[:, :, 0] - before.mean
    slope = np.einsum("nij,nj->ni", precision, step) / np.sqrt(np.einsum("nii->ni", precision))
    steepest = float(np.max(np.abs(slope)))
    length = np.sqrt((step * step).sum(axis=1, keepdims=True))
    step *= np.minimum(1.0, LONGEST_STEP / np.maximum(length, LONGEST_STEP))
    turned = (step * before.direction).sum(axis=1) < 0
    damping = np.where(turned, before.damping * 0.5, before.damping * RECOVERY).clip(LEAST_DAMPING, 1.0)
    slow = damping < 1.0
    if slow.any():
        share = damping[slow, None, None]
        precision[slow] = share * precision[slow] + (1.0 - share) * np.linalg.inv(before.covariance[slow])
    covariance = np.linalg.inv(precision)
    return Rows(
        mean=before.mean + damping[:, None] * step,
        covariance=(covariance + covariance.transpose(0, 2, 1)) / 2.0,
        damping=damping,
        direction=step,
        steepest=steepest,
    )
