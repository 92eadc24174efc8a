"""What a fitted model leaves over: item mean squares, residual correlations, and how many runs a history is worth.

With n trials, k passes and the predicted p in a cell, the residual is e = k − n p, of variance W = n p(1 − p) and
fourth central moment C = W (1 + 3 W (n − 2)/n) (binomial).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from harness.adaptive.arrays import FloatArray, normal_quantile
from harness.adaptive.calibration.candidate import Fitted
from harness.adaptive.calibration.cells import Cells, Counts, DenseBlock
from harness.adaptive.fit_report import ItemMisfit, ResidualGroup, ResidualPair

MISFIT_Z, MISFIT_SQUARE = 3.5, 1.1
_LEAST_VARIANCE = 1e-6
_CORRELATED_ROWS = 1500  # a correlation table of more rows than this is made of an even sample of them
_FEWEST_SHARED, _PAIR_RUNS = 5, 30
_CHANCE = 0.05
_SHOWN = 20


def mean_squares(cells: Cells, fitted: Fitted) -> FloatArray:
    """Infit, its z, outfit, its z, and trials of each item, (N, 5); NaN for an item without cells.

    Outfit = mean of e²/W over the cells, infit = Σe²/ΣW; with q² their variances Σ(C/W² − 1)/c² and Σ(C − W²)/(ΣW)²,
    z = (MS^⅓ − 1)·3/q + q/3 (Wilson–Hilferty). Source: Wright & Masters 1982, "Rating scale analysis", table 5.4a.
    In-sample, so on the low side.
    """
    sums = np.zeros((cells.n_items, 7))
    for block in cells.blocks:
        p = fitted.probability(block)
        n = block.trials
        seen = (n > 0).astype(np.float64)
        variance = np.maximum(n * p * (1.0 - p), _LEAST_VARIANCE)
        square = (block.passes - n * p) ** 2
        fourth = variance * (1.0 + 3.0 * variance * (1.0 - 2.0 / np.maximum(n, _LEAST_VARIANCE)))
        one = np.ones((block.rows.stop - block.rows.start, 1))
        terms = (
            seen,
            seen * square / variance,
            seen * (fourth / variance**2 - 1.0),
            seen * square,
            seen * variance,
            seen * (fourth - variance**2),
            n,
        )
        sums += np.column_stack([block.by_item(term, one)[:, 0] for term in terms])
    count, outfit_sum, outfit_spread, square, variance, infit_spread, trials = sums.T
    with np.errstate(divide="ignore", invalid="ignore"):
        infit, outfit = square / variance, outfit_sum / count
        infit_z = _cube_root_z(infit, np.sqrt(np.maximum(infit_spread, 0.0)) / variance)
        outfit_z = _cube_root_z(outfit, np.sqrt(np.maximum(outfit_spread, 0.0)) / count)
    return np.column_stack([infit, infit_z, outfit, outfit_z, trials])


def misfits(item_ids: Sequence[str], squares: FloatArray) -> tuple[tuple[ItemMisfit, ...], int]:
    """The items whose infit or outfit is over 1.1 with z > 3.5, worst first, at most 20, and how many there are.

    An item near ½ for everyone has mean squares that hardly vary, so z alone would flag trifles.
    """
    z = np.where(squares[:, [0, 2]] > MISFIT_SQUARE, squares[:, [1, 3]], -np.inf)
    worst = z.max(axis=1)
    found = np.flatnonzero(worst > MISFIT_Z)
    order = found[np.argsort(-worst[found], kind="stable")]
    named = tuple(ItemMisfit(item_ids[i], *(float(value) for value in squares[i])) for i in order[:_SHOWN])
    return named, len(found)


def residual_pairs(
    counts: Counts, fitted: Fitted, item_ids: Sequence[str]
) -> tuple[tuple[ResidualPair, ...], int, tuple[ResidualGroup, ...]]:
    """Yen's Q₃ of item pairs: those beyond chance (at most 20) and how many there are, and the mean of each group.

    Q₃ is the correlation of standardised residuals e/√W over the runs that have both items. Beyond chance:
    |atanh Q₃| √(runs − 3) over the two-sided 5 % point divided among all pairs (Bonferroni). Only pairs of 30 runs, and
    items with 5 passes and 5 failures, are tested: two items that one and the same run passed agree perfectly, and
    that is no evidence. Groups are the names before the first "/" that at least three items share. Of more than 1,500
    items an even sample. Source: Yen 1984, "Effects of local item dependence", Applied Psychological Measurement 8.
    """
    columns = _even_sample(counts.n_items)
    runs = _even_sample(counts.n_runs)
    residual, seen = _residual_table(counts, fitted, runs, columns)
    correlation, shared = _correlations(residual.T, seen.T)
    names = [item_ids[i] for i in columns]
    upper = np.triu_indices(len(columns), 1)
    values, common = correlation[upper], shared[upper]
    z = np.abs(np.arctanh(np.clip(values, -1 + 1e-12, 1 - 1e-12))) * np.sqrt(np.maximum(common - 3.0, 0.0))
    passes = np.bincount(counts.items, counts.passes, counts.n_items)[columns]
    trials = np.bincount(counts.items, counts.trials, counts.n_items)[columns]
    varied = np.minimum(passes, trials - passes) >= _FEWEST_SHARED
    tested = (common >= _PAIR_RUNS) & varied[upper[0]] & varied[upper[1]]
    found = np.flatnonzero(tested & (z > _bonferroni_point(max(1, int(tested.sum())))))
    order = found[np.argsort(-np.abs(values[found]), kind="stable")][:_SHOWN]
    pairs = tuple(
        ResidualPair((names[upper[0][at]], names[upper[1][at]]), float(values[at]), int(common[at])) for at in order
    )
    return pairs, len(found), _groups(names, correlation, shared)


def effective_runs(counts: Counts, fitted: Fitted) -> float:
    """How many independent runs the history is worth, between 1 and R.

    With C the correlations of the runs' standardised residuals, (tr C)² / Σ C² (the participation ratio of its
    eigenvalues), the part of Σ C² that chance alone gives (1/shared items for each pair) taken off. Two runs with the
    same outcomes count once, and R unrelated runs R times. Of more than 1,500 runs an even sample, scaled up.
    """
    runs = _even_sample(counts.n_runs)
    if len(runs) < 2:
        return float(counts.n_runs)
    residual, seen = _residual_table(counts, fitted, runs, _even_sample(counts.n_items))
    correlation, shared = _correlations(residual, seen)
    chance = np.divide(1.0, shared, out=np.zeros_like(shared), where=shared >= _FEWEST_SHARED)
    np.fill_diagonal(chance, 0.0)
    np.fill_diagonal(correlation, 1.0)
    total = max(float(len(runs)), float((correlation**2 - chance).sum()))
    return float(counts.n_runs * len(runs) / total)


def _cube_root_z(mean_square: FloatArray, spread: FloatArray) -> FloatArray:
    q = np.clip(spread, 1e-6, np.sqrt(2.0))
    return np.asarray((np.cbrt(mean_square) - 1.0) * 3.0 / q + q / 3.0)


def _even_sample(n: int) -> np.ndarray:
    if n <= _CORRELATED_ROWS:
        return np.arange(n)
    return np.linspace(0, n - 1, _CORRELATED_ROWS).round().astype(np.int64)


def _residual_table(
    counts: Counts, fitted: Fitted, runs: np.ndarray, columns: np.ndarray
) -> tuple[FloatArray, FloatArray]:
    """e/√W (0 where unseen) and whether seen, of these runs and items, dense."""
    place = np.full(counts.n_runs, -1)
    place[runs] = np.arange(len(runs))
    column = np.full(counts.n_items, -1)
    column[columns] = np.arange(len(columns))
    residual, seen = np.zeros((len(runs), len(columns))), np.zeros((len(runs), len(columns)))
    for block in counts.sparse_cells().blocks:
        if isinstance(block, DenseBlock):
            raise TypeError("sparse_cells gave a dense block")
        p = fitted.probability(block)
        variance = np.maximum(block.trials * p * (1.0 - p), _LEAST_VARIANCE)
        rows = block.rows.start + np.repeat(np.arange(len(block.pointers) - 1), np.diff(block.pointers))
        at = place[rows], column[block.items]
        kept = (at[0] >= 0) & (at[1] >= 0)
        cell = at[0][kept], at[1][kept]
        residual[cell] = ((block.passes - block.trials * p) / np.sqrt(variance))[kept]
        seen[cell] = 1.0
    return residual, seen


def _correlations(rows: FloatArray, seen: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Correlation of every two rows over the columns both have (0 under 5 of them, or without spread), and how many."""
    shared = seen @ seen.T
    total = rows @ seen.T
    square = (rows * rows) @ seen.T
    count = np.maximum(shared, 1.0)
    covariance = rows @ rows.T - total * total.T / count
    spread = np.maximum(square - total**2 / count, 0.0)
    scale = np.sqrt(spread * spread.T)
    usable = (shared >= _FEWEST_SHARED) & (scale > 1e-9)
    correlation = np.divide(covariance, scale, out=np.zeros_like(covariance), where=usable)
    return np.clip(correlation, -1.0, 1.0), shared


def _groups(names: Sequence[str], correlation: FloatArray, shared: FloatArray) -> tuple[ResidualGroup, ...]:
    members: dict[str, list[int]] = {}
    for position, name in enumerate(names):
        if "/" in name:
            members.setdefault(name.split("/", 1)[0], []).append(position)
    found = []
    for group, positions in members.items():
        if len(positions) < 3:
            continue
        square = np.ix_(positions, positions)
        usable = shared[square] >= _FEWEST_SHARED
        np.fill_diagonal(usable, False)
        if usable.any():
            found.append(ResidualGroup(group, len(positions), float(correlation[square][usable].mean())))
    return tuple(sorted(found, key=lambda one: -one.correlation)[:_SHOWN])


def _bonferroni_point(tests: int) -> float:
    return float(normal_quantile(1.0 - _CHANCE / (2.0 * tests)))
