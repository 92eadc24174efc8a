"""Episodes of two sides, brought onto their common cells.

A cell is a (task, stratum) pair; the stratum is whatever else the two sides share and a reader may weight by, a model
for instance. Only cells with a graded episode on both sides are compared; what is left out is counted.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from harness.stats.arrays import FloatArray, IntArray, outcomes
from harness.stats.errors import StatsError

Cell = tuple[str, Hashable]


@dataclass(frozen=True, eq=False)
class Episodes:
    """One side: the task and stratum of each episode, and its outcome in [0, 1], NaN where there is none.

    An episode without a task name (None) is its own task, so that unknown ones never merge (CASES S15).
    """

    tasks: tuple[str, ...]
    strata: tuple[Hashable, ...]
    values: FloatArray

    @classmethod
    def of(
        cls, tasks: Sequence[str | None], values: ArrayLike, strata: Sequence[Hashable] | None = None, side: str = ""
    ) -> Episodes:
        """Build one side. `side` names it where unnamed tasks must be told apart. Raises StatsError for lengths."""
        known = outcomes(values)
        labels = tuple(strata) if strata is not None else ("",) * len(tasks)
        if known.shape != (len(tasks),) or len(labels) != len(tasks):
            raise StatsError(f"{len(tasks)} tasks, {len(labels)} strata, outcomes of shape {known.shape}")
        named = tuple(f"unnamed {side} {index}" if task is None else task for index, task in enumerate(tasks))
        return cls(named, labels, known)


@dataclass(frozen=True, eq=False)
class Side:
    """One side on the common cells, each shape (cells,): sum of graded outcomes, graded and missing episodes."""

    total: FloatArray
    graded: FloatArray
    missing: FloatArray

    @property
    def episodes(self) -> FloatArray:
        """All episodes of each cell, graded or not."""
        return self.graded + self.missing

    @property
    def mean(self) -> FloatArray:
        """Mean graded outcome of each cell."""
        return self.total / self.graded

    @property
    def lower(self) -> FloatArray:
        """Mean with every missing episode as a fail."""
        return self.total / self.episodes

    @property
    def upper(self) -> FloatArray:
        """Mean with every missing episode as a pass."""
        return (self.total + self.missing) / self.episodes


@dataclass(frozen=True, eq=False)
class Pairing:
    """Both sides on their common cells. `task` numbers the task of each cell; `only_a`, `only_b` count cells that the
    other side lacks, `ungraded` those without a grade on one side at least."""

    cells: tuple[Cell, ...]
    task: IntArray
    a: Side
    b: Side
    only_a: int
    only_b: int
    ungraded: int

    @property
    def tasks(self) -> int:
        return int(self.task.max()) + 1 if self.task.size else 0


def pair(a: Episodes, b: Episodes) -> tuple[Pairing, Pairing]:
    """The common cells of two sides, by task and stratum in order of A's: those graded on both, and all of them.

    Rates are of the first, bounds of the second. Raises StatsError when the first is empty.
    """
    first, second = _cells(a), _cells(b)
    shared = [cell for cell in first if cell in second]
    graded = [cell for cell in shared if first[cell][1] and second[cell][1]]
    if not graded:
        raise StatsError("the two sides have no graded episode in common: nothing can be compared")
    return _pairing(first, second, shared, graded), _pairing(first, second, shared, shared)


def _pairing(
    first: dict[Cell, list[float]], second: dict[Cell, list[float]], shared: Sequence[Cell], kept: Sequence[Cell]
) -> Pairing:
    numbers: dict[str, int] = {}
    task = np.array([numbers.setdefault(name, len(numbers)) for name, _ in kept], dtype=np.int64)
    return Pairing(
        cells=tuple(kept),
        task=task,
        a=_side(first, kept),
        b=_side(second, kept),
        only_a=len(first) - len(shared),
        only_b=len(second) - len(shared),
        ungraded=len(shared) - len(kept),
    )


def _cells(side: Episodes) -> dict[Cell, list[float]]:
    """By cell: sum of graded outcomes, graded and missing episodes."""
    found: dict[Cell, list[float]] = {}
    for task, stratum, value in zip(side.tasks, side.strata, side.values.tolist(), strict=True):
        counts = found.setdefault((task, stratum), [0.0, 0.0, 0.0])
        if value != value:
            counts[2] += 1
        else:
            counts[0] += value
            counts[1] += 1
    return found


def _side(cells: dict[Cell, list[float]], kept: Sequence[Cell]) -> Side:
    total, graded, missing = np.array([cells[cell] for cell in kept], dtype=np.float64).T
    return Side(total, graded, missing)
