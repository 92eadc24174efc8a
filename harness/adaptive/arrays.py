"""Array types and the few functions that everything here shares.

    σ(z) = 1 / (1 + exp(−z)),        log(1 + exp(z)) = max(z, 0) + log1p(exp(−|z|))

Both are computed from exp(−|z|), which neither overflows nor loses a tail; no likelihood in this package is ever
multiplied out (CASES S10). They are written in numpy, because importing scipy's costs a coordinator 30 megabytes.
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
KeyArray = NDArray[np.uint64]

_STANDARD_NORMAL = NormalDist()


def sigmoid(z: FloatArray) -> FloatArray:
    """σ(z), element by element, any shape; no overflow, full relative precision in both tails."""
    tail = np.exp(-np.abs(z))
    return np.asarray(np.where(np.asarray(z) >= 0, 1.0, tail) / (1.0 + tail), dtype=np.float64)


def normal_quantile(p: ArrayLike) -> FloatArray:
    """Φ⁻¹(p) for p in (0, 1), element by element, any shape. Raises ValueError outside."""
    values = np.asarray(p, dtype=np.float64)
    found = [_STANDARD_NORMAL.inv_cdf(float(value)) for value in values.ravel()]
    return np.array(found, dtype=np.float64).reshape(values.shape)


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
