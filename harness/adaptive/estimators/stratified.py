"""Post-stratification by difficulty: each stratum's mean counts as much as the stratum has items.

With N_h items in stratum h, n_h of them executed with mean ȳ_h and sum of squared deviations S_h,

    ŝ = Σ_h (N_h/N) ȳ_h,        Var = Σ_h (N_h/N)² (1 − n_h/N_h) s_h²/n_h,        s_h² = (S_h + s²)/n_h

A stratum without outcomes is merged with the nearest one that has some. s² is the variance that difficulty leaves,
from successive differences in the order of difficulty, (Σ (y_j − y_{j+1})²/2 + ¼)/k, one pair of its own added: it is
all there is where a stratum has one outcome. Sources: Cochran 1977, "Sampling Techniques", sections 5A.9 and 5.12;
Wolter 2007, "Introduction to Variance Estimation", section 8.2 (successive differences); strata as in `strata`.

With as many strata as outcomes this is the weighted subset estimator of She & Lin 2026 (arXiv:2609.21267), equation 12,
for their strata and policy (`policies.difficulty_strata`): `WEIGHTED`. The error holds where choice within a stratum is
as good as random; an adaptive choice is not. Before the first outcome value and error are ½, as in `sample_mean`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.adaptive.arrays import BoolArray, FloatArray, IntArray
from harness.adaptive.errors import EngineError
from harness.adaptive.estimators.protocol import Moments
from harness.adaptive.evidence import Evidence
from harness.adaptive.strata import difficulty, strata_of


@dataclass(frozen=True, eq=False)
class Stratified:
    """`strata`: how many, or None for as many as there are outcomes. `difficulties` (N,) replaces the bank's, larger is
    harder (see `strata.difficulty`). Raises EngineError if there is no stratum.
    """

    strata: int | None = 10
    difficulties: FloatArray | None = None
    name: str = "stratified"

    def __post_init__(self) -> None:
        if self.strata is not None and self.strata < 1:
            raise EngineError(f"{self.strata} strata", place="Stratified", remedy="Give at least one")

    def moments(self, evidence: Evidence) -> Moments:
        """Value and standard error; O(N + k log k)."""
        found = difficulty(evidence.bank) if self.difficulties is None else np.asarray(self.difficulties)
        n_strata = max(1, evidence.items.shape[-1]) if self.strata is None else self.strata
        strata = strata_of(found, n_strata)
        n_strata = int(strata.max()) + 1
        at = evidence.of_executed(strata.astype(np.float64)).astype(np.int64)
        seen = (evidence.trials > 0).astype(np.float64)
        sizes = _summed(np.broadcast_to(strata, evidence.counted.shape), evidence.counted.astype(np.float64), n_strata)
        counts = _summed(at, seen, n_strata)
        home = _nearest_filled(counts > 0)
        sizes = _summed(home, sizes, n_strata)
        sums, squares = _summed(at, evidence.rates, n_strata), _summed(at, evidence.rates**2, n_strata)
        per = np.maximum(counts, 1.0)
        share = sizes / np.maximum(evidence.n_items, 1)[..., None]
        value = (share * sums / per).sum(axis=-1)
        left = _left_variance(evidence, evidence.of_executed(found))
        within = (np.maximum(squares - sums**2 / per, 0.0) + left[..., None]) / per
        open_share = 1.0 - counts / np.maximum(sizes, 1.0)
        variance = np.where(counts > 0, share**2 * open_share * within / per, 0.0).sum(axis=-1)
        some = evidence.executed > 0
        error = np.sqrt(np.maximum(variance, 0.0))
        return Moments(np.where(some, value, 0.5), np.where(some, error, 0.5))


WEIGHTED = Stratified(strata=None, name="weighted")


def _summed(at: IntArray, weights: FloatArray, n_bins: int) -> FloatArray:
    """Σ of `weights` (..., k) by bin `at` (..., k), (..., n_bins)."""
    lead = weights.shape[:-1]
    rows = int(np.prod(lead))
    flat = at.reshape(rows, -1) + n_bins * np.arange(rows)[:, None]
    found = np.bincount(flat.ravel(), weights=weights.ravel(), minlength=rows * n_bins)
    return np.asarray(found.reshape(*lead, n_bins))


def _nearest_filled(filled: BoolArray) -> IntArray:
    """For each stratum the nearest that has outcomes, the easier of two; itself if none has, (..., H)."""
    n = filled.shape[-1]
    here = np.arange(n)
    below = np.maximum.accumulate(np.where(filled, here, -n), axis=-1)
    above = np.flip(np.minimum.accumulate(np.flip(np.where(filled, here, 2 * n), axis=-1), axis=-1), axis=-1)
    nearest = np.where(here - below <= above - here, below, above)
    return np.where((nearest < 0) | (nearest >= n), here, nearest)


def _left_variance(evidence: Evidence, difficulties: FloatArray) -> FloatArray:
    """s² of the module, (...,)."""
    seen = evidence.trials > 0
    order = np.argsort(np.where(seen, difficulties, np.inf), axis=-1, kind="stable")
    rates = np.take_along_axis(evidence.rates, order, axis=-1)
    both = np.take_along_axis(seen, order, axis=-1)[..., 1:]
    half = (np.diff(rates, axis=-1) ** 2 * both).sum(axis=-1) / 2.0
    return np.asarray((half + 0.25) / np.maximum(evidence.executed, 1))
