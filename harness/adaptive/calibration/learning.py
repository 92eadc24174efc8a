"""What variational calibration learns besides runs and items: the prior of an item and the scale of the abilities. The
equations are in `variational`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from harness.adaptive.arrays import FloatArray
from harness.adaptive.calibration.item_prior import ItemPrior
from harness.adaptive.calibration.posterior import Posterior

_VARIANCE_FLOOR = 1e-4
_STEEPEST = 4.0  # root mean square loading of the items: beyond, outcomes are a step of θ and the scale says nothing
_SETTLED_RUNS = 50.0
_LEAST_COUNT = 1e-6


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
    """`now` with the prior at its best given q, of as many kinds as it has.

    With the shares r_ik, n_k = Σ_i r_ik, a_k = Σ_i r_ik μ_i / n_k and S_k = Σ_i r_ik (V_i + (μ_i − a_k)(μ_i − a_k)ᵀ):
    the covariance of one kind is `_gaussian_width`; that of several Ω_k = (S_k + ν W)/(n_k + ν), ν = d + 3, with W
    their common width (`common_width`).
    """
    n_items, width = now.item.shape
    shares = now.prior.shares(now.item, now.item_covariance)
    count = shares.sum(axis=0)
    mean = shares.T @ now.item / np.maximum(count, _LEAST_COUNT)[:, None]
    spread = now.item_covariance.reshape(n_items, width * width)
    scatters = (shares.T @ spread).reshape(-1, width, width)
    for kind, own in enumerate(scatters):
        off = now.item - mean[kind]
        own += (off * shares[:, kind : kind + 1]).T @ off
    if not rasch:
        length = np.sqrt((mean[:, :-1] ** 2).sum(axis=1, keepdims=True))
        mean[:, :-1] *= np.minimum(1.0, _STEEPEST / np.maximum(length, _STEEPEST))
    if now.prior.kinds == 1:
        return replace(now, prior=ItemPrior.gaussian(mean[0], _gaussian_width(scatters[0], n_items, hyperprior, rasch)))
    common = common_width(now.prior.covariance, n_items, hyperprior)
    lent = width + 2.0
    covariance = (scatters + lent * common) / (count + lent)[:, None, None]
    return replace(now, prior=ItemPrior(count / n_items, mean, covariance, common))


def _gaussian_width(scatter: FloatArray, n_items: int, hyperprior: Hyperprior, rasch: bool) -> FloatArray:
    """Ω (d+1, d+1) of one kind with the scatter Σ: Ω_αα = (Σ_αα + ρN s² I)/(N + ρN), and β given α has the regression
    and residual variance of Σ, on which there is no hyperprior. Rasch: Ω is diagonal, that of α next to nothing.
    """
    d = len(scatter) - 1
    covariance = np.diag(np.maximum(np.diag(scatter) / n_items, _VARIANCE_FLOOR))
    if rasch:
        return covariance
    weight = hyperprior.weight * n_items
    loading = (scatter[:d, :d] + weight * hyperprior.loading_sd**2 * np.eye(d)) / (n_items + weight)
    slope = np.asarray(np.linalg.solve(scatter[:d, :d], scatter[:d, d]), dtype=np.float64)
    residual = max(float(scatter[d, d] - slope @ scatter[:d, d]) / n_items, _VARIANCE_FLOOR)
    # Perfectly ordered histories are separable for any scale; here their scale ends.
    loading *= min(1.0, _STEEPEST**2 / float(np.linalg.eigvalsh(loading)[-1]))
    return _joined(loading, slope, residual)


def common_width(covariance: FloatArray, n_items: int, hyperprior: Hyperprior) -> FloatArray:
    """W (d+1, d+1) that maximises Σ_k ½ν (log |W| − tr W Ω_k⁻¹) with the hyperprior on W_αα.

    Without the hyperprior W is the harmonic mean of the Ω_k. With P = Σ_k Ω_k⁻¹ and P* = P_αα − P_αβ P_βα / P_ββ the
    regression of β on α is −P_βα / P_ββ and its residual K / P_ββ, and in the axes of P*, p its eigenvalues, each
    w > 0 solves ν p w² − (νK − ρN) w − ρN s² = 0.
    """
    kinds, width = covariance.shape[:2]
    d, lent, held = width - 1, width + 2.0, hyperprior.weight * n_items
    total = np.linalg.inv(covariance).sum(axis=0)
    slope = -total[:d, d] / total[d, d]
    size, axes = np.linalg.eigh(total[:d, :d] + np.outer(total[:d, d], slope))
    half = (lent * kinds - held) / 2.0
    size = np.maximum(size, _VARIANCE_FLOOR)
    root = (half + np.sqrt(half**2 + lent * size * held * hyperprior.loading_sd**2)) / (lent * size)
    return _joined((axes * root) @ axes.T, slope, kinds / float(total[d, d]))


def _joined(loading: FloatArray, slope: FloatArray, residual: float) -> FloatArray:
    """The covariance of (α, β) from that of α (d, d) and the regression of β on α."""
    d = len(loading)
    covariance = np.zeros((d + 1, d + 1))
    covariance[:d, :d] = loading
    covariance[:d, d] = covariance[d, :d] = loading @ slope
    covariance[d, d] = residual + slope @ loading @ slope
    return covariance


def fold_runs(now: Posterior, hyperprior: Hyperprior, rasch: bool) -> Posterior:
    """`now` with the mean and the covariance of the runs folded into the items (`variational`: L and m̄)."""
    return now.change_axes(*run_scale(now, hyperprior, rasch))


def run_scale(now: Posterior, hyperprior: Hyperprior, rasch: bool) -> tuple[FloatArray, FloatArray]:
    """L (d, d) and m̄ (d,)."""
    n_runs, d = now.theta.shape
    shift = now.theta.mean(axis=0)
    off = now.theta - shift
    square = (now.theta_covariance.sum(axis=0) + off.T @ off) / n_runs
    if not rasch:
        weight = hyperprior.weight * len(now.item)
        held = weight * hyperprior.loading_sd**2 * np.linalg.inv(now.prior.common[:d, :d])
        square = (n_runs * square + held) / (n_runs + weight)
    # The symmetric root turns the axes least, so the rows' last directions stay comparable.
    size, axes = np.linalg.eigh((square + square.T) / 2.0)
    if float(np.mean(now.item[:, :d] ** 2) * d) > _STEEPEST**2:
        size = np.minimum(size, 1.0)
    return (axes * np.sqrt(size)) @ axes.T, shift
