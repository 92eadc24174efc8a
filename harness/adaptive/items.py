"""What is known of single items besides the joint fit: which must be held out, their stand-in parameters,
spread, and misfit.

All functions take `passes` and `trials` (R, N) and abilities θ (R, d) held fixed.
"""

from __future__ import annotations

import numpy as np

from harness.adaptive.arrays import BoolArray, FloatArray, sigmoid
from harness.adaptive.likelihood import Parameters, Priors

EMPTY = "no graded outcome"
SINGLE = "one graded outcome only"
ALL_PASSED = "every graded outcome is a pass"
ALL_FAILED = "every graded outcome is a failure"
REVERSED = "better runs do worse on it (keys reversed?)"
REVERSED_Z = -3.0
_NEWTON_STEPS = 60


def not_estimable(passes: FloatArray, trials: FloatArray) -> dict[int, str]:
    """Column → reason, for columns whose discrimination the data say nothing of: empty, single or constant
    (CASES S06).
    """
    k, n = passes.sum(axis=0), trials.sum(axis=0)
    reasons: dict[int, str] = {}
    for column in np.flatnonzero((n <= 1) | (k == 0) | (k == n)):
        if n[column] == 0:
            reasons[int(column)] = EMPTY
        elif n[column] == 1:
            reasons[int(column)] = SINGLE
        else:
            reasons[int(column)] = ALL_PASSED if k[column] == n[column] else ALL_FAILED
    return reasons


def difficulty_given(
    passes: FloatArray, trials: FloatArray, strength: FloatArray, centre: float, priors: Priors
) -> FloatArray:
    """MAP of β for each column, its loadings fixed: `strength` (R, N) is α·θ. Returns (N,), finite for every
    column.

    Maximises Σ_r k(s − β) − n log(1 + exp(s − β)) − (β − m)²/(2 s_β²) by Newton steps of at most 1; the
    function is concave.
    """
    beta = np.full(passes.shape[1], centre)
    precision = 1.0 / priors.difficulty_sd**2
    for _ in range(_NEWTON_STEPS):
        probability = sigmoid(strength - beta)
        slope = (trials * probability - passes).sum(axis=0) - precision * (beta - centre)
        curvature = (trials * probability * (1.0 - probability)).sum(axis=0) + precision
        step = np.clip(slope / curvature, -1.0, 1.0)
        beta = beta + step
        if not step.size or np.max(np.abs(step)) < 1e-10:
            break
    return beta


def item_covariance(trials: FloatArray, parameters: Parameters, priors: Priors, rasch: bool) -> FloatArray:
    """Laplace covariance of (α_i, β_i) given θ, (N, d+1, d+1): the inverse of Σ_r n w x xᵀ + prior precision,
    x = (θ_r, −1).

    An item with few trials keeps nearly its prior spread (CASES S09). The prior of log α₁ enters by the delta
    method, 1/(s_g α₁)². Under Rasch α is known: its rows are 0. That θ is estimated too is left out, so these
    are lower bounds.
    """
    n_items, d = parameters.alpha.shape
    covariance = np.zeros((n_items, d + 1, d + 1))
    probability = sigmoid(parameters.theta @ parameters.alpha.T - parameters.beta)
    weight = trials * probability * (1.0 - probability)
    if rasch:
        covariance[:, d, d] = 1.0 / (weight.sum(axis=0) + 1.0 / priors.difficulty_sd**2)
        return covariance
    x = np.column_stack([parameters.theta, -np.ones(len(parameters.theta))])
    outer = (x[:, :, None] * x[:, None, :]).reshape(len(x), (d + 1) ** 2)
    precision = (weight.T @ outer).reshape(n_items, d + 1, d + 1)
    precision[:, 0, 0] += 1.0 / (priors.general_log_sd * parameters.alpha[:, 0]) ** 2
    specific = np.arange(1, d)
    precision[:, specific, specific] += 1.0 / priors.specific_sd**2
    precision[:, d, d] += 1.0 / priors.difficulty_sd**2
    inverse = np.linalg.inv(precision)
    return np.asarray((inverse + inverse.transpose(0, 2, 1)) / 2)


def reversed_items(passes: FloatArray, trials: FloatArray, general: FloatArray) -> BoolArray:
    """Columns whose passes fall with the general ability `general` (R,), by the score test of "no relation":
    z < −3.

    With p̂ = Σk/Σn of the column and θ̄ the trial-weighted mean ability, z = Σ (k − n p̂)(θ − θ̄) /
    √(p̂(1−p̂) Σ n (θ − θ̄)²). Columns without spread are never flagged.
    """
    n = trials.sum(axis=0)
    tried = np.maximum(n, 1.0)
    rate = passes.sum(axis=0) / tried
    off = general[:, None] - (trials * general[:, None]).sum(axis=0) / tried
    score = ((passes - trials * rate) * off).sum(axis=0)
    variance = rate * (1.0 - rate) * (trials * off**2).sum(axis=0)
    z = np.divide(score, np.sqrt(variance), out=np.zeros_like(score), where=variance > 1e-12)
    return np.asarray(z < REVERSED_Z)
