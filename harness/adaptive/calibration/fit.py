"""One joint MAP fit at a given dimension: starting point, L-BFGS, convergence.

L-BFGS (Liu & Nocedal 1989) runs in units of each parameter's conditional posterior standard deviation at the
start (`Objective.curvature`): runs with many trials, runs with few, loadings and difficulties then have a
like curvature, which cuts the iterations to some tens. It starts from `start` unless told where.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from harness.adaptive.arrays import FloatArray
from harness.adaptive.calibration.likelihood import Objective, Parameters
from harness.adaptive.calibration.start import starting_point
from harness.adaptive.provenance import Convergence

_MEMORY = 10


@dataclass(frozen=True, eq=False)
class Fit:
    """The parameters at which L-BFGS stopped, the loss there, and how it stopped."""

    parameters: Parameters
    loss: float
    convergence: Convergence


def fit_map(objective: Objective, max_iterations: int, tolerance: float, first: Parameters | None = None) -> Fit:
    """Minimise `objective` from `first`, or from the data; deterministic. Not converging is reported in the result
    and is not an error here.
    """
    start = objective.pack(first if first is not None else _from_data(objective))
    if objective.cells.n_runs == 0 or objective.cells.n_items == 0:
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


def _from_data(objective: Objective) -> Parameters:
    theta, item = starting_point(objective.cells, objective.d)
    if not objective.cells.n_runs:
        item[:, -1] = objective.centre
    return Parameters(theta, item[:, :-1], item[:, -1])
