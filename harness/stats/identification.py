"""Identification intervals: what a rate can be when some outcomes are unknown.

With n planned, P passed and U without a grade, the rate of the planned set lies in [P/n, (P + U)/n], whatever made
the grades go missing. For a difference of two sides:

    [A_low − B_high, A_high − B_low]

This is no confidence interval: it holds with certainty for these episodes and says nothing of others.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.stats.errors import StatsError


@dataclass(frozen=True)
class Interval:
    """A closed interval, lower ≤ upper."""

    lower: float
    upper: float

    def __post_init__(self) -> None:
        if not self.lower <= self.upper:
            raise StatsError(f"an interval from {self.lower} to {self.upper} is none")

    @property
    def width(self) -> float:
        return self.upper - self.lower

    def holds(self, value: float) -> bool:
        """Whether `value` lies inside, ends included."""
        return self.lower <= value <= self.upper

    def __sub__(self, other: Interval) -> Interval:
        return Interval(self.lower - other.upper, self.upper - other.lower)


@dataclass(frozen=True)
class Counts:
    """Episodes of one side: how many were planned, how many passed, how many have no verdict.

    Raises StatsError when they contradict each other.
    """

    planned: int
    passed: int
    unresolved: int = 0

    def __post_init__(self) -> None:
        if min(self.planned, self.passed, self.unresolved) < 0 or self.passed + self.unresolved > self.planned:
            raise StatsError(
                f"{self.passed} passed and {self.unresolved} unresolved of {self.planned} planned contradict each other"
            )
        if self.planned == 0:
            raise StatsError("nothing was planned: there is no rate")

    @property
    def graded(self) -> int:
        return self.planned - self.unresolved


def identified(counts: Counts) -> Interval:
    """Where the pass rate over all planned episodes lies: unresolved ones counted as fail, then as pass."""
    return Interval(counts.passed / counts.planned, (counts.passed + counts.unresolved) / counts.planned)


def identified_difference(a: Counts, b: Counts) -> Interval:
    """Where A − B lies. If it holds zero, scores and coverage alone do not say which is better."""
    return identified(a) - identified(b)


@dataclass(frozen=True)
class ValidShare:
    """m of v valid episodes passed, of n planned: `rate` is m/v (None when v = 0), `bounds` is [m/n, (m + n − v)/n]."""

    planned: int
    valid: int
    passed: int
    rate: float | None
    bounds: Interval


def valid_share(planned: int, valid: int, passed: int) -> ValidShare:
    """The share of valid episodes that passed, and the bounds on the planned set; the one without the other misleads.

    Raises StatsError unless 0 ≤ passed ≤ valid ≤ planned and planned > 0.
    """
    if not 0 <= passed <= valid <= planned:
        raise StatsError(f"{passed} passed of {valid} valid of {planned} planned: each must be at most the next")
    bounds = identified(Counts(planned, passed, planned - valid))
    return ValidShare(planned, valid, passed, passed / valid if valid else None, bounds)
