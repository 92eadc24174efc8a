"""Estimators of the full-suite pass rate, one file each; `estimator_named` finds one."""

from __future__ import annotations

from harness.adaptive.errors import EngineError
from harness.adaptive.estimators.p_irt import PIrt
from harness.adaptive.estimators.posterior_predictive import PosteriorPredictive
from harness.adaptive.estimators.protocol import Estimate, Estimator, Moments, estimate_of

__all__ = [
    "ESTIMATORS",
    "Estimate",
    "Estimator",
    "Moments",
    "PIrt",
    "PosteriorPredictive",
    "estimate_of",
    "estimator_named",
]

ESTIMATORS: tuple[Estimator, ...] = (PIrt(), PosteriorPredictive())


def estimator_named(name: str) -> Estimator:
    """The shipped estimator of this name; raises EngineError listing the names there are."""
    for estimator in ESTIMATORS:
        if estimator.name == name:
            return estimator
    names = ", ".join(estimator.name for estimator in ESTIMATORS)
    raise EngineError(f"no estimator {name!r}", place="estimator", remedy=f"Choose one of {names}")
