"""Array types and the two functions of a logit that everything here shares.

    σ(z) = 1 / (1 + exp(−z)),        log(1 + exp(z)) = max(z, 0) + log1p(exp(−|z|))

The second form neither overflows nor loses the tail; no likelihood in this package is ever multiplied out
(CASES S10).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
KeyArray = NDArray[np.uint64]


def sigmoid(z: FloatArray) -> FloatArray:
    """σ(z), element by element, any shape; no overflow."""
    return np.asarray(expit(z), dtype=np.float64)


def softplus(z: FloatArray) -> FloatArray:
    """log(1 + exp(z)), element by element, any shape; no overflow, exact in both tails."""
    return np.asarray(np.maximum(z, 0.0) + np.log1p(np.exp(-np.abs(z))), dtype=np.float64)


def frozen(values: ArrayLike) -> FloatArray:
    """A private, C-contiguous, read-only float64 copy, so that a frozen dataclass is frozen in depth."""
    array = np.array(values, dtype=np.float64, order="C", copy=True)
    array.flags.writeable = False
    return array


def frozen_mask(values: ArrayLike) -> BoolArray:
    """The same for booleans."""
    array = np.array(values, dtype=np.bool_, order="C", copy=True)
    array.flags.writeable = False
    return array
