"""When alerts are looked at without a run: staleness needs none, and messages that a sink did not take wait."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

AGAIN_S = 60.0  # after a sink was down; doubled each time
MOST_AGAIN_S = 900.0


@dataclass(frozen=True)
class Checks:
    """The next look, and how often in a row something was left undelivered."""

    due: datetime
    every_s: float
    failures: int = 0

    def after(self, now: datetime, *, waiting: bool) -> Checks:
        """What follows a look: soon again, and ever later, while messages wait."""
        if not waiting:
            return Checks(now + timedelta(seconds=self.every_s), self.every_s)
        pause_s = min(AGAIN_S * 2**self.failures, MOST_AGAIN_S, self.every_s)
        return Checks(now + timedelta(seconds=pause_s), self.every_s, min(self.failures + 1, 10))

    def by(self, moment: datetime) -> Checks:
        """The same, but no later than at `moment`: a firing has left something undelivered."""
        return Checks(min(self.due, moment), self.every_s, self.failures)

    def is_due(self, now: datetime) -> bool:
        """Whether to look now; also when the clock was set back and the time is further off than can be."""
        return now >= self.due or self.due - now > timedelta(seconds=self.every_s)
