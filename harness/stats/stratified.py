"""A stratified comparison with declared weights, and its uncertainty over tasks.

Over the common cells c with means ā_c, b̄_c and weights w_c ≥ 0 that sum to one:

    Δ = Σ_c w_c (ā_c − b̄_c)

Weights: "task" gives every task the same share, "model" (the stratum) every stratum, "episode" every episode
of either side; or a share per task or stratum of one's own. The difference may depend on the choice, so it is part
of the result. Inside a task or stratum the cells share its weight equally.

The interval is a percentile bootstrap over tasks: a drawn task brings all its cells of both sides along, so that
pairing is kept and repeats of a task are not taken for independent tasks (CASES S15). Point and interval come from
the same weights (CASES S11): with m_t draws of task t, Δ* = Σ_t m_t D_t / Σ_t m_t W_t, D_t = Σ_{c∈t} w_c d_c. It
answers whether the difference carries over to new tasks like these. Both are of cells graded on both sides; the
identification interval is of all common cells, with every missing grade either way, and may lie apart from the point.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from harness.stats.arrays import FloatArray, level_of
from harness.stats.episodes import Episodes, Pairing, pair
from harness.stats.errors import StatsError
from harness.stats.identification import Interval

Scheme = Literal["task", "model", "episode", "own"]
DRAWS = 10_000
CHUNK = 1_000_000  # numbers drawn at once


@dataclass(frozen=True)
class Weighting:
    """How cells are weighted. `own` maps tasks, or strata, to weights; what it does not name weighs nothing."""

    scheme: Scheme = "task"
    own: Mapping[Hashable, float] | None = None


@dataclass(frozen=True)
class WeightedComparison:
    """A − B. `interval` (None for fewer than two tasks) is for new tasks, `identified`, also of each side, for these
    with every missing grade either way. `share_above` is the share of draws with Δ* > 0, ties counted half."""

    difference: float
    a: float
    b: float
    interval: Interval | None
    level: float
    share_above: float | None
    identified: Interval
    identified_a: Interval
    identified_b: Interval
    scheme: Scheme
    tasks: int
    cells: int
    episodes_a: int
    episodes_b: int
    only_a: int
    only_b: int
    ungraded: int


def weighted_comparison(
    a: Episodes,
    b: Episodes,
    weighting: Weighting | None = None,
    *,
    level: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
) -> WeightedComparison:
    """Compare two sides over their common cells. Raises StatsError when there are none, or no weight falls on them."""
    weighting = weighting or Weighting()
    common, every = pair(a, b)
    weights = cell_weights(common, weighting)
    bounds = _identified(every, cell_weights(every, weighting))
    difference = common.a.mean - common.b.mean
    drawn = _bootstrap(weights * difference, weights, common, draws, seed)
    tail = (1.0 - level_of(level)) / 2
    interval = None if drawn is None else Interval(*(float(q) for q in np.quantile(drawn, (tail, 1.0 - tail))))
    return WeightedComparison(
        difference=float(weights @ difference),
        a=float(weights @ common.a.mean),
        b=float(weights @ common.b.mean),
        interval=interval,
        level=level,
        share_above=None if drawn is None else float((drawn > 0).mean() + (drawn == 0).mean() / 2),
        identified=bounds[0] - bounds[1],
        identified_a=bounds[0],
        identified_b=bounds[1],
        scheme=weighting.scheme,
        tasks=common.tasks,
        cells=len(common.cells),
        episodes_a=int(common.a.graded.sum()),
        episodes_b=int(common.b.graded.sum()),
        only_a=common.only_a,
        only_b=common.only_b,
        ungraded=common.ungraded,
    )


def cell_weights(common: Pairing, weighting: Weighting) -> FloatArray:
    """Weights of the common cells, shape (cells,), summing to one. Raises StatsError."""
    if weighting.scheme == "episode":
        raw = common.a.episodes + common.b.episodes
    elif weighting.scheme == "own":
        raw = _own(common, weighting.own or {})
    else:
        labels = [cell[0] if weighting.scheme == "task" else cell[1] for cell in common.cells]
        raw = _shared_out(labels, dict.fromkeys(labels, 1.0))
    if not raw.sum() > 0:
        raise StatsError("no weight falls on the common tasks")
    return np.asarray(raw / raw.sum(), dtype=np.float64)


def _identified(every: Pairing, weights: FloatArray) -> tuple[Interval, Interval]:
    """Each side's rate over all common cells, with missing grades as fails and as passes."""
    a, b = (Interval(float(weights @ side.lower), float(weights @ side.upper)) for side in (every.a, every.b))
    return a, b


def _own(common: Pairing, own: Mapping[Hashable, float]) -> FloatArray:
    if any(not 0.0 <= weight < float("inf") for weight in own.values()):
        raise StatsError("a weight is negative or not finite")
    tasks, strata = ([cell[part] for cell in common.cells] for part in (0, 1))
    by_task, by_stratum = (any(label in own for label in labels) for labels in (tasks, strata))
    if by_task and by_stratum:
        raise StatsError("the weights name tasks and strata: give one of the two")
    return _shared_out(strata if by_stratum else tasks, own)


def _shared_out(labels: list[Hashable], weights: Mapping[Hashable, float]) -> FloatArray:
    counts: dict[Hashable, int] = {}
    for label in labels:
        counts[label] = counts.get(label, 0) + 1
    return np.array([weights.get(label, 0.0) / counts[label] for label in labels], dtype=np.float64)


def _bootstrap(weighted: FloatArray, weights: FloatArray, common: Pairing, draws: int, seed: int) -> FloatArray | None:
    """Δ* of each draw, shape (draws,); None when fewer than two tasks carry weight."""
    tops = np.bincount(common.task, weighted)
    bottoms = np.bincount(common.task, weights)
    carrying = bottoms > 0
    tops, bottoms = tops[carrying], bottoms[carrying]
    n = tops.size
    if n < 2:
        return None
    random = np.random.default_rng(seed)
    found = np.empty(draws)
    step = max(1, CHUNK // n)
    for start in range(0, draws, step):
        part = min(step, draws - start)
        drawn = random.multinomial(n, np.full(n, 1.0 / n), size=part)
        found[start : start + part] = (drawn @ tops) / (drawn @ bottoms)
    return found
