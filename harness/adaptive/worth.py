"""What each item of a bank can tell about an agent not yet seen."""

from __future__ import annotations

import numpy as np

from harness.adaptive.arrays import FloatArray, sigmoid
from harness.adaptive.bank import Bank

DEAD_SHARE = 0.1  # of the mean item's information: under it an item is dead weight
_NODES = 31


def expected_information(bank: Bank) -> FloatArray:
    """E_θ[p(1−p)] · αᵀΣα under the bank's prior θ ~ N(m, Σ), (N,), ≥ 0, without unit.

    It is the first-order share by which one outcome shrinks the variance of the item's own logit direction. The
    logit is normal with mean α·m − β and variance αᵀΣα, so the expectation is one integral per item, by
    Gauss–Hermite quadrature.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    spread = np.einsum("nd,de,ne->n", bank.alpha, bank.prior_covariance, bank.alpha)
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
