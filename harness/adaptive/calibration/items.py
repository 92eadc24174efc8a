"""What is known of single items besides the joint fit: which must be held out, their stand-in parameters,
spread, and misfit.

All functions take the observed cells and abilities θ (R, d) held fixed.
"""

from __future__ import annotations

import numpy as np

from harness.adaptive.arrays import BoolArray, FloatArray, sigmoid
from harness.adaptive.calibration.cells import Cells
from harness.adaptive.calibration.likelihood import Parameters, Priors
from harness.adaptive.calibration.posterior import moment_features, symmetric, with_constant

EMPTY = "no graded outcome"
SINGLE = "one graded outcome only"
ALL_PASSED = "every graded outcome is a pass"
ALL_FAILED = "every graded outcome is a failure"
REVERSED = "better runs do worse on it (keys reversed?)"
REVERSED_Z = -3.0
_NEWTON_STEPS = 60


def not_estimable(cells: Cells) -> dict[int, str]:
    """Column → reason, for columns whose discrimination the data say nothing of: empty, single or constant
    (CASES S06).
    """
    k, n = cells.totals_by_item()
    reasons: dict[int, str] = {}
    for column in np.flatnonzero((n <= 1) | (k == 0) | (k >= n)):
        if n[column] == 0:
            reasons[int(column)] = EMPTY
        elif n[column] <= 1:
            reasons[int(column)] = SINGLE
        else:
            reasons[int(column)] = ALL_PASSED if k[column] > 0 else ALL_FAILED
    return reasons


def difficulty_given(cells: Cells, theta: FloatArray, alpha: FloatArray, centre: float, priors: Priors) -> FloatArray:
    """MAP of β for each column, its loadings `alpha` (N, d) fixed. Returns (N,), finite for every column.

    Maximises Σ_r k(s − β) − n log(1 + exp(s − β)) − (β − m)²/(2 s_β²), s = α·θ, by Newton steps of at most 1; the
    function is concave.
    """
    beta = np.full(cells.n_items, centre)
    precision = 1.0 / priors.difficulty_sd**2
    for _ in range(_NEWTON_STEPS):
        slope, curvature = -precision * (beta - centre), np.full(cells.n_items, precision)
        item = np.column_stack([alpha, beta])
        for block in cells.blocks:
            x = with_constant(theta[block.rows])
            probability = sigmoid(block.products(x, item))
            one = np.ones((len(x), 1))
            slope += block.by_item(block.trials * probability - block.passes, one)[:, 0]
            curvature += block.by_item(block.trials * probability * (1.0 - probability), one)[:, 0]
        step = np.clip(slope / curvature, -1.0, 1.0)
        beta = beta + step
        if not step.size or np.max(np.abs(step)) < 1e-10:
            break
    return beta


def item_covariance(cells: Cells, parameters: Parameters, priors: Priors, rasch: bool) -> FloatArray:
    """Laplace covariance of (α_i, β_i) given θ, (N, d+1, d+1): the inverse of Σ_r n w x xᵀ + prior precision,
    x = (θ_r, −1).

    An item with few trials keeps nearly its prior spread (CASES S09). The prior of log α₁ enters by the delta
    method, 1/(s_g α₁)². Under Rasch α is known: its rows are 0. That θ is estimated too is left out, so these
    are lower bounds.
    """
    n_items, d = parameters.alpha.shape
    item = np.column_stack([parameters.alpha, parameters.beta])
    features = np.zeros((n_items, (d + 1) * (d + 2) // 2))
    for block in cells.blocks:
        x = with_constant(parameters.theta[block.rows])
        probability = sigmoid(block.products(x, item))
        known = moment_features(x, np.zeros((len(x), d + 1, d + 1)), twice=False)
        features += block.by_item(block.trials * probability * (1.0 - probability), known)
    precision = symmetric(features, d + 1)
    precision[:, d, d] += 1.0 / priors.difficulty_sd**2
    if rasch:
        covariance = np.zeros((n_items, d + 1, d + 1))
        covariance[:, d, d] = 1.0 / precision[:, d, d]
        return covariance
    precision[:, 0, 0] += 1.0 / (priors.general_log_sd * parameters.alpha[:, 0]) ** 2
    specific = np.arange(1, d)
    precision[:, specific, specific] += 1.0 / priors.specific_sd**2
    inverse = np.linalg.inv(precision)
    return np.asarray((inverse + inverse.transpose(0, 2, 1)) / 2)


def reversed_items(cells: Cells, general: FloatArray) -> BoolArray:
    """Columns whose passes fall with the general ability `general` (R,), by the score test of "no relation":
    z < −3.

    With p̂ = Σk/Σn of the column and θ̄ the trial-weighted mean ability, z = Σ (k − n p̂)(θ − θ̄) /
    √(p̂(1−p̂) Σ n (θ − θ̄)²). Columns without spread are never flagged.
    """
    by_passes, by_trials = np.zeros((cells.n_items, 2)), np.zeros((cells.n_items, 3))
    for block in cells.blocks:
        theta = general[block.rows]
        powers = np.column_stack([np.ones_like(theta), theta, theta**2])
        by_passes += block.by_item(block.passes, powers[:, :2])
        by_trials += block.by_item(block.trials, powers)
    n = by_trials[:, 0]
    tried = np.maximum(n, 1.0)
    rate, mean = by_passes[:, 0] / tried, by_trials[:, 1] / tried
    # Σ (k − n p̂)(θ − θ̄) with Σ (k − n p̂) = 0.
    score = by_passes[:, 1] - rate * by_trials[:, 1]
    variance = rate * (1.0 - rate) * (by_trials[:, 2] - mean * by_trials[:, 1])
    z = np.divide(score, np.sqrt(np.maximum(variance, 0.0)), out=np.zeros_like(score), where=variance > 1e-12)
    return np.asarray(z < REVERSED_Z)
