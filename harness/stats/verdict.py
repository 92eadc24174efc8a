"""A verdict on two paired sides, or a refusal that says what would decide.

A cell of 41 pairs moves by 2.4 points with one episode. So a side is called better only when the exact test rejects
*and* the missing grades cannot undo it; otherwise the answer is "undecided", with the number of further pairs after
which a difference of the observed size would be decided: the least N whose expected table, n01·N/n and n10·N/n
rounded, has an exact p ≤ α. That is a forecast at the rates seen so far, no promise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from harness.stats.errors import StatsError
from harness.stats.identification import Interval
from harness.stats.mcnemar import exact_p, least_decisive
from harness.stats.transitions import Transitions

MOST_PAIRS = 1_000_000


@dataclass(frozen=True)
class Verdict:
    """Of new against old. `more_pairs` None: decided, or no number of pairs at these rates decides."""

    answer: Literal["better", "worse", "undecided"]
    because: str
    p: float
    more_pairs: int | None


def verdict(table: Transitions, identified: Interval | None = None, alpha: float = 0.05) -> Verdict:
    """Judge a table of old → new, with `identified` where new − old lies given the missing grades.

    Raises StatsError for an alpha outside (0, 1).
    """
    if not 0.0 < alpha < 1.0:
        raise StatsError(f"alpha {alpha} is not between 0 and 1")
    p = float(exact_p(table.n01, table.n10))
    if p <= alpha:
        up = table.n01 > table.n10
        if identified is not None and (identified.lower <= 0 if up else identified.upper >= 0):
            return Verdict("undecided", f"{table.missing} pairs without a grade could undo it", p, None)
        return Verdict("better" if up else "worse", "the exact paired test rejects equality", p, None)
    more = more_pairs(table, alpha)
    least = least_decisive(alpha)
    if table.changed < least:
        because = f"{table.changed} pairs differ: fewer than {least} decide nothing, however they split"
    else:
        because = f"{table.n01} pairs for and {table.n10} against are compatible with no difference"
    return Verdict("undecided", because, p, more)


def more_pairs(table: Transitions, alpha: float) -> int | None:
    """Further pairs that would decide at the rates seen so far; None when they are balanced, there are none, or a
    million would not do."""
    n, gap = table.n, table.n01 - table.n10
    if n == 0 or gap == 0:
        return None
    low, high = n, n
    while not _decides(table, high, alpha):
        low, high = high, high * 2
        if high > MOST_PAIRS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _decides(table, middle, alpha) else (middle, high)
    return high - n


def _decides(table: Transitions, pairs: int, alpha: float) -> bool:
    scale = pairs / table.n
    return float(exact_p(round(table.n01 * scale), round(table.n10 * scale))) <= alpha
