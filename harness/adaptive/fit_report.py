"""How well a calibration fits the history it was made from, as plain values that a bank carries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class CalibrationBin:
    """Held-out trials whose predicted P(pass) lies in [`lower`, `upper`): the mean prediction, the pass rate."""

    lower: float
    upper: float
    predicted: float
    observed: float
    trials: float


@dataclass(frozen=True)
class ItemMisfit:
    """An item whose outcomes scatter more than the model has it. Mean squares have expectation 1; `z` are about
    standard normal (`residuals.mean_squares`)."""

    item: str
    infit: float
    infit_z: float
    outfit: float
    outfit_z: float
    trials: float


@dataclass(frozen=True)
class ResidualPair:
    """Two items whose residuals go together over `runs` runs: they share something that the model does not have."""

    items: tuple[str, str]
    correlation: float
    runs: int


@dataclass(frozen=True)
class ResidualGroup:
    """Items with one name before the first "/": the mean residual correlation of their pairs."""

    group: str
    items: int
    correlation: float


@dataclass(frozen=True)
class FitReport:
    """`held_out_trials` and `held_out_log_likelihood` (mean per trial, None without any) are of cells hidden from a
    fit; `calibration` are the same cells by predicted probability, and `calibration_error` the trial-weighted mean
    |predicted − observed| over those bins. `misfits` and `pairs` are beyond what chance gives (worst first,
    `misfits_found` and `pairs_found` in all); `groups` the most correlated first. `effective_runs` is how many
    independent runs the history is worth (`residuals.effective_runs`). `thin`: sentences on what the history is too
    thin for.
    """

    n_runs: int
    n_items: int
    effective_runs: float
    held_out_trials: float = 0.0
    held_out_log_likelihood: float | None = None
    calibration: tuple[CalibrationBin, ...] = ()
    calibration_error: float | None = None
    misfits: tuple[ItemMisfit, ...] = ()
    misfits_found: int = 0
    pairs: tuple[ResidualPair, ...] = ()
    pairs_found: int = 0
    groups: tuple[ResidualGroup, ...] = ()
    thin: tuple[str, ...] = field(default_factory=tuple)

    def as_dict(self) -> dict[str, Any]:
        """Plain, JSON-able values; `from_dict` gives back an equal record."""
        plain = asdict(self)
        for pair in plain["pairs"]:
            pair["items"] = list(pair["items"])
        return {name: list(value) if isinstance(value, tuple) else value for name, value in plain.items()}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> FitReport:
        """The record of `as_dict`; raises KeyError or TypeError on anything else."""
        values = dict(plain)
        values["calibration"] = tuple(CalibrationBin(**row) for row in values["calibration"])
        values["misfits"] = tuple(ItemMisfit(**row) for row in values["misfits"])
        values["pairs"] = tuple(ResidualPair(**{**row, "items": tuple(row["items"])}) for row in values["pairs"])
        values["groups"] = tuple(ResidualGroup(**row) for row in values["groups"])
        values["thin"] = tuple(values["thin"])
        return cls(**values)
