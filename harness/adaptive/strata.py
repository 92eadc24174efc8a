"""Items ordered and grouped by difficulty: what the strata policy chooses from and the stratified estimator weighs.

The difficulty of an item is minus the logit of its pass rate for an agent not yet seen, θ ~ N(m, V) the bank's prior:

    q_i = E σ(α_iᵀθ − β_i) ≈ σ(−δ_i),       δ_i = (β_i − α_iᵀm) / √(1 + π α_iᵀVα_i / 8)

(MacKay 1992, equation 10). With a Rasch bank δ is an increasing affine function of β, so strata by δ are She & Lin's
strata by β (2026, arXiv:2609.21267, section 3.3.2); with more abilities δ still orders the items by one number.
"""

from __future__ import annotations

import numpy as np

from harness.adaptive.arrays import FloatArray, IntArray
from harness.adaptive.bank import Bank


def difficulty(bank: Bank) -> FloatArray:
    """δ of every item, (N,); larger is harder."""
    variance = ((bank.alpha @ bank.prior_covariance) * bank.alpha).sum(axis=1)
    return np.asarray((bank.beta - bank.alpha @ bank.prior_mean) / np.sqrt(1.0 + np.pi * variance / 8.0))


def strata_of(values: FloatArray, n_strata: int) -> IntArray:
    """Stratum of each item, (N,), 0 the easiest: `values` (N,) sorted and cut into min(n_strata, N) parts whose sizes
    differ by at most one; equal values keep their order.
    """
    n = len(values)
    strata = np.empty(n, dtype=np.int64)
    strata[np.argsort(values, kind="stable")] = np.arange(n) * min(n_strata, n) // n
    return strata


def by_median(values: FloatArray, strata: IntArray) -> IntArray:
    """Place of each item in its stratum, (N,): 0 for the one nearest the stratum's median value, and so on outwards; of
    two as near the easier one first. No stratum is empty.
    """
    sizes = np.bincount(strata)
    starts = np.cumsum(sizes) - sizes
    inner = values[np.lexsort((values, strata))]
    medians = (inner[starts + (sizes - 1) // 2] + inner[starts + sizes // 2]) / 2.0
    distance = np.abs(values - medians[strata]).round(12)  # two middle items are equally near, whatever the rounding
    outwards = np.lexsort((values, distance, strata))
    places = np.empty(len(values), dtype=np.int64)
    places[outwards] = np.arange(len(values)) - starts[strata[outwards]]
    return places


def spread(n: int) -> IntArray:
    """A visiting rank for each of n ordered places, (n,), whose every prefix is spread over the whole: the order of
    the places' bit-reversed numbers (van der Corput 1935).
    """
    bits = max(1, (n - 1).bit_length())
    places = np.arange(n)
    backwards = sum(((places >> bit) & 1) << (bits - 1 - bit) for bit in range(bits))
    ranks = np.empty(n, dtype=np.int64)
    ranks[np.argsort(backwards)] = np.arange(n)
    return ranks
