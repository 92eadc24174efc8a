"""An interval that may be looked at after every outcome: a confidence sequence for the pass rate of the whole suite.

    P( the rate is in the interval at every moment of the run ) ≥ level

whatever the policy, the model and the rule by which one stops, from the *drawn* items alone (`Evidence.random`). A
drawn outcome x_m is uniform over the P_m open items. Were the total of the suite's outcomes t, its mean given the past
is

    η_m(t) = ( t − Σ_{chosen before m} y − Σ_{open} c ) / P_m,        x_m = y_m − c_m

with c any prediction made before the step: the bank's probabilities at the θ̂ of the outcomes before m ("assisted"), or
0. So a gambler who bets on x_m − η_m gains nothing on average if t is right, and by Ville's inequality rarely
multiplies his stake by 2/α:

    K±_m(t) = Π_{j ≤ m} ( 1 ± λ±_j (x_j − η_j(t)) ),        reject t once K+ or K− ≥ 2/α

    λ_j = √( 2 log(2/α) / (σ̂²_{j−1} j log(1 + j)) ),  cut so that no factor falls under ½

Source: Waudby-Smith & Ramdas 2024, "Estimating means of bounded random variables by betting", theorem 3, equation 26
and section 5 (sampling without replacement); the predictable control is ours and changes nothing in the proof. With
fewer draws than outcomes it needs no more than `Steps` knows. Items chosen before m whose outcome is not known (in
flight, ungraded) take whichever value favours t. The sequence is intersected over time, and with what the outcomes
allow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.adaptive.ability import Outcomes, maximise
from harness.adaptive.arrays import FloatArray, IntArray
from harness.adaptive.estimators.protocol import Estimate, Estimator, allowed, estimate_of, require_level
from harness.adaptive.estimators.steps import Steps
from harness.adaptive.evidence import Evidence

CANDIDATES = 1000
LEAST_FACTOR = 0.5
TOLERANCE = 1e-6  # of θ̂: a prediction need not be exact to be one


@dataclass(frozen=True, eq=False)
class _Draws:
    """D drawn outcomes in order: `x` (D,) = y − c; `known` (D,) = Σ_{before} y + Σ_{open} c; `unknown` (D,) how many
    items chosen before have no outcome; `pool` (D,) = P; `low`, `high` (D,) bounds of x over the open items.
    """

    x: FloatArray
    known: FloatArray
    unknown: FloatArray
    pool: FloatArray
    low: FloatArray
    high: FloatArray


def anytime_estimate_of(
    estimator: Estimator, evidence: Evidence, level: float = 0.95, assisted: bool = True
) -> Estimate:
    """The estimator's value for one agent, moved into the anytime-valid interval at `level`.

    Raises EngineError if `level` is not in (0, 1). With nothing drawn the interval is what the outcomes allow.
    """
    found = estimate_of(estimator, evidence, level)
    if found.n_items == 0:
        return found
    lower, upper = anytime_bounds(evidence, level, assisted)
    return Estimate(
        value=min(max(found.value, lower), upper),
        lower=lower,
        upper=upper,
        level=level,
        executed=found.executed,
        n_items=found.n_items,
        standard_error=found.standard_error,
        method=f"{estimator.name}, anytime",
    )


def anytime_bounds(evidence: Evidence, level: float = 0.95, assisted: bool = True) -> tuple[float, float]:
    """Lower and upper bound for one agent (arrays without leading axes), fractions of 1; O(D (N + k d² + T)) for D
    draws and T ≤ `CANDIDATES` candidate totals. Raises EngineError if `level` is not in (0, 1).
    """
    require_level(level)
    n, rest = int(evidence.n_items), int(evidence.rest.sum())
    if n == 0:
        return float("nan"), float("nan")
    least, most = (float(bound) * n for bound in allowed(evidence))
    draws = _draws_of(evidence, assisted)
    if rest == 0 or not len(draws.x):
        return least / n, most / n
    n_cells = min(rest, CANDIDATES)
    totals = np.linspace(least, most, n_cells + 1)
    wealth = _wealth(draws, totals, 1.0 - level)
    standing = np.flatnonzero(wealth < np.log(2.0 / (1.0 - level)))
    if not len(standing):  # all refuted, with probability 1 − level at most: the least refuted is left
        standing = np.array([int(np.argmin(wealth))])
    first, final = int(standing[0]), int(standing[-1])
    whole = rest <= CANDIDATES and bool(np.all(evidence.rates * (1.0 - evidence.rates) == 0.0))
    margin = 0 if whole else 1  # a total between two candidates may stand although the rejected one does not
    return float(totals[max(first - margin, 0)]) / n, float(totals[min(final + margin, n_cells)]) / n


def _wealth(draws: _Draws, totals: FloatArray, alpha: float) -> FloatArray:
    """The largest log K± that was ever reached against each total, (T,); infinite for one that cannot be."""
    bet = _bets(draws, alpha)[:, None]
    pool, x = draws.pool[:, None], draws.x[:, None]
    centre = totals - draws.known[:, None]
    above, below = (centre + draws.unknown[:, None]) / pool, (centre - draws.unknown[:, None]) / pool
    low, high = draws.low[:, None], draws.high[:, None]
    impossible = ((above < low - 1e-9) | (below > high + 1e-9)).any(axis=0)
    cut = 1.0 - LEAST_FACTOR
    up = np.minimum(bet, cut / np.maximum(above - low, 1e-12))
    down = np.minimum(bet, cut / np.maximum(high - below, 1e-12))
    gains = np.maximum(
        np.cumsum(np.log(np.maximum(1.0 + up * (x - above), LEAST_FACTOR)), axis=0),
        np.cumsum(np.log(np.maximum(1.0 - down * (x - below), LEAST_FACTOR)), axis=0),
    )
    return np.where(impossible, np.inf, gains.max(axis=0))


def _bets(draws: _Draws, alpha: float) -> FloatArray:
    """λ_j before cutting, (D,): of the outcomes before j only."""
    j = np.arange(1, len(draws.x) + 1)
    mean = (0.5 * (draws.low[0] + draws.high[0]) + np.cumsum(draws.x)) / (j + 1)
    variance = (0.25 + np.cumsum((draws.x - mean) ** 2)) / (j + 1)
    before = np.concatenate([[0.25], variance[:-1]])
    return np.asarray(np.sqrt(2.0 * np.log(2.0 / alpha) / (before * j * np.log1p(j))))


def _draws_of(evidence: Evidence, assisted: bool) -> _Draws:
    steps = Steps.of(evidence)
    rates = steps.sorted(evidence.rates)
    at = np.flatnonzero(steps.sorted(evidence.random.astype(np.float64)) > 0.0)
    items = np.take_along_axis(evidence.items, steps.order, axis=-1)
    open_then = np.tile(evidence.counted, (len(at), 1))
    for row, step in enumerate(at):
        open_then[row, items[:step][steps.seen[:step]]] = False
    predicted = _predictions(evidence, steps, items, at) if assisted else np.zeros(open_then.shape)
    pool = steps.pool[at]
    return _Draws(
        x=rates[at] - predicted[np.arange(len(at)), items[at]],
        known=np.cumsum(rates)[at] - rates[at] + (predicted * open_then).sum(axis=1),
        unknown=np.maximum(int(evidence.n_items) - pool - steps.before[at], 0.0),
        pool=pool,
        low=-np.where(open_then, predicted, 0.0).max(axis=1, initial=0.0),
        high=1.0 - np.where(open_then, predicted, 1.0).min(axis=1, initial=1.0),
    )


def _predictions(evidence: Evidence, steps: Steps, items: IntArray, at: IntArray) -> FloatArray:
    """P(pass) of every item at the θ̂ of the outcomes chosen before each draw, (D, N)."""
    bank, k = evidence.bank, len(items)
    earlier = np.arange(k) < at[:, None]
    outcomes = Outcomes(
        loadings=np.broadcast_to(bank.alpha[items], (len(at), k, bank.d)),
        offsets=np.broadcast_to(bank.beta[items], (len(at), k)),
        passes=steps.sorted(evidence.passes) * earlier,
        trials=steps.sorted(evidence.trials) * earlier,
        mean=bank.prior_mean,
        precision=bank.prior_precision,
    )
    theta = maximise(np.tile(bank.prior_mean, (len(at), 1)), outcomes, TOLERANCE)
    return bank.probability(theta)
