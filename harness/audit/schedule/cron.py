"""The times of a cron line in a time zone.

The arithmetic is cronsim's, which follows Debian's cron: with `*` in neither day field, a day that matches either is
meant. Where clocks go forward, what falls into the gap is due at its end; where they go back, a fixed hour is due once,
the first time, and a line whose minute or hour begins with `*` keeps to real time.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

FIELDS = 5  # minute, hour, day of the month, month, day of the week
COUNTED_BACK = timedelta(days=32)  # a scheduler that was away for longer counts the times of this span only
MOST_COUNTED = 50_000  # each takes microseconds


class CronLine:
    """A cron line in a zone. Raises ValueError for a line or a zone that is not one, or a line that is never due."""

    def __init__(self, line: str, zone: str) -> None:
        self.line, self.zone = line, zone_of(zone)
        fields = len(line.split())
        if fields != FIELDS:
            named = "minute, hour, day of the month, month, day of the week"
            raise ValueError(f"a cron line has {FIELDS} fields ({named}), not {fields}")
        try:
            next(CronSim(line, datetime(2025, 1, 1, tzinfo=UTC)))
        except CronSimError as error:
            raise ValueError(f"not a cron line: {str(error)[:1].lower()}{str(error)[1:]}") from error
        except StopIteration:
            raise ValueError("this cron line is never due") from None

    def after(self, moment: datetime) -> Iterator[datetime]:
        """Due times later than an aware moment, in UTC, one after the other."""
        for due in CronSim(self.line, moment.astimezone(self.zone)):
            at = due.astimezone(UTC)
            if at > moment:  # within the hour that is there twice, the first one is offered again
                yield at

    def next(self, moment: datetime, count: int = 1) -> tuple[datetime, ...]:
        """The first due times later than a moment, in UTC."""
        return tuple(islice(self.after(moment), count))

    def between(self, after: datetime, until: datetime) -> tuple[datetime, ...]:
        """Due times later than `after` and not later than `until`, oldest first.

        Of a span longer than 32 days, those of its end, unless there are none; never more than 50,000.
        """
        begin = max(after, until - COUNTED_BACK)
        return self._within(begin, until) or (self._within(after, until) if begin > after else ())

    def _within(self, after: datetime, until: datetime) -> tuple[datetime, ...]:
        found = []
        for due in islice(self.after(after), MOST_COUNTED):
            if due > until:
                break
            found.append(due)
        return tuple(found)

    @property
    def words(self) -> str:
        """The line in English."""
        return str(CronSim(self.line, datetime(2025, 1, 1, tzinfo=UTC)).explain())


def zone_of(name: str) -> ZoneInfo:
    """A time zone by its IANA name. Raises ValueError."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # OSError: the name of a folder, such as Europe
        raise ValueError(f"there is no time zone {name!r} here: give one such as Europe/Berlin or UTC") from None
