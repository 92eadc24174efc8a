"""Estimators of the full-suite pass rate, one file each; `estimator_named` finds those that need nothing but a bank."""

from __future__ import annotations

from harness.adaptive.errors import EngineError
from harness.adaptive.estimators.anytime import anytime_bounds, anytime_estimate_of
from harness.adaptive.estimators.cached import Cached
from harness.adaptive.estimators.difference import Difference
from harness.adaptive.estimators.gp_irt import GpIrt
from harness.adaptive.estimators.hybrid import Hybrid
from harness.adaptive.estimators.lure import Lure
from harness.adaptive.estimators.p_irt import PIrt
from harness.adaptive.estimators.posterior_predictive import PosteriorPredictive
from harness.adaptive.estimators.protocol import Estimate, Estimator, Moments, estimate_of
from harness.adaptive.estimators.sample_mean import SampleMean
from harness.adaptive.estimators.stratified import WEIGHTED, Stratified

__all__ = [
    "ESTIMATORS",
    "WEIGHTED",
    "Cached",
    "Difference",
    "Estimate",
    "Estimator",
    "GpIrt",
    "Hybrid",
    "Lure",
    "Moments",
    "PIrt",
    "PosteriorPredictive",
    "SampleMean",
    "Stratified",
    "anytime_bounds",
    "anytime_estimate_of",
    "estimate_of",
    "estimator_named",
]

ESTIMATORS: tuple[Estimator, ...] = (
    Hybrid(),
    PIrt(),
    PosteriorPredictive(),
    SampleMean(),
    Stratified(),
    WEIGHTED,
    Lure(),
    Lure("prior"),
    Lure("none"),
    Difference(),
)


def estimator_named(name: str) -> Estimator:
    """The shipped estimator of this name; raises EngineError listing the names there are."""
    for estimator in ESTIMATORS:
        if estimator.name == name:
            return estimator
    names = ", ".join(estimator.name for estimator in ESTIMATORS)
    raise EngineError(f"no estimator {name!r}", place="estimator", remedy=f"Choose one of {names}")
