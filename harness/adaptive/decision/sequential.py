"""Bounds on a difference that hold at every moment, so that one may look after each outcome and stop at will.

With X, s the estimate and its standard error now, X₀, s₀ before the candidate's first outcome, what the outcomes alone
say of the true difference T is

    J = 1/s² − 1/s₀²   (information),      L = (X/s² − X₀/s₀²) / J,      J (L − T) ~ Brownian motion at time J,

exactly so for Gaussian evidence with the model right, whatever chose the items and whatever T is: s shrinks to 0 as the
last item is run, and L ends at T. Hence, for the upper bound at error α (the lower one is its mirror at β):

*Linear boundaries.* Against T ≥ c the mixture of likelihood ratios Σ_j w_j exp(J (λ_j (c − L) − λ_j²/2)) is a
nonnegative martingale at T = c, so by Ville's inequality it reaches 1/α with probability at most α, over all looks. The
upper bound is the c at which it does. λ = m, the margin, makes deciding between T = 0 and T = −m Wald's sequential
test, which needs the fewest outcomes; a second, steeper λ with a small weight is there for large differences and for
differences in between. (Wald 1945, "Sequential tests of statistical hypotheses"; Robbins 1970, "Statistical methods
related to the law of the iterated logarithm"; Howard, Ramdas, McAuliffe & Sekhon 2021, "Time-uniform, nonparametric,
nonasymptotic confidence sequences".)

*Reflection.* Where even a full run leaves an error s_end that is large beside the margin, information ends at
J_end = 1/s_end² − 1/s₀², and by the reflection principle the motion leaves ±z√J_end on one side before that time with
probability α for z = Φ⁻¹(1 − α/2). The bounds are L ± z √J_end / J (O'Brien & Fleming 1979, in continuous time).

The error rates are those of the working model. How far they hold where it is wrong is measured, not proven:
`benchmarks/adaptive/decisions.py`. `widening` multiplies every standard error, for banks whose back-test asks for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from harness.adaptive.arrays import FloatArray, normal_quantile
from harness.adaptive.decision.paired import Difference

SLOPES = (1.0, 2.5)  # λ in margins
WEIGHTS = (0.75, 0.25)
REFLECT_FROM = 0.4  # final errors above this many margins take the reflection bounds
ZERO_MARGIN_SCALE = 0.02
_MAX_STEPS = 50


@dataclass(frozen=True, eq=False)
class Bounds:
    """`lower` and `upper`, (...,), fractions of 1, each missed at any look with at most its own error rate.

    `within_reach` (...,): an upper bound of the chance that running everything leads to a verdict; 1 with linear
    boundaries, which always do.
    """

    lower: FloatArray
    upper: FloatArray
    within_reach: FloatArray


def bounds_of(difference: Difference, margin: float, alpha: float, beta: float, widening: float = 1.0) -> Bounds:
    """Bounds at every moment, cut to what the outcomes so far allow; infinite information gives the value itself."""
    scale = margin or ZERO_MARGIN_SCALE
    error = np.maximum(difference.standard_error * widening, 1e-12)
    before, final = difference.prior_error * widening, difference.final_error * widening
    past = np.divide(1.0, before**2, out=np.zeros(before.shape), where=before > 0)
    information = 1.0 / error**2 - past
    informed = information > 1e-9 * past
    safe = np.where(informed, information, 1.0)
    level = (difference.value / error**2 - difference.prior_value * past) / safe
    reflected = final > REFLECT_FROM * scale
    end = np.maximum(1.0 / np.maximum(final, 1e-12) ** 2 - past, safe)
    reach = []
    for rate in (alpha, beta):
        linear = linear_reach(safe, scale, rate)
        reach.append(np.where(reflected, normal_quantile(1.0 - rate / 2.0) * np.sqrt(end) / safe, linear))
    known = difference.standard_error <= 0
    upper = np.where(known, difference.value, np.where(informed, level + reach[0], np.inf))
    lower = np.where(known, difference.value, np.where(informed, level - reach[1], -np.inf))
    return Bounds(
        lower=np.clip(lower, difference.least, difference.most),
        upper=np.clip(upper, difference.least, difference.most),
        within_reach=np.where(reflected & ~known, _within_reach(difference, margin, (alpha, beta), end, widening), 1.0),
    )


def linear_reach(information: FloatArray, scale: float, rate: float) -> FloatArray:
    """u > 0 with Σ_j w_j exp(J (λ_j u − λ_j²/2)) = 1/`rate` for each J > 0 of `information`, any shape.

    The logarithm of the sum is convex and rises with u, so Newton's method from above descends to the root.
    """
    slopes, logs = np.array(SLOPES) * scale, np.log(WEIGHTS)
    wanted, time = -math.log(rate), information[..., None]
    reach = (slopes / 2.0 + (wanted - logs) / (slopes * time)).min(axis=-1)
    for _ in range(_MAX_STEPS):
        exponents = logs + time * slopes * (reach[..., None] - slopes / 2.0)
        top = exponents.max(axis=-1, keepdims=True)
        shares = np.exp(exponents - top)
        total = shares.sum(axis=-1)
        excess = top[..., 0] + np.log(total) - wanted
        step = excess * total / (information * (shares * slopes).sum(axis=-1))
        reach = reach - step
        if (np.abs(step) <= 1e-13 * reach).all():
            break
    return np.asarray(reach)


def _within_reach(
    difference: Difference, margin: float, rates: tuple[float, float], end: FloatArray, widening: float
) -> FloatArray:
    """At most twice the chance that the estimate ends beyond a bound (reflection principle), capped at 1."""
    spread = np.sqrt(np.maximum(difference.standard_error**2 - difference.final_error**2, 0.0)) * widening
    spread = np.maximum(spread, 1e-12)
    worse, fine = (normal_quantile(1.0 - rate / 2.0) / np.sqrt(end) for rate in rates)
    below = _normal_cdf((-worse - difference.value) / spread)
    above = _normal_cdf((difference.value - (fine - margin)) / spread)
    return np.asarray(np.minimum(2.0 * (below + above), 1.0))


def _normal_cdf(z: FloatArray) -> FloatArray:
    return np.array([0.5 * math.erfc(-value / math.sqrt(2.0)) for value in np.ravel(z)]).reshape(np.shape(z))
