"""The mean of the executed items, as if they were a simple random sample.

    ŝ = (1/k) Σ_S y,        Var = (1 − k/N) s²/k

She & Lin 2026 (arXiv:2609.21267), equation 6, for random choice; the error is Cochran's for sampling without
replacement from N items (1977, "Sampling Techniques", equation 2.20). Under any other policy the value is biased and
the error says nothing about that.

Where the outcomes are all equal their own variance is 0 although the sample says no such thing, so s² counts one pass
and one failure more than were seen (Agresti & Coull 1998): s² = (Σy² + 1)/(k + 2) − ((Σy + 1)/(k + 2))². Before the
first outcome the value is ½ and the error ½, the largest standard deviation a rate can have. Once every item is
executed the value is exact and the error 0."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.adaptive.arrays import FloatArray
from harness.adaptive.estimators.protocol import Moments
from harness.adaptive.evidence import Evidence


@dataclass(frozen=True)
class SampleMean:
    """See the module; knows no model."""

    name: str = "sample_mean"

    def moments(self, evidence: Evidence) -> Moments:
        """Value and standard error; O(k)."""
        k, n = evidence.executed, np.maximum(evidence.n_items, 1)
        value = np.where(k > 0, evidence.score / np.maximum(k, 1), 0.5)
        variance = (1.0 - k / n) * outcome_variance(evidence) / np.maximum(k, 1)
        return Moments(np.asarray(value), np.asarray(np.sqrt(np.maximum(variance, 0.0))))


def outcome_variance(evidence: Evidence) -> FloatArray:
    """s² of the module, (...,), above 0 and at most ¼."""
    k, squares = evidence.executed, (evidence.rates**2).sum(axis=-1)
    return np.asarray((squares + 1.0) / (k + 2.0) - ((evidence.score + 1.0) / (k + 2.0)) ** 2)
