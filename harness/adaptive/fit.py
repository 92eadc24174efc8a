"""One joint MAP fit at a given dimension: starting point, L-BFGS, convergence.

L-BFGS (Liu & Nocedal 1989) runs in units of each parameter's conditional posterior standard deviation at the
start (`Objective.curvature`): runs with many trials, runs with few, loadings and difficulties then have a
like curvature, which cuts the iterations to some tens. The start is deterministic: raw logits for θ₁ and β,
the leading singular vectors of the standardised residuals for the specific axes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from harness.adaptive.arrays import FloatArray, sigmoid
from harness.adaptive.likelihood import Objective, Parameters
from harness.adaptive.provenance import Convergence

_MEMORY = 10
_LEAST_VARIANCE = 0.02  # keeps a surprising cell of an extreme item from owning a singular vector


@dataclass(frozen=True, eq=False)
class Fit:
    """The parameters at which L-BFGS stopped, the loss there, and how it stopped."""

    parameters: Parameters
    loss: float
    convergence: Convergence


def fit_map(objective: Objective, max_iterations: int, tolerance: float) -> Fit:
    """Minimise `objective`; deterministic. Not converging is reported in the result and is not an error here."""
    start = objective.pack(starting_point(objective))
    if objective.trials.size == 0:
        return Fit(objective.unpack(start), 0.0, Convergence(True, 0, 0.0, tolerance))
    unit = 1.0 / np.sqrt(objective.curvature(start))

    def scaled(position: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = objective.value_and_gradient(position * unit)
        return value, gradient * unit

    options: dict[str, Any] = {
        "maxcor": _MEMORY,
        "maxiter": max_iterations,
        "maxfun": 2 * max_iterations + 20,
        "gtol": tolerance,
        "ftol": 0.0,  # a flat stretch is not convergence: only the gradient decides
    }
    result = minimize(scaled, start / unit, jac=True, method="L-BFGS-B", options=options)
    packed = np.asarray(result.x) * unit
    value, gradient = objective.value_and_gradient(packed)
    steepest = float(np.max(np.abs(gradient) / np.sqrt(objective.curvature(packed))))
    # The unit of the final point differs a little from that of the start in which L-BFGS measured: hence the factor.
    converged = steepest <= 2.0 * tolerance
    return Fit(
        parameters=objective.unpack(packed),
        loss=value,
        convergence=Convergence(converged, int(result.nit), steepest, 2.0 * tolerance),
    )


def starting_point(objective: Objective) -> Parameters:
    """θ₁ and β from smoothed logits, the specific axes from the SVD of standardised residuals (0 beyond their
    rank).
    """
    passes, trials = objective.passes, objective.trials
    n_runs, n_items = trials.shape
    theta, alpha = np.zeros((n_runs, objective.d)), np.ones((n_items, objective.d))
    if n_runs == 0 or n_items == 0:
        alpha[:, 1:] = 0.0
        return Parameters(theta, alpha, np.full(n_items, objective.centre))
    k, n = passes.sum(axis=1), trials.sum(axis=1)
    raw = np.log((k + 0.5) / (n - k + 0.5))
    theta[:, 0] = raw - raw.mean()
    k, n = passes.sum(axis=0), trials.sum(axis=0)
    beta = np.log((n - k + 0.5) / (k + 0.5))
    axes = objective.d - 1
    if axes:
        expected = sigmoid(theta[:, :1] - beta)
        spread = np.sqrt(np.maximum(expected * (1.0 - expected), _LEAST_VARIANCE))
        left, size, right = np.linalg.svd((passes - trials * expected) / spread, full_matrices=False)
        rank = min(axes, len(size))
        scale = np.sqrt(n_runs)
        alpha[:, 1:] = 0.0
        theta[:, 1 : 1 + rank] = left[:, :rank] * (0.7 * scale)
        alpha[:, 1 : 1 + rank] = right[:rank].T * (size[:rank] / scale)
    return Parameters(theta, alpha, beta)
