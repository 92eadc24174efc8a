"""Items whose last parameter walks: the smoother against the joint Gaussian written out."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from harness.adaptive.calibration.smoother import smoothed


def table(rng: np.random.Generator, *shape: int, size: int) -> np.ndarray:
    """Precision matrices of full rank, (*shape, size, size)."""
    root = rng.normal(size=(*shape, size, size + 1))
    return np.asarray(root @ np.swapaxes(root, -1, -2))


@given(seed=st.integers(0, 10_000), periods=st.integers(1, 6), width=st.integers(1, 3))
def test_it_is_the_joint_posterior(seed: int, periods: int, width: int) -> None:
    rng = np.random.default_rng(seed)
    precision, linear = table(rng, periods, 2, size=width), rng.normal(size=(periods, 2, width))
    prior, pull = table(rng, 1, size=width), rng.normal(size=(1, width))
    walk = rng.gamma(1.0, 0.5, size=periods - 1) + 1e-3
    means, covariances = smoothed(precision, linear, (prior, pull), walk)
    for item in range(2):
        # In the parameters of the first period and the later steps, all independent beforehand.
        size = width + periods - 1
        total, weighted = np.zeros((size, size)), np.zeros(size)
        total[:width, :width], weighted[:width] = prior[0], pull[0]
        total[range(width, size), range(width, size)] = 1.0 / walk
        reads = []
        for t in range(periods):
            read = np.zeros((width, size))
            read[:, :width] = np.eye(width)
            read[-1, width : width + t] = 1.0
            total += read.T @ precision[t, item] @ read
            weighted += read.T @ linear[t, item]
            reads.append(read)
        joint = np.linalg.inv(total)
        for t, read in enumerate(reads):
            np.testing.assert_allclose(means[t, item], read @ joint @ weighted, rtol=1e-6, atol=1e-8)
            np.testing.assert_allclose(covariances[t, item], read @ joint @ read.T, rtol=1e-6, atol=1e-8)


def test_without_a_walk_all_periods_are_one() -> None:
    rng = np.random.default_rng(3)
    precision, linear = table(rng, 4, 5, size=3), rng.normal(size=(4, 5, 3))
    prior, pull = table(rng, 1, size=3), rng.normal(size=(1, 3))
    means, covariances = smoothed(precision, linear, (prior, pull), np.zeros(3))
    pooled = np.linalg.inv(prior + precision.sum(axis=0))
    expected = (pooled @ (pull + linear.sum(axis=0))[..., None])[..., 0]
    for t in range(4):
        np.testing.assert_allclose(means[t], expected, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(covariances[t], pooled, rtol=1e-7, atol=1e-9)
