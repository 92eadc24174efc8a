"""gp-IRT as published: the weighted subset estimate and p-IRT, mixed by what each is known to be off.

    ŝ = λ ŝ_weighted + (1 − λ) ŝ_pIRT,        λ = b̂² / (σ̂²/(4k) + b̂²)

with σ̂² the mean variance of outcomes within a past run and b̂² the squared MAE of p-IRT on past runs kept apart from
its calibration (`gp_irt_history.gp_irt_from` finds both). Source: She & Lin 2026 (arXiv:2609.21267), equations 14 and
15, after Polo et al. 2024 (tinyBenchmarks), whose quarter stands for a representative choice. They give no interval;
ours is

    SE = λ SE_weighted + (1 − λ) √(SE_pIRT² + (2 b̂ (N − k)/N)²)

an upper bound whatever the correlation of the two; b̂ was measured with half of the items unexecuted, hence the factor.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from harness.adaptive.errors import EngineError
from harness.adaptive.estimators.p_irt import PIrt
from harness.adaptive.estimators.protocol import Estimator, Moments
from harness.adaptive.estimators.stratified import WEIGHTED
from harness.adaptive.evidence import Evidence


@dataclass(frozen=True)
class GpIrt:
    """`squared_bias` b̂² and `outcome_variance` σ̂², fractions of 1 squared. `weighted` is the estimator by the choice's
    own weights: strata by default, `SampleMean` for random choice.

    Raises EngineError unless both numbers are finite and not negative.
    """

    squared_bias: float
    outcome_variance: float
    weighted: Estimator = field(default=WEIGHTED)
    name: str = "gp_irt"

    def __post_init__(self) -> None:
        for place, value in (("squared_bias", self.squared_bias), ("outcome_variance", self.outcome_variance)):
            if not (np.isfinite(value) and value >= 0):
                raise EngineError(f"{value}", place=place, remedy="Estimate it from a history (gp_irt_from)")

    def moments(self, evidence: Evidence) -> Moments:
        """Value and standard error; O(N d). Before the first outcome λ is 0."""
        k = evidence.executed
        pull = 4.0 * k * self.squared_bias
        weight = pull / np.maximum(self.outcome_variance + pull, np.finfo(np.float64).tiny)
        direct, model = self.weighted.moments(evidence), PIrt().moments(evidence)
        open_share = evidence.rest.sum(axis=-1) / np.maximum(evidence.n_items, 1)
        model_error = np.sqrt(model.standard_error**2 + 4.0 * self.squared_bias * open_share**2)
        return Moments(
            np.asarray(weight * direct.value + (1.0 - weight) * model.value),
            np.asarray(weight * direct.standard_error + (1.0 - weight) * model_error),
        )
