"""The objective of joint MAP calibration and its analytic gradient.

With n trials and k passes in cell (r, i) and the logit z = α·θ − β, the negative log posterior, constants
left out, is

    L = Σ_{r,i} [ n log(1 + exp z) − k z ]
      + ½ Σ_r |θ_r|²
      + ½ Σ_i (log α_{i1})² / s_g² + ½ Σ_i Σ_{j≥2} α_{ij}² / s_s² + ½ Σ_i (β_i − m)² / s_β²

Axis 1 is the general ability: α₁ = exp(ξ) > 0 by construction, ξ ~ N(0, s_g²), so a better agent is never
predicted to do worse for it and the scale cannot flip (CASES S08). Further axes are specific and have
loadings of either sign. Rasch is the case d = 1 with α₁ = 1 held fixed. m is the centre of the difficulties,
taken from the data (`centre_difficulty`).

The derivative by the logit is e = n σ(z) − k, hence

    ∂L/∂θ = e α + θ,   ∂L/∂ξ = α₁ (eᵀθ₁) + ξ/s_g²,   ∂L/∂α_j = eᵀθ_j + α_j/s_s²,   ∂L/∂β = −eᵀ1 + (β − m)/s_β²

Parameters travel as one vector: θ row by row, then ξ (unless Rasch), then the specific loadings row by row,
then β.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.adaptive.arrays import FloatArray, sigmoid
from harness.adaptive.calibration.cells import Cells
from harness.adaptive.calibration.posterior import with_constant
from harness.adaptive.errors import CalibrationError


@dataclass(frozen=True)
class Priors:
    """Standard deviations of the Gaussian priors; θ ~ N(0, I) fixes the scale.

    `general_log_sd` s_g of log α₁ about 0; `specific_sd` s_s of each further loading about 0; `difficulty_sd`
    s_β of β about m. Variational calibration learns these and takes `specific_sd` alone, as the centre of its
    hyperprior (`Hyperprior`).
    """

    general_log_sd: float = 0.4
    specific_sd: float = 0.4
    difficulty_sd: float = 2.0

    def __post_init__(self) -> None:
        for name in ("general_log_sd", "specific_sd", "difficulty_sd"):
            if not (np.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise CalibrationError(
                    f"{getattr(self, name)!r} is not a standard deviation",
                    place=f"Priors.{name}",
                    remedy="Give a finite number above 0",
                )


@dataclass(frozen=True, eq=False)
class Parameters:
    """`theta` (R, d), `alpha` (N, d) and `beta` (N,) of one fit, unpacked."""

    theta: FloatArray
    alpha: FloatArray
    beta: FloatArray


@dataclass(frozen=True, eq=False)
class Objective:
    """L and its gradient for the `cells` at dimension `d`; `rasch` holds α = 1 (and needs d = 1)."""

    cells: Cells
    d: int
    rasch: bool
    priors: Priors
    centre: float

    def pack(self, parameters: Parameters) -> FloatArray:
        """The vector of `Parameters`."""
        parts = [parameters.theta.ravel()]
        if not self.rasch:
            parts += [np.log(parameters.alpha[:, 0]), parameters.alpha[:, 1:].ravel()]
        return np.concatenate([*parts, parameters.beta])

    def unpack(self, packed: FloatArray) -> Parameters:
        """The `Parameters` of a vector; raises ValueError if it has another length."""
        n_runs, n_items = self.cells.n_runs, self.cells.n_items
        sizes = [n_runs * self.d, n_items]
        if not self.rasch:
            sizes[1:1] = [n_items, n_items * (self.d - 1)]
        parts = np.split(packed, np.cumsum(sizes)[:-1])
        theta = parts[0].reshape(n_runs, self.d)
        if self.rasch:
            return Parameters(theta, np.ones((n_items, 1)), parts[1])
        alpha = np.column_stack([np.exp(parts[1]), parts[2].reshape(n_items, self.d - 1)])
        return Parameters(theta, alpha, parts[3])

    def value_and_gradient(self, packed: FloatArray) -> tuple[float, FloatArray]:
        """L and ∂L/∂packed, the latter of the shape of `packed`; O(R N d)."""
        at = self.unpack(packed)
        item = np.column_stack([at.alpha, at.beta])
        loss, by_theta, by_item = 0.0, at.theta.copy(), np.zeros((self.cells.n_items, self.d + 1))
        for block in self.cells.blocks:
            x = with_constant(at.theta[block.rows])
            logits = block.products(x, item)
            # One exponential serves both σ and log(1 + exp): this loop is all the time a calibration takes.
            tail = np.exp(-np.abs(logits))
            upper = 1.0 / (1.0 + tail)
            probability = np.where(logits >= 0, upper, tail * upper)
            loss += float(np.vdot(block.trials, np.maximum(logits, 0.0) + np.log1p(tail)))
            loss -= float(np.vdot(block.passes, logits))
            residual = block.trials * probability
            residual -= block.passes
            by_theta[block.rows] += block.by_run(residual, at.alpha)
            by_item += block.by_item(residual, x)
        off_centre = at.beta - self.centre
        loss += 0.5 * float(np.vdot(at.theta, at.theta))
        loss += 0.5 * float(off_centre @ off_centre) / self.priors.difficulty_sd**2
        by_beta = off_centre / self.priors.difficulty_sd**2 + by_item[:, self.d]
        if self.rasch:
            return loss, np.concatenate([by_theta.ravel(), by_beta])
        by_alpha = by_item[:, : self.d]
        log_general, specific = np.log(at.alpha[:, 0]), at.alpha[:, 1:]
        loss += 0.5 * float(log_general @ log_general) / self.priors.general_log_sd**2
        loss += 0.5 * float(np.vdot(specific, specific)) / self.priors.specific_sd**2
        by_general = at.alpha[:, 0] * by_alpha[:, 0] + log_general / self.priors.general_log_sd**2
        by_specific = by_alpha[:, 1:] + specific / self.priors.specific_sd**2
        return loss, np.concatenate([by_theta.ravel(), by_general, by_specific.ravel(), by_beta])

    def curvature(self, packed: FloatArray) -> FloatArray:
        """A positive diagonal close to that of the Hessian of L (the expected part), the shape of `packed`.

        Its inverse root is each parameter's posterior standard deviation given all others: the unit in which
        L-BFGS works and in which convergence is judged.
        """
        at = self.unpack(packed)
        item = np.column_stack([at.alpha, at.beta])
        by_theta, by_item = np.ones_like(at.theta), np.zeros((self.cells.n_items, self.d + 1))
        for block in self.cells.blocks:
            x = with_constant(at.theta[block.rows])
            probability = sigmoid(block.products(x, item))
            weight = block.trials * probability * (1.0 - probability)
            by_theta[block.rows] += block.by_run(weight, at.alpha**2)
            by_item += block.by_item(weight, x**2)
        by_beta = by_item[:, self.d] + 1.0 / self.priors.difficulty_sd**2
        if self.rasch:
            return np.concatenate([by_theta.ravel(), by_beta])
        by_alpha = by_item[:, : self.d]
        by_general = at.alpha[:, 0] ** 2 * by_alpha[:, 0] + 1.0 / self.priors.general_log_sd**2
        by_specific = by_alpha[:, 1:] + 1.0 / self.priors.specific_sd**2
        return np.concatenate([by_theta.ravel(), by_general, by_specific.ravel(), by_beta])


def centre_difficulty(cells: Cells) -> float:
    """The mean over items with trials of −logit((k + ½)/(n + 1)): the prior centre m of β; 0 where nothing
    was tried.
    """
    k, n = cells.totals_by_item()
    tried = n > 0
    if not tried.any():
        return 0.0
    return float(np.mean(np.log((n[tried] - k[tried] + 0.5) / (k[tried] + 0.5))))
