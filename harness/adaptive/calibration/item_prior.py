"""The learnt prior of an item's parameters φ = (α, β): one Gaussian, or a mixture of them.

    φ_i ~ Σ_k π_k N(a_k, Ω_k)

Items come in kinds: those that ask for one skill load alike, and not at all on other skills. A single Gaussian must be
as wide as all kinds together; a mixture draws an item towards its own kind, so that fewer runs tell what it measures.
In the variational posterior an item belongs to k with the share (Bishop 2006, "Pattern Recognition and Machine
Learning", section 10.2)

    r_ik ∝ π_k |Ω_k|^(−1/2) exp(−½ (μ_i − a_k)ᵀ Ω_k⁻¹ (μ_i − a_k) − ½ tr Ω_k⁻¹ V_i)

and has the prior precision Σ_k r_ik Ω_k⁻¹ with the linear term Σ_k r_ik Ω_k⁻¹ a_k.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.cluster.vq import kmeans2

from harness.adaptive.arrays import FloatArray

_STARTS = 8
_LEAST_WEIGHT = 1e-12


@dataclass(frozen=True, eq=False)
class ItemPrior:
    """`weight` (K,), `mean` (K, d+1), `covariance` (K, d+1, d+1), and the `common` width (d+1, d+1) that the kinds' are
    drawn towards: the covariance itself where K = 1.
    """

    weight: FloatArray
    mean: FloatArray
    covariance: FloatArray
    common: FloatArray

    @classmethod
    def gaussian(cls, mean: FloatArray, covariance: FloatArray) -> ItemPrior:
        """One kind: `mean` (d+1,), `covariance` (d+1, d+1)."""
        return cls(np.ones(1), mean[None], covariance[None], covariance)

    @property
    def kinds(self) -> int:
        """K."""
        return len(self.weight)

    def turned(self, turn: FloatArray) -> ItemPrior:
        """That of turn · φ, `turn` (d+1, d+1)."""
        return ItemPrior(self.weight, self.mean @ turn.T, turn @ self.covariance @ turn.T, turn @ self.common @ turn.T)

    def shares(self, item: FloatArray, covariance: FloatArray) -> FloatArray:
        """r, (N, K), of items with μ = `item` (N, d+1) and V = `covariance` (N, d+1, d+1); rows sum to 1."""
        if self.kinds == 1:
            return np.ones((len(item), 1))
        precision = np.linalg.inv(self.covariance)
        root = np.linalg.cholesky(precision)
        n_items, width = item.shape
        square = np.stack(
            [(((item - mean) @ own) ** 2).sum(axis=1) for mean, own in zip(self.mean, root, strict=True)], axis=1
        )
        square += covariance.reshape(n_items, width * width) @ precision.reshape(self.kinds, width * width).T
        halves = np.log(np.einsum("kii->ki", root)).sum(axis=1)  # of log |Ω⁻¹|
        logs = np.log(np.maximum(self.weight, _LEAST_WEIGHT)) + halves - 0.5 * square
        shares = np.exp(logs - logs.max(axis=1, keepdims=True))
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def pulls(self, item: FloatArray, covariance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Prior precision (n, d+1, d+1) and its linear term (n, d+1); n = 1 where all items have the same, else N."""
        precision = np.asarray(np.linalg.inv(self.covariance), dtype=np.float64)
        linear = np.asarray((precision @ self.mean[:, :, None])[:, :, 0], dtype=np.float64)
        if self.kinds == 1:
            return precision, linear
        shares = self.shares(item, covariance)
        return np.asarray(np.tensordot(shares, precision, axes=1)), np.asarray(shares @ linear)


def split(prior: ItemPrior, item: FloatArray, kinds: int, seed: int = 0) -> ItemPrior:
    """A first mixture of so many kinds for items at `item` (N, d+1), N ≥ kinds: the best of eight k-means (seeded), in
    units of the spread of `prior`; each kind begins a quarter as wide.
    """
    root = np.linalg.cholesky(np.linalg.inv(prior.common))
    whitened = (item - item.mean(axis=0)) @ root
    found: list[tuple[float, FloatArray]] = []
    for start in range(_STARTS):
        centres, label = kmeans2(whitened, kinds, seed=seed + start, minit="++", missing="warn")
        found.append((float(((whitened - centres[label]) ** 2).sum()), label))
    member = np.eye(kinds)[min(found, key=lambda one: one[0])[1]]
    count = member.sum(axis=0)
    mean = member.T @ item / np.maximum(count, 1.0)[:, None]
    narrow = prior.common / 4.0
    return ItemPrior(count / len(item), mean, np.tile(narrow, (kinds, 1, 1)), narrow)
