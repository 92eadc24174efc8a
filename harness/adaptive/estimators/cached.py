"""History caching's estimate: executed outcomes, reused verdicts, and the model for what is neither.

    ŝ = (1/N) ( Σ_S y + Σ_cached ỹ + Σ_rest q )

Source: She & Lin 2026 (arXiv:2609.21267), equation 9, where nothing is left over; in mid-run the posterior predictive
probability q stands for the items that are to be executed still. They give no interval; ours counts a reused verdict
as right with the smoothed historical probability m̃ = (passes + ½)/(trials + 1):

    MSE = ( Var of the model's part over the rest + Σ_cached m̃(1 − m̃) + (Σ_cached (m̃ − ỹ))² ) / N²

The last term is the price of rounding a rate to a verdict. What the estimate cannot see is an agent that has changed
since the window; no formula of the window alone can.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from harness.adaptive.estimators.posterior_predictive import PosteriorPredictive
from harness.adaptive.estimators.protocol import Moments
from harness.adaptive.evidence import Evidence
from harness.adaptive.policies.history_cache import Cache
from harness.adaptive.policies.traits import require_per_item


@dataclass(frozen=True, eq=False)
class Cached:
    """`cache` as `policies.cache_of` made it; raises EngineError at use if it is not one entry per item."""

    cache: Cache
    name: str = "cached"

    def moments(self, evidence: Evidence) -> Moments:
        """Value and root mean square error; O(N d²)."""
        cache = self.cache
        require_per_item("cache", cache.verdict, length=len(evidence.bank))
        reused = evidence.rest & ~np.isnan(cache.verdict)
        verdict = np.nan_to_num(cache.verdict)
        chance = (cache.passes + 0.5) / (cache.trials + 1.0)
        others = PosteriorPredictive().moments(replace(evidence, rest=evidence.rest & ~reused))
        n = np.maximum(evidence.n_items, 1)
        noise = (reused * chance * (1.0 - chance)).sum(axis=-1) + (reused * (chance - verdict)).sum(axis=-1) ** 2
        return Moments(
            np.asarray(others.value + (reused * verdict).sum(axis=-1) / n),
            np.asarray(np.sqrt(others.standard_error**2 + noise / n**2)),
        )
