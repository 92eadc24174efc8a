"""What a calibration may be told; see `calibration`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from harness.adaptive.calibration.likelihood import Priors
from harness.adaptive.errors import CalibrationError

Dims = int | Literal["auto", "rasch"]
Candidate = int | Literal["rasch"]
Method = Literal["variational", "map"]
DRIFT_DAYS = 30.0


@dataclass(frozen=True)
class CalibrationSettings:
    """`dims`: d ≥ 1, "rasch" (d = 1, one α for all), or "auto": by held-out likelihood among `candidates`, which go
    from simple to rich; the simplest within one standard error of the best is taken.

    `kinds`: the most kinds of items that the prior of an item may tell apart (`item_prior`), from two abilities on;
    it tells any apart only where that predicts the hidden cells better by more than one standard error.

    `method`: "variational" (`variational`) or "map" (`likelihood`).
    `held_out_share` of the cells is hidden to score candidates, drawn by `seed`, run and item name.
    `average`: with "auto", keep the other candidates that held-out likelihood gives a weight, as
    `Bank.alternatives`.
    `report`: judge the fit (`FitReport`, kept in the bank); this takes a second, rougher fit without the hidden cells.
    `half_life_days` halves the weight of a run for every so many days before the latest run; `window_days` leaves out
    runs further back. Runs without a date weigh 1 and stay in.
    `drift`: how far the difficulty of an item walks in `DRIFT_DAYS` days, a standard deviation in logits; the bank has
    items as they are after the latest run (`drifting`). "auto": as far as hidden cells say, not at all where they do
    not say so (`drift_choice`); 0: not at all. Variational only; needs dated runs, "auto" does without where there
    are none.
    `tolerance` is on the gradient in units of posterior standard deviation; a fit has converged within a small multiple
    of it, which the bank states (`Convergence`).
    """

    dims: Dims = "auto"
    seed: int = 0
    priors: Priors = field(default_factory=Priors)
    candidates: tuple[Candidate, ...] = ("rasch", 1, 2, 3, 5, 8, 12)
    held_out_share: float = 0.15
    min_runs_2pl: int = 8
    max_iterations: int = 1000
    kinds: int = 8
    tolerance: float = 1e-3
    method: Method = "variational"
    average: bool = True
    report: bool = True
    half_life_days: float | None = None
    window_days: float | None = None
    drift: float | Literal["auto"] = 0.0

    def __post_init__(self) -> None:
        for dims in (self.dims, *self.candidates):
            if isinstance(dims, int) and dims < 1:
                raise CalibrationError(f"d = {dims}", place="dims", remedy="Give d ≥ 1, 'rasch' or 'auto'")
        if self.method not in ("variational", "map"):
            raise CalibrationError(f"{self.method!r}", place="method", remedy="Give 'variational' or 'map'")
        if not 0 < self.held_out_share < 1 or self.max_iterations < 1 or not self.tolerance > 0:
            raise CalibrationError(
                f"{self.held_out_share}, {self.max_iterations}, {self.tolerance}",
                place="held_out_share, max_iterations, tolerance",
                remedy="Give a share in (0, 1), at least one iteration and a tolerance above 0",
            )
        if self.drift != "auto" and not (isinstance(self.drift, int | float) and 0 <= self.drift < float("inf")):
            raise CalibrationError(f"{self.drift!r}", place="drift", remedy="Give logits in 30 days, 0 or 'auto'")
        if self.drift != 0 and self.method != "variational":
            raise CalibrationError(
                "items that move need method 'variational'", place="drift", remedy="Leave one of the two out"
            )
        if self.kinds < 1:
            raise CalibrationError(f"{self.kinds} kinds of items", place="kinds", remedy="Give at least 1")
        for name in ("half_life_days", "window_days"):
            days = getattr(self, name)
            if days is not None and not (0 < days < float("inf")):
                raise CalibrationError(f"{days} days", place=name, remedy="Give a number of days above 0, or None")
