"""How far difficulties move: not at all, or by the walk that predicts hidden cells best.

Walks are tried by the standard deviation of the movement over the whole history, from a guess up and down as long as
the prediction gets better, each fit going on from its neighbour's. A walk does the work of an ability on which runs
differ by date, so the chosen d is tried, then the next simpler one as long as that predicts better. Walking must beat
standing still by more than one standard error of the paired difference over runs: a history without drift keeps the
ordinary fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from harness.adaptive.calibration.candidate import Fitted, hyperprior_for, log_likelihood
from harness.adaptive.calibration.cells import Counts
from harness.adaptive.calibration.drifting import DriftingSettings, fit_drifting
from harness.adaptive.calibration.model_choice import Scored, scored_on, simplest_within_one_error
from harness.adaptive.calibration.settings import DRIFT_DAYS, CalibrationSettings
from harness.adaptive.calibration.timeline import Timeline

SPAN_SDS = (0.18, 0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0)  # logits, over the history
_ROUGH_TOLERANCE, _ROUGH_ITERATIONS = 0.2, 40
_FINE_TOLERANCE, _FINE_ITERATIONS = 60.0, 400  # in units of `CalibrationSettings.tolerance`, and the most
_ARRAY_CELLS = 4_000_000
_MOST_PERIODS, _FEWEST_PERIODS = 16, 2


@dataclass(frozen=True, eq=False)
class DriftChoice:
    """`scored`: the winner; its walk in logits² a day; by how much the held-out log-likelihood is above that of items
    that stand still (`still`, of d abilities), in nats, with its standard error.
    """

    scored: Scored
    variance_per_day: float
    lead: float
    error: float
    still: str

    def note(self, last_date: str) -> str:
        """For the reader of the bank."""
        return (
            f"difficulties move by {sd_of(self.variance_per_day):.2g} logits (sd) in {DRIFT_DAYS:.0f} days, which"
            f" predicts hidden outcomes {'worse' if self.lead < 0 else 'better'} by {abs(self.lead):.1f} ±"
            f" {self.error:.1f} nats than d = {self.still}"
            f" without: items are as of {last_date}"
        )


def sd_of(variance_per_day: float) -> float:
    """Standard deviation over `DRIFT_DAYS` days."""
    return float(np.sqrt(variance_per_day * DRIFT_DAYS))


def most_periods(n_items: int, d: int) -> int:
    """How many periods a history of so many items is cut into: 16 unless the arrays would grow too large."""
    return int(np.clip(_ARRAY_CELLS // (n_items * (d + 1) ** 2), _FEWEST_PERIODS, _MOST_PERIODS))


@dataclass(frozen=True, eq=False)
class WalkSearch:
    """What walks are tried on: fits see the cells `shown` and are asked for those `hidden`. `guess`: the `sd_of` the
    walk to begin with, 0 for none.
    """

    shown: Counts
    hidden: Counts
    timeline: Timeline
    settings: CalibrationSettings
    guess: float = 0.0

    @property
    def walks(self) -> tuple[float, ...]:
        """In logits² a day, rising; the one given if there is one."""
        given = self.settings.drift
        if isinstance(given, int | float):
            return (given**2 / DRIFT_DAYS,)
        return tuple(sd**2 / self.timeline.span_days for sd in SPAN_SDS)

    def best(self, still: Scored) -> tuple[float, Scored]:
        """The walk of so many abilities that predicts best."""
        walks = self.walks
        guess = self.guess**2 / DRIFT_DAYS if self.guess > 0 else walks[len(walks) // 2]
        first = int(np.argmin(np.abs(np.log(np.array(walks) / guess))))
        found = {first: self._score(walks[first], still, still.fitted)}
        for step in (1, -1):
            at = first
            while 0 <= at + step < len(walks):
                found[at + step] = self._score(walks[at + step], still, found[at].fitted)
                if _total(found[at + step]) < _total(found[at]):
                    break
                at += step
            if at != first:
                break
        best = max(found, key=lambda at: _total(found[at]))
        return walks[best], found[best]

    def _score(self, walk: float, still: Scored, start: Fitted) -> Scored:
        how = DriftingSettings(hyperprior_for(self.shown, self.settings), _ROUGH_ITERATIONS, _ROUGH_TOLERANCE)
        fitted = fit_drifting(self.shown, self.timeline, walk, start, how)
        return scored_on(self.hidden, still.dims, fitted, still.plain)


def choose_drift(search: WalkSearch, still: Sequence[Scored], chosen: int) -> DriftChoice | None:
    """The best walk given the fits `still` to the cells shown, from simple to rich, of which `chosen` is the best; None
    if it does not beat that. A given `settings.drift` is taken as it is.
    """
    found: list[tuple[float, Scored]] = []
    for at in range(chosen, -1, -1):
        best = search.best(still[at])
        if found and _total(best[1]) < _total(found[-1][1]):
            break
        found.append(best)
    found.reverse()
    walk, winner = found[simplest_within_one_error([one.by_run for _, one in found])]
    gain = winner.by_run - still[chosen].by_run
    error = float(np.sqrt(len(gain) * gain.var(ddof=1))) if len(gain) > 1 else float("inf")
    if search.settings.drift == "auto" and not gain.sum() > error:
        return None
    return DriftChoice(winner, walk, float(gain.sum()), error, str(still[chosen].dims))


def fit_walking(
    counts: Counts, timeline: Timeline, variance_per_day: float, start: Fitted, settings: CalibrationSettings
) -> Fitted:
    """The final fit."""
    how = DriftingSettings(
        hyperprior_for(counts, settings),
        min(_FINE_ITERATIONS, settings.max_iterations),
        _FINE_TOLERANCE * settings.tolerance,
    )
    fitted = fit_drifting(counts, timeline, variance_per_day, start, how)
    return replace(fitted, loss=-float(log_likelihood(fitted, counts.cells()).sum()))


def _total(one: Scored) -> float:
    return float(one.by_run.sum())
