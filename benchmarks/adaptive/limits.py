"""How far any calibration could get on the history of a lineage: the items as known to who knows the past abilities.

A calibration learns abilities and items from the same outcomes. Given the true abilities of the past runs, the form of
the items (each loads on the general axis and on one other, known which) and the distribution they were drawn from,
what is left unknown of an item is the least that any method could leave:

    φ_i | θ, y_i  ∝  N(φ_i; a, Ω_i) Π_r p(y_ir | φ_i·x_r),      x = (θ, −1)

taken as the Gaussian at its maximum. `known history` is the pass-rate-targeted choice and the posterior predictive
estimate with these items; `oracle` the same with the items themselves. What lies between the two is the price of the
history's length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchmarks.adaptive.folds import Fold, evenly, simulated_fold
from benchmarks.adaptive.methods import Method, Workshop, arm, evaluate, oracle, random_sampling
from benchmarks.adaptive.scores import Scores
from harness.adaptive.arrays import FloatArray, sigmoid
from harness.adaptive.bank import Bank
from harness.adaptive.estimators import PosteriorPredictive
from harness.adaptive.policies import PassRate
from harness.adaptive.populations.lineage import Lineage, Shape

_KNOWN = 1e-4  # standard deviation of what is known: that an item does not load on an axis
_LONGEST_STEP = 0.5
_STEPS, _CLOSE = 200, 1e-9


def limits(lineage: Lineage, shape: Shape, tested: int, checkpoints: Sequence[int]) -> dict[str, Scores]:
    """Random sampling, the bank of `assay calibrate`, the known history and the oracle on the same test runs."""
    half = shape.n_runs // 2
    fold = simulated_fold(lineage, range(half), evenly(half, shape.n_runs, tested))
    known = Workshop(replace(fold, oracle=known_items(lineage, fold, shape)))
    found = evaluate(fold, (random_sampling, _arm("vb", "calibrated"), oracle), checkpoints)
    found.update(_arm("oracle", "known history")(known, checkpoints))
    return found


def _arm(bank: str, label: str) -> Method:
    return arm(bank, PassRate(), PosteriorPredictive(), label=label)


def known_items(lineage: Lineage, fold: Fold, shape: Shape) -> Bank:
    """The fold's oracle with the items of the module in place of the true ones."""
    assert lineage.truth is not None
    assert fold.oracle is not None
    past = len(fold.history.run_ids)
    x = np.column_stack([lineage.truth.theta[:past], -np.ones(past)])
    parts = [
        _item(x, lineage.outcomes[:past, item], *_drawn_from(alpha, shape))
        for item, alpha in enumerate(lineage.truth.alpha)
    ]
    item, covariance = np.stack([mean for mean, _ in parts]), np.stack([spread for _, spread in parts])
    return replace(fold.oracle, alpha=item[:, :-1], beta=item[:, -1], item_covariance=covariance)


def _drawn_from(alpha: FloatArray, shape: Shape) -> tuple[FloatArray, FloatArray]:
    """Mean and precision (d+1,) of the distribution that an item with these axes is drawn from."""
    mean, deviation = np.zeros(shape.d + 1), np.full(shape.d + 1, _KNOWN)
    # exp(0.3 ε) has the mean exp(0.045) and about the standard deviation 0.31.
    mean[0], deviation[0] = shape.general * np.exp(0.045), shape.general * 0.31
    axis = 1 + int(np.argmax(np.abs(alpha[1:])))
    mean[axis], deviation[axis] = shape.specific, shape.specific_sd
    mean[-1], deviation[-1] = shape.difficulty, shape.difficulty_sd
    return mean, deviation**-2.0


def _item(x: FloatArray, y: FloatArray, mean: FloatArray, precision: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Maximum and covariance of one item's posterior, by Newton steps of at most ½."""
    item = mean.copy()
    for _ in range(_STEPS):
        p = sigmoid(x @ item)
        curvature = (x * (p * (1.0 - p))[:, None]).T @ x + np.diag(precision)
        step = np.linalg.solve(curvature, x.T @ (y - p) - precision * (item - mean))
        item = item + step / max(1.0, float(np.abs(step).max()) / _LONGEST_STEP)
        if np.abs(step).max() < _CLOSE:
            return item, np.asarray(np.linalg.inv(curvature), dtype=np.float64)
    raise RuntimeError(f"an item's posterior has no maximum within {_STEPS} steps")
