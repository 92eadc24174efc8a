"""What a method gave on test runs, and the figures made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import kendalltau, spearmanr

from harness.adaptive.arrays import FloatArray, normal_quantile
from harness.adaptive.estimators.protocol import Moments, allowed
from harness.adaptive.evidence import Evidence

LEVEL = 0.90
REACH = float(normal_quantile(0.5 + LEVEL / 2.0))
BOOTSTRAP_DRAWS = 2000
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Scores:
    """`value`, `lower`, `upper` of the 90 % interval (NaN if the method has none) and `error` = E|value − truth|, all
    (A, K), fractions of 1. `error` is |value − truth| but for random sampling, where the expectation is known.
    """

    value: FloatArray
    lower: FloatArray
    upper: FloatArray
    error: FloatArray
    truth: FloatArray

    @classmethod
    def of(
        cls, moments: Sequence[Moments], bounds: Sequence[tuple[FloatArray, FloatArray]], truth: FloatArray
    ) -> Scores:
        """From the moments at K checkpoints and the bounds that the outcomes allow at each."""
        least, most = np.stack([low for low, _ in bounds], axis=1), np.stack([high for _, high in bounds], axis=1)
        value = np.clip(np.stack([one.value for one in moments], axis=1), least, most)
        reach = REACH * np.stack([one.standard_error for one in moments], axis=1)
        return cls(
            value=value,
            lower=np.maximum(value - reach, least),
            upper=np.minimum(value + reach, most),
            error=np.abs(value - truth[:, None]),
            truth=truth,
        )

    @classmethod
    def joined(cls, parts: Sequence[Scores]) -> Scores:
        """The test runs of several folds together."""
        return cls(
            value=np.concatenate([part.value for part in parts]),
            lower=np.concatenate([part.lower for part in parts]),
            upper=np.concatenate([part.upper for part in parts]),
            error=np.concatenate([part.error for part in parts]),
            truth=np.concatenate([part.truth for part in parts]),
        )


def bounds_of(evidence: Evidence) -> tuple[FloatArray, FloatArray]:
    """The least and largest rate each run's outcomes allow."""
    return allowed(evidence)


@dataclass(frozen=True)
class Figure:
    """A number with its 95 % bootstrap interval."""

    value: float
    low: float
    high: float

    def as_list(self) -> list[float]:
        """[value, low, high], rounded to what a table can use."""
        return [round(number, 4) for number in (self.value, self.low, self.high)]


class Bootstrap:
    """Draws of test units with replacement, the same for every method, so that ratios are paired."""

    def __init__(self, units: Sequence[str], seed: int = 0, draws: int = BOOTSTRAP_DRAWS) -> None:
        names, self._unit = np.unique(np.asarray(units), return_inverse=True)
        rng = np.random.default_rng(seed)
        picks = rng.multinomial(len(names), np.full(len(names), 1.0 / len(names)), size=draws)
        self._weights = np.vstack([np.ones(len(names)), picks])

    def mean(self, values: FloatArray) -> Figure:
        """The mean of `values` (A,) over runs."""
        return self.ratio(values, np.ones(len(values)))

    def ratio(self, upper: FloatArray, lower: FloatArray) -> Figure:
        """Σ upper / Σ lower over runs, both (A,)."""
        top = self._weights @ np.bincount(self._unit, upper)
        bottom = self._weights @ np.bincount(self._unit, lower)
        found = np.divide(top, bottom, out=np.full(len(top), np.nan), where=bottom > 0)
        low, high = np.nanquantile(found[1:], [0.025, 0.975]) if len(self._weights[0]) > 1 else (np.nan, np.nan)
        return Figure(float(found[0]), float(low), float(high))


def summary(
    scores: Mapping[str, Scores], checkpoints: Sequence[int], units: Sequence[str], against: Sequence[str] = ()
) -> list[dict[str, object]]:
    """One row per method and checkpoint: MAE, bias and width in percentage points; ratios of MAE to those `against`.

    Rank correlations are over all test runs together.
    """
    bootstrap = Bootstrap(units)
    rows: list[dict[str, object]] = []
    for name, found in scores.items():
        for at, k in enumerate(checkpoints):
            error, width = found.error[:, at], found.upper[:, at] - found.lower[:, at]
            inside = (found.lower[:, at] - _ROUNDING <= found.truth) & (found.truth <= found.upper[:, at] + _ROUNDING)
            has_interval = bool(np.isfinite(width).all())
            row: dict[str, object] = {
                "method": name,
                "k": int(k),
                "mae_pp": bootstrap.mean(100.0 * error).as_list(),
                "bias_pp": round(100.0 * float((found.value[:, at] - found.truth).mean()), 3),
                "spearman": _rank(spearmanr, found.value[:, at], found.truth),
                "kendall": _rank(kendalltau, found.value[:, at], found.truth),
                "coverage": bootstrap.mean(inside.astype(np.float64)).as_list() if has_interval else None,
                "width_pp": round(100.0 * float(width.mean()), 3) if has_interval else None,
            }
            row["ratio"] = {
                other: bootstrap.ratio(error, scores[other].error[:, at]).as_list()
                for other in against
                if other in scores and other != name
            }
            rows.append(row)
    return rows


def _rank(statistic: object, left: FloatArray, right: FloatArray) -> float | None:
    if len(left) < 3 or np.ptp(left) == 0 or np.ptp(right) == 0:
        return None
    assert callable(statistic)
    return round(float(statistic(left, right).statistic), 4)
