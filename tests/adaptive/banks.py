"""Banks with made-up parameters, for tests that need no history."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from harness.adaptive import Bank, prior_bank


def random_bank(seed: int, n: int = 30, d: int = 3, spread: float = 1.0) -> Bank:
    """`n` calibrated items "item-0", … with `d` abilities; loadings are positive if d = 1 and scaled by `spread`."""
    rng = np.random.default_rng(seed)
    names = [f"item-{index}" for index in range(n)]
    alpha = np.abs(rng.normal(1.0, 0.4, (n, d))) if d == 1 else rng.normal(0.6, 0.6, (n, d))
    root = rng.normal(size=(d, d))
    return replace(
        prior_bank(names),
        alpha=alpha * spread,
        beta=rng.normal(0, 1.5, n),
        prior_mean=rng.normal(0, 0.3, d),
        prior_covariance=root @ root.T * 0.3 + np.eye(d),
        calibrated=np.ones(n, dtype=bool),
    )
