"""The difference estimator: the model's total over all items, corrected by the residuals of the drawn ones.

    ŝ = (1/N) [ Σ_all q_i + Σ_m c_m ( Σ_{chosen before m} e + P_m e_m ) ],        e = y − q

over the steps m that were draws (`Evidence.random`): such an item had the same chance as the other P_m open ones, so
P_m e_m estimates the residuals of all of them, and those chosen before are known. `steps` has the weights c and why
this is unbiased. With all items drawn it is Σ q/N + ē, the generalised difference estimator of Särndal, Swensson &
Wretman 1992, "Model Assisted Survey Sampling", section 6.3, and prediction-powered inference (Angelopoulos et al. 2023)
for a finite population. q is the posterior predictive probability; that it has seen the outcomes biases it by the order
of d/k.

The error is design-based: it holds where the model is wrong. Without a draw it is the posterior predictive estimate
with its error. The value is cut to what the outcomes allow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.adaptive.arrays import FloatArray
from harness.adaptive.estimators.posterior_predictive import PosteriorPredictive, averaged
from harness.adaptive.estimators.protocol import Moments
from harness.adaptive.estimators.steps import Steps, Total, corrected, total_of
from harness.adaptive.evidence import Evidence


@dataclass(frozen=True)
class Difference:
    """See the module."""

    name: str = "difference"

    def moments(self, evidence: Evidence) -> Moments:
        """Value and standard error; O(N d² + k log k)."""
        predicted = averaged(evidence)[1]
        return corrected(evidence, predicted, self.total(evidence, predicted), PosteriorPredictive().moments(evidence))

    def total(self, evidence: Evidence, predicted: FloatArray) -> Total:
        """The estimated Σ (y − predicted) over the population and its variance, `predicted` (..., N); not cut."""
        steps = Steps.of(evidence)
        e = steps.sorted(evidence.rates - evidence.of_executed(predicted))
        drawn = steps.sorted(evidence.random.astype(np.float64)) > 0.0
        spread = (predicted * (1.0 - predicted) * evidence.counted).sum(axis=-1) / np.maximum(evidence.n_items, 1)
        return total_of(steps, e, steps.pool, drawn, np.asarray(steps.pool**2 * spread[..., None]))
