"""Several trials of one task: the chance that any of k passes, and that all of k do.

With c passes of n valid trials of a task, unbiased over all C(n, k) choices of k trials:

    pass@k = 1 − C(n − c, k)/C(n, k)      (Chen et al. 2021, eq. 1)
    pass^k = C(c, k)/C(n, k)              (Yao et al. 2024, τ-bench)

Both are means over tasks with at least k valid trials, and are shown with how many those are: a task with fewer has
no such value, it is not a zero and not dropped without a word (CASES F03).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from harness.stats.arrays import BoolArray, FloatArray
from harness.stats.errors import StatsError


@dataclass(frozen=True)
class RepeatShare:
    """`value` is the mean over `tasks` of `all_tasks` with at least `k` valid trials; None when there are none."""

    k: int
    value: float | None
    tasks: int
    all_tasks: int

    @property
    def coverage(self) -> float:
        return self.tasks / self.all_tasks if self.all_tasks else 0.0


def pass_any_k(passed: ArrayLike, valid: ArrayLike, k: int) -> RepeatShare:
    """pass@k from passes and valid trials of each task, shape (tasks,). Raises StatsError."""
    c, n, enough = _checked(passed, valid, k)
    return _mean(1.0 - _choose_ratio(n[enough] - c[enough], n[enough], k), k, n.size)


def pass_all_k(passed: ArrayLike, valid: ArrayLike, k: int) -> RepeatShare:
    """pass^k from passes and valid trials of each task, shape (tasks,). Raises StatsError."""
    c, n, enough = _checked(passed, valid, k)
    return _mean(_choose_ratio(c[enough], n[enough], k), k, n.size)


def _checked(passed: ArrayLike, valid: ArrayLike, k: int) -> tuple[FloatArray, FloatArray, BoolArray]:
    c, n = np.asarray(passed, dtype=np.float64), np.asarray(valid, dtype=np.float64)
    if k < 1:
        raise StatsError(f"k = {k}: at least one trial is taken")
    if c.shape != n.shape or c.ndim != 1 or not ((c >= 0) & (c <= n)).all():
        raise StatsError("give passes and valid trials of each task, passes at most as many")
    return c, n, n >= k


def _choose_ratio(part: FloatArray, whole: FloatArray, k: int) -> FloatArray:
    """C(part, k)/C(whole, k) as a product, which never overflows."""
    ratio = np.ones_like(whole)
    for taken in range(k):
        ratio = ratio * np.maximum(part - taken, 0.0) / (whole - taken)
    return ratio


def _mean(values: FloatArray, k: int, tasks: int) -> RepeatShare:
    return RepeatShare(k, float(values.mean()) if values.size else None, int(values.size), tasks)
