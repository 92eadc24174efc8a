"""The difference between a candidate's and a baseline's pass rate on their common items, and its standard error.

Executed items count with their outcomes, the rest with their predictions. Where the baseline has an outcome on an item
that the candidate has not run yet, its surprise r_B,i = y_B,i − q_B,i is carried over by one coefficient γ,

    m_i = q_C,i + γ r_B,i,     γ = Σ_S r_B r_C / (Σ_S r_B² + λ),  within [0, 1],  S = items that both ran,

with q the averaged probability of `estimators.posterior_predictive`. Two agents that share nothing beyond their
abilities have γ = 0 and pairing costs nothing; one that repeats the other's outcomes has γ = 1, the difference then
hangs on the discordant items alone, and a few tasks decide. λ is a prior worth about twenty items. The variance of the
unexecuted part, in (items)², with the rest split into P (the baseline ran it) and Q (it did not), is

    gᵀΣg + (1 − γ²) Σ_P q(1−q) + Σ_Q q(1−q) + (Σ_P r_B)² w̄ / (Σ_S r_B² + λ),     g = Σ_rest κ q(1−q) α,

w̄ the mean of q(1−q). What the baseline itself has not run adds its own posterior predictive variance, or cancels
against nothing: given the abilities, outcomes of two agents are independent. Source: a difference estimator (Särndal,
Swensson & Wretman 1992, chapter 6) with the model and the baseline as auxiliary; the formulas above are ours.

`truth` says what the difference is of:

    "suite"  the realised rates, Σ y_C / N − Σ y_B / N: what full runs of both would show. Error 0 once both are full.
    "agent"  the mean probabilities, Σ p_C / N − Σ p_B / N: what repeating full runs for ever would show. Two full runs
             still leave an error of about √(Σ p(1−p) · 2) / N, 2 points on 500 items; no rule can do without it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from harness.adaptive.arrays import BoolArray, FloatArray, IntArray
from harness.adaptive.errors import EngineError
from harness.adaptive.estimators.posterior_predictive import averaged
from harness.adaptive.estimators.protocol import Moments
from harness.adaptive.evidence import Evidence

Truth = Literal["suite", "agent"]

CARRY_PRIOR = 2.5  # λ: Σ r² over about twenty mid-range items


@dataclass(frozen=True, eq=False)
class Side:
    """One agent's evidence on dense arrays: `rates` (..., N), 0 where `ran` (..., N) is False; `q` (..., N) predicted
    pass probabilities; `lever` (..., N) = κ q (1−q).
    """

    evidence: Evidence

    @cached_property
    def ran(self) -> BoolArray:
        """Items with an outcome, (..., N)."""
        return self.evidence.counted & ~self.evidence.rest

    @cached_property
    def rates(self) -> FloatArray:
        """Pass rate per item, (..., N)."""
        evidence = self.evidence
        dense = np.zeros(evidence.counted.shape)
        real = evidence.trials > 0
        index = np.nonzero(real)
        dense[(*index[:-1], evidence.items[real])] = evidence.rates[real]
        return dense

    @cached_property
    def prediction(self) -> tuple[FloatArray, FloatArray]:
        """κ and q of every item, both (..., N)."""
        return averaged(self.evidence)

    @property
    def q(self) -> FloatArray:
        """Averaged pass probability of every item, (..., N)."""
        return self.prediction[1]

    @property
    def lever(self) -> FloatArray:
        """κ q (1 − q), (..., N)."""
        attenuation, q = self.prediction
        return np.asarray(attenuation * q * (1.0 - q))

    @cached_property
    def surprise(self) -> FloatArray:
        """y − q where it ran, 0 elsewhere, (..., N)."""
        return np.where(self.ran, self.rates - self.q, 0.0)

    def spread(self, mask: BoolArray) -> FloatArray:
        """gᵀΣg with g = Σ over `mask` (..., N) of κ q (1−q) α, (...,), in (items)²."""
        g = (self.lever * mask) @ self.evidence.bank.alpha
        return np.asarray(((g[..., None, :] @ self.evidence.covariance)[..., 0, :] * g).sum(axis=-1))

    def final_spread(self, mask: BoolArray) -> FloatArray:
        """√(gᵀΣ'g) of `spread` with Σ' the covariance once every item of `mask` has run: Σ'⁻¹ = Σ⁻¹ + Σ_rest w ααᵀ, in
        items, (...,).
        """
        bank = self.evidence.bank
        p = bank.probability(self.evidence.theta)
        weight = p * (1.0 - p) * (mask & self.evidence.rest)
        added = np.swapaxes(weight[..., None] * bank.alpha, -1, -2) @ bank.alpha
        final = np.linalg.inv(np.linalg.inv(self.evidence.covariance) + added)
        g = (self.lever * mask) @ bank.alpha
        return np.asarray(np.sqrt(((g[..., None, :] @ final)[..., 0, :] * g).sum(axis=-1)))

    def noise(self, mask: BoolArray) -> FloatArray:
        """Σ over `mask` of q (1 − q), (...,), in (items)²."""
        return np.asarray((self.q * (1.0 - self.q) * mask).sum(axis=-1))


@dataclass(frozen=True, eq=False)
class Difference:
    """Candidate minus baseline, fractions of 1, every array (...,).

    `prior_value`, `prior_error`: the same before the candidate's first outcome. `final_error`: what the standard error
    would fall to if the candidate ran all of its items. `least`, `most`: what the outcomes so far allow (−1 and 1 for
    the truth "agent"). `paired`: items that both ran; `carry`: γ.
    """

    value: FloatArray
    standard_error: FloatArray
    prior_value: FloatArray
    prior_error: FloatArray
    final_error: FloatArray
    least: FloatArray
    most: FloatArray
    n_items: IntArray
    paired: IntArray
    carry: FloatArray


def difference_of(candidate: Evidence, baseline: Side | float, truth: Truth = "suite") -> Difference:
    """The difference on the items that both populations hold; for a `baseline` that is a number, on the candidate's.

    Evidence may have leading axes `...`. Cost O(N d²).

    Raises
    ------
    EngineError
        If the two banks do not hold the same items in the same order.
    """
    if isinstance(baseline, Side):
        _require_same_items(candidate, baseline.evidence)
        common = candidate.counted & baseline.evidence.counted
    else:
        common = candidate.counted
    side, before = Side(candidate), Side(before_first(candidate))
    n = np.maximum(common.sum(axis=-1), 1)
    now, carry = _candidate(side, baseline, common, truth)
    start, _ = _candidate(before, baseline, common, truth)
    own, own_least, own_most = _baseline(baseline, common, truth)
    least, most = _allowed(side, common)
    agent = truth == "agent"
    return Difference(
        value=np.asarray((now.value - own.value) / n),
        standard_error=np.asarray(np.hypot(now.standard_error, own.standard_error) / n),
        prior_value=np.asarray((start.value - own.value) / n),
        prior_error=np.asarray(np.hypot(start.standard_error, own.standard_error) / n),
        final_error=np.asarray(np.hypot(side.final_spread(common) if agent else 0.0, own.standard_error) / n),
        least=np.full(n.shape, -1.0) if agent else np.asarray((least - own_most) / n),
        most=np.full(n.shape, 1.0) if agent else np.asarray((most - own_least) / n),
        n_items=np.asarray(common.sum(axis=-1), dtype=np.int64),
        paired=_paired(side, baseline, common),
        carry=carry,
    )


def before_first(evidence: Evidence) -> Evidence:
    """The evidence of the same agent before its first outcome."""
    bank, leading = evidence.bank, evidence.theta.shape[:-1]
    return replace(
        evidence,
        theta=np.broadcast_to(bank.prior_mean, evidence.theta.shape),
        covariance=np.broadcast_to(bank.prior_covariance, evidence.covariance.shape),
        items=np.zeros((*leading, 0), dtype=np.int64),
        passes=np.zeros((*leading, 0)),
        trials=np.zeros((*leading, 0)),
        probability=np.zeros((*leading, 0)),
        pool=np.zeros((*leading, 0), dtype=np.int64),
        random=np.zeros((*leading, 0), dtype=np.bool_),
        rest=evidence.counted,
    )


def _candidate(side: Side, baseline: Side | float, common: BoolArray, truth: Truth) -> tuple[Moments, FloatArray]:
    """Total and its standard error in items, and γ."""
    if truth == "agent":
        return Moments((side.q * common).sum(axis=-1), np.sqrt(side.spread(common))), np.zeros(common.shape[:-1])
    rest, scored = common & ~side.ran, (side.rates * (common & side.ran)).sum(axis=-1)
    spread = side.spread(rest)
    if not isinstance(baseline, Side):
        total = scored + (side.q * rest).sum(axis=-1)
        return Moments(np.asarray(total), np.sqrt(spread + side.noise(rest))), np.zeros(common.shape[:-1])
    surprise = baseline.surprise * common
    strength = (surprise**2 * side.ran).sum(axis=-1) + CARRY_PRIOR
    carry = np.clip((surprise * side.surprise).sum(axis=-1) / strength, 0.0, 1.0)
    expected = np.clip(side.q + carry[..., None] * surprise, 0.0, 1.0)
    told, untold = rest & baseline.ran, rest & ~baseline.ran
    weight = side.noise(common) / np.maximum(common.sum(axis=-1), 1)
    variance = (
        spread
        + (1.0 - carry**2) * side.noise(told)
        + side.noise(untold)
        + (surprise * told).sum(axis=-1) ** 2 * weight / strength
    )
    return Moments(np.asarray(scored + (expected * rest).sum(axis=-1)), np.sqrt(variance)), np.asarray(carry)


def _baseline(baseline: Side | float, common: BoolArray, truth: Truth) -> tuple[Moments, FloatArray, FloatArray]:
    """Total and its standard error, the least and the largest total that its outcomes allow, in items."""
    if not isinstance(baseline, Side):
        total = np.asarray(baseline * common.sum(axis=-1))
        return Moments(total, np.zeros(total.shape)), total, total
    least, most = _allowed(baseline, common)
    if truth == "agent":
        total = np.asarray((baseline.q * common).sum(axis=-1))
        return Moments(total, np.sqrt(baseline.spread(common))), least, most
    rest = common & ~baseline.ran
    error = np.sqrt(baseline.spread(rest) + baseline.noise(rest))
    return Moments(np.asarray(least + (baseline.q * rest).sum(axis=-1)), error), least, most


def _allowed(side: Side, common: BoolArray) -> tuple[FloatArray, FloatArray]:
    scored = np.asarray((side.rates * (common & side.ran)).sum(axis=-1))
    return scored, np.asarray(scored + (common & ~side.ran).sum(axis=-1))


def _paired(side: Side, baseline: Side | float, common: BoolArray) -> IntArray:
    both = common & side.ran & baseline.ran if isinstance(baseline, Side) else np.zeros(common.shape, dtype=np.bool_)
    return np.asarray(both.sum(axis=-1), dtype=np.int64)


def _require_same_items(candidate: Evidence, baseline: Evidence) -> None:
    if candidate.bank.item_ids != baseline.bank.item_ids:
        raise EngineError(
            f"the candidate's bank holds {len(candidate.bank)} items, the baseline's {len(baseline.bank)}, and they are"
            " not the same in the same order",
            place="baseline",
            remedy="Build both on one bank: Baseline.of_outcomes(candidate's bank, outcomes)",
        )
