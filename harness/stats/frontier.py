"""The accuracy–cost frontier, and how sure it is.

X dominates Y when it is at least as accurate and at most as dear, and better in one. With intervals, X *surely*
dominates when that holds for its worst case against Y's best, and *possibly* when it holds for its best against Y's
worst. An unknown cost lies anywhere above its lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from harness.stats.errors import StatsError
from harness.stats.identification import Interval

Standing = Literal["frontier", "perhaps", "dominated"]


@dataclass(frozen=True)
class Candidate:
    """One choice. `cost` None: unknown, `costs.lower` is then a lower bound and `costs.upper` infinite."""

    name: str
    accuracy: float
    cost: float | None
    accuracies: Interval
    costs: Interval

    @classmethod
    def exact(cls, name: str, accuracy: float, cost: float) -> Candidate:
        """A choice of which both are known."""
        return cls(name, accuracy, cost, Interval(accuracy, accuracy), Interval(cost, cost))


@dataclass(frozen=True)
class FrontierPoint:
    """`standing`: "frontier" (nothing even possibly dominates it), "dominated" (something surely does), or "perhaps".

    `on_points` is the frontier by the point values alone, None where the cost is unknown. `by` names what dominates
    it, surely if anything does, else possibly.
    """

    name: str
    standing: Standing
    on_points: bool | None
    by: tuple[str, ...]


def frontier(candidates: Sequence[Candidate]) -> tuple[FrontierPoint, ...]:
    """The standing of each candidate, in the order given. Raises StatsError for NaN."""
    for one in candidates:
        if math.isnan(one.accuracy) or (one.cost is not None and math.isnan(one.cost)):
            raise StatsError(f"{one.name}: accuracy or cost is NaN; an unknown cost is None")
    return tuple(_placed(one, [other for other in candidates if other is not one]) for one in candidates)


def _placed(one: Candidate, others: Sequence[Candidate]) -> FrontierPoint:
    surely = tuple(
        other.name
        for other in others
        if _beats(other.accuracies.lower, other.costs.upper, one.accuracies.upper, one.costs.lower)
    )
    possibly = tuple(
        other.name
        for other in others
        if _beats(other.accuracies.upper, other.costs.lower, one.accuracies.lower, one.costs.upper)
    )
    by_points = None
    if one.cost is not None:
        known = [(other.accuracy, other.cost) for other in others if other.cost is not None]
        by_points = not any(_beats(accuracy, cost, one.accuracy, one.cost) for accuracy, cost in known)
    standing: Standing = "dominated" if surely else "perhaps" if possibly else "frontier"
    return FrontierPoint(one.name, standing, by_points, surely or possibly)


def _beats(accuracy: float, cost: float, than_accuracy: float, than_cost: float) -> bool:
    return accuracy >= than_accuracy and cost <= than_cost and (accuracy > than_accuracy or cost < than_cost)
