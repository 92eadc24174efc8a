"""The default estimate: the model where it is right, the drawn items where it is not.

The posterior predictive estimate (`posterior_predictive`) is corrected by what the *drawn* items say of it. A drawn
item had the same chance as every other one open at that step (`evidence.Draw`), so the mean residual over the n drawn,

    r̄ = (1/n) Σ_drawn (y_i − q_i),      v = max( [ Σ_drawn (y_i − q_i)² + n₀ v₀ ] / (n + n₀), v₀ ) / n

with v₀ the mean of q(1−q), estimates how far the model's predictions are off on the items it has not seen. Before the
run that shift c is N(0, τ²) with τ learnt on past agents (`backtest`), or, with a small probability π, anything up to
tens of points, N(0, ω²): an agent that the model does not fit. Then r̄ ~ N(0, τ_j² + v) under either, and

    w_j ∝ π_j N(r̄; 0, τ_j² + v),      λ_j = τ_j²/(τ_j² + v)
    E[c] = r̄ Σ_j w_j λ_j,              Var[c] = Σ_j w_j (λ_j v + λ_j² r̄²) − E[c]²
    ŝ = ( Σ_S y + Σ_rest q + M E[c] ) / N

with M unexecuted items. The second component is the misfit monitor: residuals that the model cannot explain raise its
weight w, and the estimate goes over to the design. Without drawn items E[c] = 0 and this is the posterior predictive
estimate; with all items drawn it is the generalised difference estimator (Särndal, Swensson & Wretman 1992, "Model
Assisted Survey Sampling", section 6.3) shrunk towards the model. M² Var[c] is added to the Bernoulli part; what is not
known of θ counts by the share (1 − Σ w λ)² that the residuals leave, since a common shift is what they measure.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.adaptive.arrays import FloatArray
from harness.adaptive.errors import EngineError
from harness.adaptive.estimators.posterior_predictive import averaged
from harness.adaptive.estimators.protocol import Moments, of_total
from harness.adaptive.evidence import Evidence

MISFIT_PROBABILITY = 0.05  # π
MISFIT_SD = 0.15  # ω
PRIOR_RESIDUALS = 4.0  # n₀: the variance of a handful of residuals is itself noise


@dataclass(frozen=True)
class Hybrid:
    """`model_error` τ ≥ 0, in fractions of 1; raises EngineError otherwise."""

    model_error: float = 0.02
    name: str = "hybrid"

    def __post_init__(self) -> None:
        if not self.model_error >= 0.0:
            raise EngineError(
                f"model error {self.model_error}", place="Hybrid", remedy="Give a standard deviation of at least 0"
            )

    def moments(self, evidence: Evidence) -> Moments:
        """Value and standard error; O(N d²)."""
        attenuation, q = averaged(evidence)
        rest = evidence.rest
        bernoulli = np.asarray((q * (1.0 - q) * rest).sum(axis=-1))
        lever = (q * (1.0 - q) * rest * attenuation) @ evidence.bank.alpha
        ability = ((lever[..., None, :] @ evidence.covariance)[..., 0, :] * lever).sum(axis=-1)
        shift = residual_shift(evidence, q, self.model_error)
        unseen = np.asarray(rest.sum(axis=-1), dtype=np.float64)
        variance = bernoulli + (1.0 - shift.weight) ** 2 * ability + unseen**2 * shift.variance
        return of_total(evidence, np.asarray((q * rest).sum(axis=-1) + unseen * shift.expected), variance)


@dataclass(frozen=True, eq=False)
class Shift:
    """What the drawn items say of the model, each (...,): the `mean` residual r̄, its `z` score under a model that is
    right, E[c] (`expected`), Var[c] (`variance`), Σ w λ (`weight`) and the probability of `misfit`.

    With nothing drawn: 0, 0, 0, τ², 0 and π.
    """

    mean: FloatArray
    z: FloatArray
    expected: FloatArray
    variance: FloatArray
    weight: FloatArray
    misfit: FloatArray


def residual_shift(evidence: Evidence, q: FloatArray, model_error: float) -> Shift:
    """The shift for predictions `q` (..., N) and τ = `model_error`; O(k)."""
    predicted = evidence.of_executed(q)
    drawn = (evidence.random & (evidence.trials > 0)).astype(np.float64)
    n = np.asarray(drawn.sum(axis=-1))
    count = np.maximum(n, 1.0)
    residual = (evidence.rates - predicted) * drawn
    mean = np.asarray(residual.sum(axis=-1) / count)
    typical = (predicted * (1.0 - predicted) * drawn).sum(axis=-1) / count
    pooled = ((residual**2).sum(axis=-1) + PRIOR_RESIDUALS * typical) / (count + PRIOR_RESIDUALS)
    noise = np.where(n > 0, np.maximum(np.maximum(pooled, typical) / count, 1e-12), np.inf)
    prior = np.array([1.0 - MISFIT_PROBABILITY, MISFIT_PROBABILITY])
    error = np.array([model_error**2, MISFIT_SD**2])
    total = error + noise[..., None]
    share = np.where(np.isfinite(total), error / total, 0.0)
    log_weight = np.log(prior) - 0.5 * np.where(np.isfinite(total), np.log(total) + mean[..., None] ** 2 / total, 0.0)
    weight = np.exp(log_weight - log_weight.max(axis=-1, keepdims=True))
    weight /= weight.sum(axis=-1, keepdims=True)
    pull = (weight * share).sum(axis=-1)
    expected = pull * mean
    spread = share * np.where(n > 0, noise, 0.0)[..., None] + share**2 * mean[..., None] ** 2
    variance = np.where(n > 0, (weight * spread).sum(axis=-1) - expected**2, model_error**2)
    return Shift(
        mean=mean,
        z=np.where(n > 0, mean / np.sqrt(noise), 0.0),
        expected=np.asarray(expected),
        variance=np.maximum(variance, 0.0),
        weight=np.asarray(pull),
        misfit=np.asarray(weight[..., 1]),
    )
