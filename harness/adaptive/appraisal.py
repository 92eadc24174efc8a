"""How one agent's outcomes sit with the bank, and what one more of them would bring.

Person fit is l_z (Drasgow, Levine & Williams 1985, "Appropriateness measurement with polychotomous item response
models and standardized indices"): with k passes in n trials and p = σ(α·θ̂ − β) for each executed item,

    l = Σ k ln p + (n − k) ln(1 − p),     E = Σ n [p ln p + (1 − p) ln(1 − p)],     V = Σ n p (1 − p) ln²(p / (1 − p)),

    l_z = (l − E) / √V

About standard normal for an agent like those of the history; well below 0 for one that passes what it should fail and
fails what it should pass. θ̂ is fitted to the same outcomes, which pulls l_z towards 0 from below.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.adaptive.arrays import sigmoid
from harness.adaptive.estimators import Estimator, estimate_of
from harness.adaptive.state import AbilityState

MISFIT = -3.0


@dataclass(frozen=True)
class Surprise:
    """An outcome that the bank did not expect: `expected` is P(pass), `rate` what came, `residual` their difference in
    standard deviations.
    """

    item: str
    expected: float
    rate: float
    residual: float


@dataclass(frozen=True)
class Fit:
    """`lz` (NaN with no outcome, or none that could tell), and all `surprises`, the largest first."""

    lz: float
    surprises: tuple[Surprise, ...]

    @property
    def misfits(self) -> bool:
        """Whether the outcomes contradict the bank so much that a model-based estimate is not to be trusted."""
        return self.lz < MISFIT


def person_fit(state: AbilityState) -> Fit:
    """The fit of the outcomes so far at θ̂, O(k d)."""
    seen = state.outcomes
    p = np.clip(sigmoid(seen.logits(state.theta)), 1e-12, 1.0 - 1e-12)
    yes, no, trials = np.log(p), np.log1p(-p), seen.trials
    told = (seen.passes * yes + (trials - seen.passes) * no).sum()
    expected = (trials * (p * yes + (1.0 - p) * no)).sum()
    variance = float((trials * p * (1.0 - p) * (yes - no) ** 2).sum())
    residual = (seen.passes - trials * p) / np.sqrt(trials * p * (1.0 - p))
    names = [state.bank.item_ids[at] for at in state.items]
    order = np.argsort(-np.abs(residual), kind="stable").tolist()
    return Fit(
        lz=float((told - expected) / np.sqrt(variance)) if variance > 0 else float("nan"),
        surprises=tuple(
            Surprise(names[at], float(p[at]), float(seen.passes[at] / trials[at]), float(residual[at])) for at in order
        ),
    )


def expected_error(state: AbilityState, item: str, estimator: Estimator, widening: float = 1.0) -> float:
    """The estimate's standard error after one outcome of an open `item`, in expectation over it, at θ̂, fraction of 1.

    `widening` as in `estimate_of`. Raises BankError on an unknown item, StateError if it is not open.
    """
    at = int(state.bank.positions([item])[0])
    p = float(state.bank.probability(state.theta)[at])
    failed, passed = (
        estimate_of(estimator, state.observe(at, passes).evidence, widening=widening).standard_error
        for passes in (0, 1)
    )
    return (1.0 - p) * failed + p * passed
