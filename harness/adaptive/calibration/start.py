"""Where a fit starts: raw logits for the general ability and the difficulties, the strongest directions of what these
leave unexplained for the further axes. Deterministic.
"""

from __future__ import annotations

import numpy as np

from harness.adaptive.arrays import FloatArray, KeyArray, normal_quantile, sigmoid
from harness.adaptive.calibration.cells import Cells
from harness.adaptive.keys import mix, uniforms

_SUBSPACE_PASSES = 6
_LEAST_VARIANCE = 0.02  # keeps a surprising cell of an extreme item from owning a direction


def starting_point(cells: Cells, d: int) -> tuple[FloatArray, FloatArray]:
    """θ (R, d) and (α, β) (N, d+1): θ₁ and β from smoothed logits with α₁ = 1, the further axes from the residuals."""
    n_runs, n_items = cells.n_runs, cells.n_items
    theta, item = np.zeros((n_runs, d)), np.zeros((n_items, d + 1))
    k, n = cells.totals_by_run()
    raw = np.log((k + 0.5) / (n - k + 0.5))
    theta[:, 0] = raw - raw.mean() if n_runs else raw
    k, n = cells.totals_by_item()
    item[:, 0], item[:, d] = 1.0, np.log((n - k + 0.5) / (k + 0.5))
    if d > 1 and n_runs and n_items:
        theta[:, 1:], item[:, 1:d] = _residual_axes(cells, theta[:, 0], item[:, d], d - 1)
    return theta, item


def _residual_axes(cells: Cells, general: FloatArray, beta: FloatArray, axes: int) -> tuple[FloatArray, FloatArray]:
    """Abilities (R, axes) and loadings (N, axes) from the strongest directions of (k − n p)/√(p(1−p)).

    Subspace iteration from fixed numbers (Halko, Martinsson & Tropp 2011, algorithm 4.4); directions beyond the rank
    of the residuals are 0.
    """
    width = min(axes + 4, cells.n_runs, cells.n_items)
    keys: KeyArray = np.arange(cells.n_items * width, dtype=np.uint64).reshape(cells.n_items, width)
    right: FloatArray = np.linalg.qr(normal_quantile(uniforms(mix(np.zeros_like(keys), keys))))[0]
    left = np.zeros((cells.n_runs, width))
    for _ in range(_SUBSPACE_PASSES):
        left = np.linalg.qr(_residual_product(cells, general, beta, right, None))[0]
        right, triangle = np.linalg.qr(_residual_product(cells, general, beta, None, left))
    turn, size, across = np.linalg.svd(triangle)
    rank = min(axes, width)
    scale = np.sqrt(cells.n_runs)
    abilities, loadings = np.zeros((cells.n_runs, axes)), np.zeros((cells.n_items, axes))
    abilities[:, :rank] = (left @ across.T)[:, :rank] * (0.7 * scale)
    loadings[:, :rank] = (right @ turn)[:, :rank] * (size[:rank] / scale)
    return abilities, loadings


def _residual_product(
    cells: Cells, general: FloatArray, beta: FloatArray, right: FloatArray | None, left: FloatArray | None
) -> FloatArray:
    """E right (R, width), or Eᵀ left (N, width) if `right` is None, E the standardised residuals."""
    by_run: list[FloatArray] = []
    by_item = np.zeros((cells.n_items, 0 if left is None else left.shape[1]))
    offsets = np.column_stack([np.ones(cells.n_items), beta])
    for block in cells.blocks:
        strength = general[block.rows]
        logit = block.products(np.column_stack([strength, -np.ones(len(strength))]), offsets)
        expected = sigmoid(logit)
        spread = np.sqrt(np.maximum(expected * (1.0 - expected), _LEAST_VARIANCE))
        residual = (block.passes - block.trials * expected) / spread
        if right is not None:
            by_run.append(block.by_run(residual, right))
        elif left is not None:
            by_item += block.by_item(residual, left[block.rows])
    return np.concatenate(by_run) if right is not None else by_item
