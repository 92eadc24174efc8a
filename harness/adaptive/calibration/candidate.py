"""One model fitted to one table, by either method, behind one record that can predict cells.

Maximum a posteriori says nothing of the uncertainty its predictions have, so there its covariances are 0 for
prediction; the bank's come from `items.item_covariance`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from harness.adaptive.arrays import FloatArray
from harness.adaptive.calibration.cells import Block, Cells, Counts
from harness.adaptive.calibration.fit import fit_map
from harness.adaptive.calibration.item_prior import ItemPrior
from harness.adaptive.calibration.items import EMPTY, SINGLE, difficulty_given, not_estimable
from harness.adaptive.calibration.learning import Hyperprior
from harness.adaptive.calibration.likelihood import Objective, Parameters, centre_difficulty
from harness.adaptive.calibration.posterior import (
    Posterior,
    moment_features,
    padded_covariance,
    pass_probability,
    with_constant,
)
from harness.adaptive.calibration.settings import CalibrationSettings, Candidate
from harness.adaptive.calibration.variational import VariationalSettings, fit_variational
from harness.adaptive.provenance import Convergence

# The test is on the steepest of all parameters; an axis that is dying out keeps that of 20,000 runs at 2e-3 for long.
_STEEPEST_OF_MANY = 3.0
_LEAST_GENERAL = 0.05  # a start needs α₁ > 0 where its logarithm is the parameter


@dataclass(frozen=True, eq=False)
class Fitted:
    """`held_out`: column → why its own outcomes do not carry its parameters. `loss` is minus the log-likelihood of the
    table at the predicted probabilities, plus the priors' part under MAP.
    """

    posterior: Posterior
    held_out: Mapping[int, str]
    rasch: bool
    loss: float
    convergence: Convergence

    def probability(self, block: Block) -> FloatArray:
        """P(pass) at the block's cells, averaged over what is not known."""
        x = with_constant(self.posterior.theta[block.rows])
        spread = padded_covariance(self.posterior.theta_covariance[block.rows])
        features = moment_features(self.posterior.item, self.posterior.item_covariance, twice=True)
        logit = block.products(x, self.posterior.item)
        variance = block.products(moment_features(x, spread, twice=False), features) - logit**2
        return pass_probability(logit, variance)


def fit_candidate(
    counts: Counts, dims: Candidate, settings: CalibrationSettings, start: Posterior | None = None
) -> Fitted:
    """`counts` fitted at `dims` by `settings.method`, from `start` (same runs, items and d) or from the data."""
    rasch = dims == "rasch"
    d = 1 if dims == "rasch" else dims
    cells = counts.cells()
    if settings.method == "map":
        return _fit_map(cells, d, rasch, settings, start)
    how = VariationalSettings(
        hyperprior_for(counts, settings),
        settings.kinds,
        settings.max_iterations,
        _STEEPEST_OF_MANY * settings.tolerance,
    )
    fit = fit_variational(cells, d, rasch, how, start)
    held_out = {column: why for column, why in not_estimable(cells).items() if why in (EMPTY, SINGLE)}
    fitted = Fitted(fit.posterior, held_out, rasch, 0.0, fit.convergence)
    return replace(fitted, loss=-float(log_likelihood(fitted, cells).sum()))


def hyperprior_for(counts: Counts, settings: CalibrationSettings) -> Hyperprior:
    """What the loadings of a table rest on beforehand."""
    return Hyperprior(settings.priors.specific_sd).for_runs(counts.effective_runs)


def log_likelihood(fitted: Fitted, cells: Cells) -> FloatArray:
    """Σ_i k log p + (n − k) log(1 − p) of each run, (R,), in nats (binomial constants left out); ≤ 0 and finite."""
    gains = np.zeros(cells.n_runs)
    one = np.ones((cells.n_items, 1))
    for block in cells.blocks:
        p = np.clip(fitted.probability(block), 1e-300, 1.0 - 1e-16)
        fits = block.passes * np.log(p) + (block.trials - block.passes) * np.log1p(-p)
        gains[block.rows] = block.by_run(fits, one)[:, 0]
    return gains


def _fit_map(cells: Cells, d: int, rasch: bool, settings: CalibrationSettings, start: Posterior | None) -> Fitted:
    """Joint fit of the estimable columns, then stand-in parameters for the others: the typical α, β given it."""
    held_out = not_estimable(cells)
    kept = np.setdiff1d(np.arange(cells.n_items), list(held_out))
    estimable = cells.at_items(kept)
    centre = centre_difficulty(estimable)
    first = None
    if start is not None:
        alpha = start.item[kept, :d].copy()
        alpha[:, 0] = np.maximum(alpha[:, 0], _LEAST_GENERAL)
        first = Parameters(start.theta, alpha, start.item[kept, d])
    objective = Objective(estimable, d, rasch, settings.priors, centre)
    fit = fit_map(objective, settings.max_iterations, settings.tolerance, first)
    item = np.zeros((cells.n_items, d + 1))
    item[:, 0] = 1.0
    item[kept] = np.column_stack([fit.parameters.alpha, fit.parameters.beta])
    theta = fit.parameters.theta
    if held_out:
        out = np.array(sorted(held_out))
        if len(kept):
            item[out, 0] = np.exp(np.log(fit.parameters.alpha[:, 0]).mean())
        item[out, d] = difficulty_given(cells.at_items(out), theta, item[out, :d], centre, settings.priors)
    known = Posterior(
        theta,
        np.zeros((len(theta), d, d)),
        item,
        np.zeros((cells.n_items, d + 1, d + 1)),
        ItemPrior.gaussian(np.zeros(d + 1), np.eye(d + 1)),
    )
    return Fitted(known, held_out, rasch, fit.loss, fit.convergence)
