"""How much a run counts by its age.

With age a in days before the latest dated run, a run's likelihood is raised to the power

    w = 2^(−a / half_life)      (1 without a half-life),       w = 0 if a > window

Source: exponential forgetting of the log-likelihood; a weight of ½ is worth half a trial in every cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np

from harness.adaptive.arrays import FloatArray
from harness.adaptive.errors import CalibrationError

_SECONDS_PER_DAY = 86_400.0


def run_weights(dates: Sequence[str], half_life_days: float | None, window_days: float | None) -> FloatArray:
    """w of each run (R,) from ISO dates or times ("" where unknown: w = 1).

    Raises
    ------
    CalibrationError
        If a weight is asked for and a date is not ISO, or no run has one.
    """
    weight = np.ones(len(dates))
    if half_life_days is None and window_days is None:
        return weight
    known = [position for position, date in enumerate(dates) if date]
    if not known:
        raise CalibrationError(
            "no run has a date",
            place="half_life_days, window_days",
            remedy="Give the runs dates, or weigh them all alike",
        )
    days = days_of([dates[position] for position in known])
    age = days.max() - days
    if half_life_days is not None:
        weight[known] = 2.0 ** (-age / half_life_days)
    if window_days is not None:
        weight[np.array(known)[age > window_days]] = 0.0
    return weight


def days_of(dates: Sequence[str]) -> FloatArray:
    """ISO dates or times as days, (R,). Raises CalibrationError on one that is not ISO."""
    return np.array([_day(date) for date in dates])


def _day(date: str) -> float:
    try:
        moment = datetime.fromisoformat(date)
    except ValueError as fault:
        raise CalibrationError(f"date {date!r} is not ISO", place="dates", remedy="Write it as 2026-01-31") from fault
    # A time without a zone counts as UTC, so that the weights are the same on every machine.
    zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return zoned.timestamp() / _SECONDS_PER_DAY
