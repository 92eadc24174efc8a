"""What to believe of an agent before its first outcome, from the abilities of past ones.

Two covariances, for two questions. *Was there an agent like this?* asks how past abilities scatter (`past_abilities`);
`maintenance` compares with that. *Where may the next one be?* asks for more room (`coming_covariance`): the history
tells little of who comes next. A prior that is too narrow pulls a new agent towards the old ones and is sure of it; one
that is too wide costs next to nothing once a few tasks have run. Agents differ most in how good they are all over, and
new ones are better than those before, so there is most room along the direction in which the mean logit of the items
moves, u = Σᾱ:

    Σ' = s² Σ + (g² − s²) u uᵀ / (ᾱᵀ u)        that is: Var(ᾱᵀθ) grows g²-fold, all that is independent of it s²-fold

Measured with s = 1.5 and g = 3 (`benchmarks/adaptive`, pass-rate-targeted choice, before → after): after a jump of the
general ability by five standard deviations the error at 25, 50 and 100 tasks, relative to random choice, .90/.86/.74 →
.75/.71/.65, coverage of the 90 % interval .59/.66/.74 → .78/.80/.87; without a jump the error is the same within 2 %;
SWE-bench at 100 and 200 tasks .59/.62 → .57/.54; Terminal-Bench at 15, 31 and 46 tasks .48/.46/.39 → .51/.44/.38.
"""

from __future__ import annotations

import numpy as np

from harness.adaptive.arrays import FloatArray

WIDENING = 1.2  # of the past's variance: what few runs show of it is an underestimate for the next
SHRINKAGE_RUNS = 5.0
ROOM, GENERAL_ROOM = 1.5, 3.0  # s and g


def past_abilities(theta: FloatArray, covariance: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
    """Mean (d,) and covariance (d, d) of past abilities `theta` (R, d), R ≥ 1.

    Covariance = 1.2 (S + 5 I) / (R + 5), S the scatter about the mean, with the posterior covariances of the runs
    (R, d, d) added: shrunk towards the prior of calibration where runs are few.
    """
    mean = theta.mean(axis=0)
    scatter = (theta - mean).T @ (theta - mean)
    if covariance is not None:
        scatter = scatter + covariance.sum(axis=0)
    n_runs, d = theta.shape
    shrunk = (scatter + SHRINKAGE_RUNS * np.eye(d)) / (n_runs + SHRINKAGE_RUNS)
    return mean, WIDENING * (shrunk + shrunk.T) / 2.0


def coming_covariance(covariance: FloatArray, alpha: FloatArray) -> FloatArray:
    """Σ' (d, d) of the module from Σ (d, d) and the loadings `alpha` (N, d) of the items.

    Loadings that cancel out (ᾱ = 0) have no direction of their own: then s² Σ.
    """
    general = alpha.mean(axis=0)
    along = covariance @ general
    size = float(general @ along)
    wide = ROOM**2 * covariance
    if size > 0.0:
        wide = wide + (GENERAL_ROOM**2 - ROOM**2) * np.outer(along, along) / size
    return np.asarray((wide + wide.T) / 2.0)
