"""Items whose last parameter walks at random between periods: their Gaussian posterior in every period.

For one item with parameters φ_t in periods t = 1 … T,

    φ_1 ~ N(Ω⁻¹, Ω⁻¹a),      φ_t = φ_{t−1} + ε_t e,   ε_t ~ N(0, q_t),   e = (0, …, 0, 1)

and what period t says of it, Λ_t (precision) and l_t (linear term): factors exp(−½ φᵀΛφ + lᵀφ). Forward in
information form,

    P_1 = Ω⁻¹,      P_t = F_{t−1} − q_t F_{t−1} e eᵀ F_{t−1} / (1 + q_t eᵀ F_{t−1} e),      F_t = P_t + Λ_t

and backward with the gain J_t = F_t⁻¹ P_{t+1} (Rauch, Tung & Striebel 1965),

    m_t ← m_t + J_t (m_{t+1} − m_t),      V_t ← V_t + J_t (V_{t+1} − P_{t+1}⁻¹) J_tᵀ

(the prediction of φ_{t+1} is m_t, since ε has mean 0). Exact: T·N systems of D equations.
"""

from __future__ import annotations

import numpy as np

from harness.adaptive.arrays import FloatArray


def smoothed(
    precision: FloatArray, linear: FloatArray, prior: tuple[FloatArray, FloatArray], variance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Means (T, N, D) and covariances (T, N, D, D) from Λ `precision` (T, N, D, D), l `linear` (T, N, D), the `prior`
    as Ω⁻¹ (1 or N, D, D) and Ω⁻¹a (1 or N, D), and q `variance` (T − 1,).
    """
    n_periods = len(linear)
    means, covariances, predicted = np.empty_like(linear), np.empty_like(precision), np.empty_like(precision)
    known, weighted = prior
    for t in range(n_periods):
        predicted[t] = known
        filtered = predicted[t] + precision[t]
        covariances[t] = np.linalg.inv(filtered)
        means[t] = (covariances[t] @ (weighted + linear[t])[..., None])[..., 0]
        if t + 1 < n_periods:
            edge = filtered[:, :, -1]
            shrink = variance[t] / (1.0 + variance[t] * edge[:, -1])
            known = filtered - shrink[:, None, None] * edge[:, :, None] * edge[:, None, :]
            weighted = (known @ means[t][..., None])[..., 0]
    for t in range(n_periods - 2, -1, -1):
        gain = covariances[t] @ predicted[t + 1]
        ahead = covariances[t].copy()
        ahead[:, -1, -1] += variance[t]
        means[t] += (gain @ (means[t + 1] - means[t])[..., None])[..., 0]
        covariances[t] += gain @ (covariances[t + 1] - ahead) @ gain.transpose(0, 2, 1)
    # A covariance that is not symmetric to the last bit is less so after the next pass.
    return means, (covariances + covariances.transpose(0, 1, 3, 2)) / 2.0
