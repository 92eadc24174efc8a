"""The decision: worse, no worse, better, or undecided yet.

At a margin m two errors are controlled, over all looks:

    false alarm        T ≥ 0 and called worse          at most α
    missed regression  T ≤ −m and called no worse      at most β

for the true difference T (`paired.Truth` says of what). Between −m and 0 either answer is acceptable. On 519 items the
full run itself calls one in five of the baseline's equals worse by 2 points, by luck alone: a rule about "suite" agrees
with it, a rule about "agent" does not and needs larger differences (figures: `benchmarks/adaptive/decisions.py`).

From bounds (lower, upper) that hold at every moment (`sequential`):

    better     lower > 0
    no worse   lower > −m   (or lower ≥ 0)
    worse      upper < 0, and not shown to be within the margin
    undecided  otherwise

m = 0 asks for better or worse and can go on for ever between equals.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

import numpy as np

from harness.adaptive.arrays import BoolArray
from harness.adaptive.decision.baseline import Baseline
from harness.adaptive.decision.paired import Difference, Side, Truth, difference_of
from harness.adaptive.decision.sequential import Bounds, bounds_of
from harness.adaptive.errors import EngineError
from harness.adaptive.evidence import Evidence


class Verdict(Enum):
    """What the outcomes so far say of the candidate."""

    BETTER = "better"
    NO_WORSE = "no worse"
    WORSE = "worse"
    UNDECIDED = "undecided"

    @property
    def passes(self) -> bool | None:
        """True for better and no worse, False for worse, None while undecided."""
        return {Verdict.WORSE: False, Verdict.UNDECIDED: None}.get(self, True)


@dataclass(frozen=True)
class DecisionSettings:
    """`beta`: the rate of missed regressions (None: as `alpha`). `truth`: "suite" asks what full runs of both would
    show, "agent" what repeating them would. `widening` multiplies the model's standard errors: a factor, or
    (executed tasks, factor) pairs as in `EngineSettings`. No verdict before `minimum_tasks` outcomes, unless nothing is
    left to run.

    Raises EngineError on a rate outside (0, 1), a widening of 0 or less, a negative count, or an unknown truth.
    """

    beta: float | None = None
    truth: Truth = "suite"
    widening: float | tuple[tuple[int, float], ...] = 1.0
    minimum_tasks: int = 20

    def __post_init__(self) -> None:
        sound = self.beta is None or 0.0 < self.beta < 1.0
        factors = [self.widening] if isinstance(self.widening, (int, float)) else [by for _, by in self.widening]
        if (
            not sound
            or not all(by > 0 for by in factors)
            or self.minimum_tasks < 0
            or self.truth not in {"suite", "agent"}
        ):
            raise EngineError(
                f"beta {self.beta}, widening {self.widening}, {self.minimum_tasks} tasks, truth {self.truth!r}",
                place="DecisionSettings",
                remedy='Give a rate in (0, 1), a widening above 0, a count of at least 0, and "suite" or "agent"',
            )

    def widening_at(self, tasks: int) -> float:
        """The factor after so many outcomes; between pairs by linear interpolation, beyond them as at the nearest."""
        if isinstance(self.widening, (int, float)):
            return float(self.widening)
        if not self.widening:
            return 1.0
        return float(np.interp(tasks, [at for at, _ in self.widening], [by for _, by in self.widening]))


@dataclass(frozen=True)
class Decision:
    """Candidate minus baseline, in fractions of 1, with the error rates of the verdict.

    `lower` and `upper` hold at every look, `lower` but for `beta`, `upper` but for `alpha`. `executed` and `remaining`:
    the candidate's items with and without an outcome among the `n_items` compared; `paired`: those that the baseline
    ran too; `carry` (0…1): how far the candidate repeats the baseline's surprises. `within_reach`: an upper bound of
    the chance that running everything leads to a verdict.
    """

    verdict: Verdict
    truth: Truth
    difference: float
    standard_error: float
    lower: float
    upper: float
    margin: float
    alpha: float
    beta: float
    executed: int
    remaining: int
    n_items: int
    paired: int
    carry: float
    within_reach: float

    @property
    def sentence(self) -> str:
        """One plain sentence."""
        said = {
            Verdict.BETTER: "The candidate is better than the baseline",
            Verdict.NO_WORSE: f"The candidate is no worse than the baseline by {_points(self.margin)} or more",
            Verdict.WORSE: "The candidate is worse than the baseline",
            Verdict.UNDECIDED: "Undecided",
        }[self.verdict]
        return (
            f"{said}: {100 * self.difference:+.1f} points, between {100 * self.lower:+.1f} and {100 * self.upper:+.1f},"
            f" after {self.executed} of {self.n_items} tasks, {self.paired} of them in pairs"
            f" (false alarms at most {100 * self.alpha:g} %, missed regressions at most {100 * self.beta:g} %)."
        )

    def as_event(self) -> dict[str, Any]:
        """Plain, JSON-able values."""
        return {**asdict(self), "verdict": self.verdict.value, "sentence": self.sentence}


def decide(
    candidate: Evidence,
    baseline: Baseline | Evidence | float,
    margin: float = 0.02,
    alpha: float = 0.05,
    settings: DecisionSettings | None = None,
    ungraded: BoolArray | None = None,
) -> Decision:
    """The verdict on one candidate from what it has run so far. May be asked after every outcome.

    `ungraded` (N,) marks items that ran without a grade: their outcomes may be missing for a reason that has to do with
    them, so the bounds are moved to what they would be had each failed, and had each passed.

    Raises
    ------
    EngineError
        On a margin outside [0, 1), an alpha outside (0, 1), a baseline of another bank or without a common item.
    """
    require_rule(margin, alpha)
    settings = settings or DecisionSettings()
    against = _baseline(baseline)
    beta = alpha if settings.beta is None else settings.beta
    found = difference_of(candidate, against.known, settings.truth)
    n = int(found.n_items)
    if n == 0:
        raise EngineError("no item in common", place="baseline", remedy="Compare runs of the same suite")
    common = candidate.counted
    if isinstance(against.known, Side):
        common = common & against.known.evidence.counted
    remaining = int((common & candidate.rest).sum())
    widening = settings.widening_at(n - remaining)
    bounds = bounds_of(found, margin, alpha, beta, widening)
    if ungraded is not None and ungraded.any():
        bounds = _moved(bounds, found, candidate, ungraded)
    early = n - remaining < settings.minimum_tasks and float(found.least) < float(found.most)
    lower, upper = float(bounds.lower), float(bounds.upper)
    return Decision(
        verdict=Verdict.UNDECIDED if early else verdict_of(lower, upper, margin),
        truth=settings.truth,
        difference=float(np.clip(found.value, found.least, found.most)),
        standard_error=float(found.standard_error) * widening,
        lower=lower,
        upper=upper,
        margin=margin,
        alpha=alpha,
        beta=beta,
        executed=n - remaining,
        remaining=remaining,
        n_items=n,
        paired=int(found.paired),
        carry=float(found.carry),
        within_reach=float(bounds.within_reach),
    )


def verdict_of(lower: float, upper: float, margin: float) -> Verdict:
    """The verdict that bounds give, see the module."""
    if lower > 0:
        return Verdict.BETTER
    if lower > -margin or lower >= 0:
        return Verdict.NO_WORSE
    return Verdict.WORSE if upper < 0 else Verdict.UNDECIDED


def require_rule(margin: float, alpha: float) -> None:
    """Raises EngineError on a margin outside [0, 1) or an alpha outside (0, 1)."""
    if not 0.0 <= margin < 1.0 or not 0.0 < alpha < 1.0:
        raise EngineError(
            f"margin {margin}, alpha {alpha}",
            place="decision",
            remedy="Give a margin in [0, 1) as a fraction (0.02 is two points) and an error rate in (0, 1)",
        )


def _baseline(given: Baseline | Evidence | float) -> Baseline:
    if isinstance(given, Baseline):
        return given
    return Baseline.of_run(given) if isinstance(given, Evidence) else Baseline.of_rate(given)


def _moved(bounds: Bounds, found: Difference, candidate: Evidence, ungraded: BoolArray) -> Bounds:
    q = Side(candidate).q
    open_still = ungraded & candidate.rest
    down, up = (q * open_still).sum() / found.n_items, ((1.0 - q) * open_still).sum() / found.n_items
    return Bounds(
        lower=np.maximum(bounds.lower - down, found.least),
        upper=np.minimum(bounds.upper + up, found.most),
        within_reach=bounds.within_reach,
    )


def _points(margin: float) -> str:
    return f"{100 * margin:g} points"
