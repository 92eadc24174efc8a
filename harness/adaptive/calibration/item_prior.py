"""What variational calibration learns besides runs and items: the prior of an item and the scale of the abilities. The
equations are in `variational`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from harness.adaptive.calibration.posterior import Posterior

_VARIANCE_FLOOR = 1e-4
_STEEPEST = 4.0  # root mean square loading of the items: beyond, outcomes are a step of θ and the scale says nothing
_SETTLED_RUNS = 50.0


@dataclass(frozen=True)
class Hyperprior:
    """Inverse Wishart on the covariance of the loadings: centre `loading_sd`² I, worth the share `weight` of the items.

    The weight is what keeps separable items (few runs, or many copies of few) from running away with the scale: under
    0.2 the real histories that hold each run five times did. The centre is what a few runs rest on; with many it would
    keep axes alive that the history has no use for, so `for_runs` lowers it.
    """

    loading_sd: float = 0.4
    weight: float = 0.2

    def for_runs(self, n_runs: float) -> Hyperprior:
        """The same with its centre at `loading_sd` √(50/R), where R > 50."""
        return replace(self, loading_sd=self.loading_sd * min(1.0, (_SETTLED_RUNS / max(n_runs, 1.0)) ** 0.5))


def learn_prior(now: Posterior, hyperprior: Hyperprior, rasch: bool) -> Posterior:
    """`now` with a and Ω at their best given q.

    With Σ = Σ_i V_i + (μ_i − a)(μ_i − a)ᵀ: Ω_αα = (Σ_αα + ρN s² I)/(N + ρN), and β given α has the regression and
    residual variance of Σ, on which there is no hyperprior. Rasch: Ω is diagonal, that of α next to nothing.
    """
    n_items, d = len(now.item), now.d
    mean = now.item.mean(axis=0)
    off = now.item - mean
    scatter = off.T @ off + now.item_covariance.sum(axis=0)
    covariance = np.diag(np.maximum(np.diag(scatter) / n_items, _VARIANCE_FLOOR))
    if not rasch:
        weight = hyperprior.weight * n_items
        loading = (scatter[:d, :d] + weight * hyperprior.loading_sd**2 * np.eye(d)) / (n_items + weight)
        slope = np.linalg.solve(scatter[:d, :d], scatter[:d, d])
        residual = max(float(scatter[d, d] - slope @ scatter[:d, d]) / n_items, _VARIANCE_FLOOR)
        # Perfectly ordered histories are separable for any scale; here their scale ends.
        largest = float(np.linalg.eigvalsh(loading)[-1])
        loading *= min(1.0, _STEEPEST**2 / largest)
        mean[:d] *= min(1.0, _STEEPEST / max(float(np.linalg.norm(mean[:d])), 1e-300))
        covariance[:d, :d] = loading
        covariance[:d, d] = covariance[d, :d] = loading @ slope
        covariance[d, d] = residual + slope @ loading @ slope
    return replace(now, prior_mean=mean, prior_covariance=covariance)


def fold_runs(now: Posterior, hyperprior: Hyperprior, rasch: bool) -> Posterior:
    """`now` with the mean and the covariance of the runs folded into the items (`variational`: L and m̄)."""
    n_runs, d = now.theta.shape
    shift = now.theta.mean(axis=0)
    off = now.theta - shift
    square = (now.theta_covariance.sum(axis=0) + off.T @ off) / n_runs
    if not rasch:
        weight = hyperprior.weight * len(now.item)
        held = weight * hyperprior.loading_sd**2 * np.linalg.inv(now.prior_covariance[:d, :d])
        square = (n_runs * square + held) / (n_runs + weight)
    # The symmetric root turns the axes least, so the rows' last directions stay comparable.
    size, axes = np.linalg.eigh((square + square.T) / 2.0)
    if float(np.mean(now.item[:, :d] ** 2) * d) > _STEEPEST**2:
        size = np.minimum(size, 1.0)
    return now.change_axes((axes * np.sqrt(size)) @ axes.T, shift)
