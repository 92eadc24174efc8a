"""Where a bank's numbers come from: plain values that go into its file, its digest and the run record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Convergence:
    """How the fit ended.

    `max_gradient` is the largest |∂L/∂x| times x's conditional posterior standard deviation, so 0.001 means
    that no parameter is further than about a thousandth of its own uncertainty from the optimum along its
    axis. `converged` is max_gradient ≤ `tolerance`. A bank that no fit made (method "prior") has converged in
    0 iterations.
    """

    converged: bool
    iterations: int
    max_gradient: float
    tolerance: float


@dataclass(frozen=True)
class Provenance:
    """`method` is "2pl", "rasch" or "prior" (no history: every parameter is its prior).

    `inference` is "variational", "map" or "none" (no fit). `effective_runs` is Σ of the runs' weights (recency), at
    most `n_runs`.

    `drift_sd`: how far the difficulty of an item moves in 30 days, a standard deviation in logits; 0 where items stand
    still. Items are as they are after `last_date`, and before it they were otherwise.

    `history_sha256` is `Responses.sha256` ("" without one); `first_date` and `last_date` are "" where
    unknown. `held_out`: item → why it was kept out of the fit (its parameters are prior-only, see
    `calibrate`). `flagged`: item → what looks wrong with it though it was fitted. `dimension_scores`:
    candidate → mean held-out log-likelihood per trial, empty if d was given. `notes`: what the reader must
    know, such as a fallback.
    """

    method: str
    d: int
    seed: int
    n_runs: int
    inference: str = "none"
    effective_runs: float = 0.0
    drift_sd: float = 0.0
    history_sha256: str = ""
    first_date: str = ""
    last_date: str = ""
    convergence: Convergence = Convergence(True, 0, 0.0, 0.0)
    held_out: Mapping[str, str] = field(default_factory=dict)
    flagged: Mapping[str, str] = field(default_factory=dict)
    dimension_scores: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain, JSON-able values; `from_dict` gives back an equal record. What was added to it later is left out where
        it has its default: banks written before have no such key, and their digest must stay what it was.
        """
        plain = asdict(self)
        if self.drift_sd == 0.0:
            del plain["drift_sd"]
        plain["notes"] = list(self.notes)
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Provenance:
        """The record of `as_dict`; raises KeyError or TypeError on anything else."""
        values = dict(plain)
        values["convergence"] = Convergence(**values["convergence"])
        values["notes"] = tuple(values["notes"])
        return cls(**values)
