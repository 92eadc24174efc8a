"""What a display shows while a run goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from harness.records.grade import TrialResult
from harness.records.trial import TrialState
from harness.records.vocabulary import UNAVAILABLE_REASONS, Outcome


@dataclass(frozen=True)
class Progress:
    """A snapshot. `estimate` is (value, lower, upper) in fractions of 1; costs and tokens are those of finished trials.

    `last` is the trial that just ended, if this snapshot was made for one.
    """

    run: str
    planned: int
    outcomes: dict[Outcome, int]
    in_flight: tuple[tuple[str, TrialState], ...] = ()
    estimate: tuple[float, float, float] | None = None
    cost_usd: float = 0.0
    cost_unknown: int = 0
    tokens: int = 0
    retries: int = 0
    unavailable: int = 0
    last: tuple[str, TrialResult] | None = None
    message: str = ""

    @property
    def settled(self) -> int:
        """Trials that ended for good."""
        return sum(self.outcomes.values())

    @property
    def graded(self) -> int:
        """Trials that have a grade: what an adaptive run counts."""
        return sum(count for outcome, count in self.outcomes.items() if outcome.graded)


Observer = Callable[[Progress], None]


def notice(message: str) -> Progress:
    """What is being done before there is a run to count."""
    return Progress(run="", planned=0, outcomes=dict.fromkeys(Outcome, 0), message=message)


@dataclass
class Tally:
    """Adds up a run as it goes; gives snapshots."""

    run: str
    planned: int
    outcomes: dict[Outcome, int] = field(default_factory=lambda: dict.fromkeys(Outcome, 0))
    in_flight: dict[int, tuple[str, TrialState]] = field(default_factory=dict)  # by slot
    estimate: tuple[float, float, float] | None = None  # the last one
    unavailable: int = 0
    cost_usd: float = 0.0
    cost_unknown: int = 0
    tokens: int = 0
    retries: int = 0

    def add(self, result: TrialResult, *, settled: bool) -> None:
        """Book one attempt: its spend always, its outcome when the slot is settled by it."""
        self.tokens += result.usage.total if result.usage is not None else 0
        self.cost_usd += result.cost_at_least_usd if result.cost_usd is None else result.cost_usd
        self.cost_unknown += result.cost_usd is None
        if settled:
            self.outcomes[result.outcome] += 1
            self.unavailable += result.reason in UNAVAILABLE_REASONS
        else:
            self.retries += 1

    def snapshot(self, last: tuple[str, TrialResult] | None = None, message: str = "") -> Progress:
        return Progress(
            run=self.run,
            planned=self.planned,
            outcomes=dict(self.outcomes),
            in_flight=tuple(self.in_flight.values()),
            estimate=self.estimate,
            unavailable=self.unavailable,
            cost_usd=self.cost_usd,
            cost_unknown=self.cost_unknown,
            tokens=self.tokens,
            retries=self.retries,
            last=last,
            message=message,
        )
