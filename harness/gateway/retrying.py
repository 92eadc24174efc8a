"""Which failures of a model service are worth another attempt, and how long to wait. Pure.

Only declared transient failures are retried (CASES Q03): the same request that was refused as malformed,
unauthorised or unknown will be refused again, for money.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

TRANSIENT_STATUS = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 60.0  # of our own back-off
LONGEST_RETRY_AFTER_S = 3600.0  # the trial's own clock ends a longer wait sooner


class FailedAttempt(Exception):
    """One attempt failed. `status` None: no response was had. `retry_after_s`: what the service asked for.

    `body` is the text of a refusal, for those who can mend the request.
    """

    def __init__(
        self, message: str, *, status: int | None = None, retry_after_s: float | None = None, body: str = ""
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after_s = retry_after_s
        self.body = body

    @property
    def transient(self) -> bool:
        """Whether another attempt may fare better: a declared status, no response, or one that holds no answer."""
        return self.status is None or self.status == 200 or self.status in TRANSIENT_STATUS or self.status >= 500


def retry_after_s(headers: Mapping[str, str], now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> float | None:
    """Seconds that a Retry-After header asks for, as a number or an HTTP date; None when absent or unreadable."""
    asked = headers.get("retry-after")
    if asked is None:
        return None
    try:
        seconds = float(asked)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(asked) - now()).total_seconds()
        except (ValueError, TypeError):
            return None
    return max(0.0, seconds) if seconds == seconds else None


def wait_s(failed: FailedAttempt, attempts_made: int, jitter: Callable[[], float] = random.random) -> float:
    """How long to wait before the next attempt: as long as the service asked for, else exponential with jitter."""
    if failed.retry_after_s is not None:
        return min(failed.retry_after_s, LONGEST_RETRY_AFTER_S)
    ceiling = FIRST_WAIT_S * 2.0 ** min(attempts_made - 1, 16)
    return min(ceiling * (0.5 + jitter() / 2), LONGEST_WAIT_S)
