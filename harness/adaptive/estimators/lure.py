"""LURE: adaptively chosen outcomes reweighted by the probability of their choice.

    ŝ = (1/N) Σ_all c_i + (1/M) Σ_m v_m (y_m − c_m),     v_m = 1 + (N−M)/(N−m) · ( 1/((N−m+1) q_m) − 1 )

for M choices from N items, q_m the probability of the m-th given all before. Unbiased for any policy that gives every
open item a chance, if the control variate c is fixed beforehand. Source: Kossen, Farquhar, Gal & Rainforth 2021,
"Active Testing", equations 4 and 5; they have no control variate, which changes nothing in the proof. `steps` has the
form that also holds with items in flight, withdrawn, or of unknown choice.

Control variates: "model", the posterior predictive probabilities now, which have seen the outcomes (a bias of the order
of d/k, well under the error); "prior", what the bank says before the first outcome, exactly unbiased; "none", the plain
estimator. The random share ε of a hedged policy bounds 1/q by P/ε: with a small ε the error is large, and `difference`,
which conditions on which steps were draws, does better.

Without one step that tells (no random share, or choices not recorded) it is what it would correct: the posterior
predictive estimate, or for "none" the sample mean, with their errors. The value is cut to what the outcomes allow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from harness.adaptive.arrays import BoolArray, FloatArray, sigmoid
from harness.adaptive.estimators.posterior_predictive import PosteriorPredictive, averaged
from harness.adaptive.estimators.protocol import Estimator, Moments
from harness.adaptive.estimators.sample_mean import SampleMean
from harness.adaptive.estimators.steps import Steps, Total, corrected, total_of
from harness.adaptive.evidence import Evidence
from harness.adaptive.strata import difficulty

Control = Literal["model", "prior", "none"]


@dataclass(frozen=True)
class Lure:
    """See the module."""

    control: Control = "model"

    @property
    def name(self) -> str:
        """ "lure", "lure_prior" or "lure_plain"."""
        return {"model": "lure", "prior": "lure_prior", "none": "lure_plain"}[self.control]

    def moments(self, evidence: Evidence) -> Moments:
        """Value and standard error; O(N d² + k log k)."""
        predicted = control_of(evidence, self.control)
        fallback: Estimator = SampleMean() if self.control == "none" else PosteriorPredictive()
        return corrected(evidence, predicted, self.total(evidence, predicted), fallback.moments(evidence))

    def total(self, evidence: Evidence, predicted: FloatArray) -> Total:
        """The estimated Σ (y − predicted) over the population and its variance, `predicted` (..., N); not cut."""
        steps = Steps.of(evidence)
        e = steps.sorted(evidence.rates - evidence.of_executed(predicted))
        q = steps.sorted(np.nan_to_num(evidence.probability))
        tells = steps.seen & (q > 0.0) & ((q < 1.0) | (steps.pool <= 1.0))
        inverse = np.divide(1.0, q, out=np.ones(q.shape), where=q > 0.0)
        return total_of(steps, e, inverse, tells, _expected(evidence, steps, q, tells, self.control))


def control_of(evidence: Evidence, control: Control) -> FloatArray:
    """c of every item, (..., N)."""
    if control == "model":
        return averaged(evidence)[1]
    if control == "prior":
        return np.broadcast_to(sigmoid(-difficulty(evidence.bank)), evidence.counted.shape)
    return np.zeros(evidence.counted.shape)


def _expected(evidence: Evidence, steps: Steps, q: FloatArray, tells: BoolArray, control: Control) -> FloatArray:
    """Var T_m as predicted, (..., k): P² (E e²/ε − (E e)²), ε the random share that q and P betray: a share ε of the
    chance is even and the rest is on one item, so q is ε/P, or that plus 1 − ε.
    """
    pool = steps.pool
    even = 1.0 / pool
    uneven = np.divide(1.0 - q, 1.0 - even, out=np.ones(q.shape), where=pool > 1.0)
    share = np.where(q > even * (1.0 + 1e-9), uneven, q * pool)
    share = np.where(tells & (share > 0), np.minimum(share, 1.0), 1.0)
    if control == "none":
        mean = (evidence.score + 1.0) / (evidence.executed + 2.0)
        square = mean
    else:
        p = control_of(evidence, control)
        mean = np.zeros(evidence.executed.shape)
        square = (p * (1.0 - p) * evidence.counted).sum(axis=-1) / np.maximum(evidence.n_items, 1)
    return np.asarray(pool**2 * np.maximum(square[..., None] / share - mean[..., None] ** 2, 0.0))
