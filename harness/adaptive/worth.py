"""What each item of a bank can tell about an agent not yet seen."""

from __future__ import annotations

import numpy as np

from harness.adaptive.arrays import FloatArray, sigmoid
from harness.adaptive.bank import Bank

DEAD_SHARE = 0.1  # of the mean item's information: under it an item is dead weight
_REACH, _NODES = 8.0, 241  # standard deviations, and points within them


def expected_information(bank: Bank) -> FloatArray:
    """E_θ[p(1−p)] · αᵀΣα under the bank's prior θ ~ N(m, Σ), (N,), ≥ 0, without unit.

    It is the first-order share by which one outcome shrinks the variance of the item's own logit direction. The
    logit is normal with mean α·m − β and variance s² = αᵀΣα, so the expectation is one integral per item, by the
    trapezoidal rule with steps h = 1/15: its error falls as exp(−2π²/(s h)), under 1e-6 up to s = 20. (Gauss–Hermite
    rules of a handful of points miss a p(1−p) that is narrow beside s by many per cent.)
    """
    nodes = np.linspace(-_REACH, _REACH, _NODES)
    weights = np.exp(-0.5 * nodes**2)
    spread = bank.logit_variance(bank.prior_covariance)
    centre = bank.alpha @ bank.prior_mean - bank.beta
    p = sigmoid(centre[:, None] + np.sqrt(spread)[:, None] * nodes)
    return np.asarray((p * (1.0 - p)) @ (weights / weights.sum()) * spread)


def dead_weight(bank: Bank) -> tuple[str, ...]:
    """Items that tell less than `DEAD_SHARE` of what the mean item does: nearly everyone passes them, or fails, or
    their outcome has little to do with ability. They cost a trial like any other.
    """
    information = expected_information(bank)
    low = information < DEAD_SHARE * information.mean()
    return tuple(item for item, dead in zip(bank.item_ids, low, strict=True) if dead)


def items_holding(bank: Bank, share: float) -> int:
    """The least number of items that together hold `share` of the expected information."""
    falling = np.sort(expected_information(bank))[::-1].cumsum()
    return int(np.searchsorted(falling, share * falling[-1]) + 1)
