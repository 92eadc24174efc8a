"""When the runs of a history were made, as a few periods in order of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.adaptive.arrays import FloatArray, IntArray
from harness.adaptive.calibration.recency import days_of


@dataclass(frozen=True, eq=False)
class Timeline:
    """`period` (R,) of each run, counted from 0; `times` (T,), rising: the mean day of each period's runs; `ahead`:
    days from the last of these to the middle of the period that comes after the latest run. Every period has a run.
    """

    period: IntArray
    times: FloatArray
    ahead: float
    span_days: float

    @property
    def gaps(self) -> FloatArray:
        """Days from each period to the next, (T − 1,)."""
        return np.diff(self.times)


def timeline_of(dates: Sequence[str], most: int) -> Timeline | None:
    """At most `most` ≥ 2 periods of equal length, the last one ending with the latest run; None where a run has no date
    or all are of one moment. Raises CalibrationError on a date that is not ISO.
    """
    if not dates or not all(dates):
        return None
    days = days_of(dates)
    span = float(np.ptp(days))
    if span <= 0:
        return None
    width = span / most
    back = np.minimum(((days.max() - days) / width).astype(np.int64), most - 1)
    period = np.unique(-back, return_inverse=True)[1].astype(np.int64)
    times = np.bincount(period, days) / np.bincount(period)
    return Timeline(period, times, float(days.max() - times[-1] + width / 2.0), span)
