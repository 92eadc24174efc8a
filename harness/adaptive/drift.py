"""Two banks side by side: put on one scale, item by item what moved and by how many standard errors.

Linking. Abilities of two calibrations differ by an affine change of axes, θ_b = K (θ_a − c), under which b's items read
in a's axes

    α' = Kᵀ α,      β' = β + α'·c

K and c are found on the common calibrated items by weighted least squares of α_a on α' and of β_a − β on α'·c,
weights the inverse variances of the logit below, repeated without the items that then stand out (|z| > 3): an anchor
that drifts is no anchor. (Fitted in this direction an axis that b hardly has is given little weight; the inverse of
the other direction would blow it up.) Sources: Kolen & Brennan 2014, "Test equating, scaling, and linking", section
6.3, for one axis; Li & Lissitz 2000, Applied Psychological Measurement 24, for several. Where the banks have
different d, both are read along their general axis alone, at their average specific abilities.

Drift. With the covariances C of both items, the change at the ability θ̄ of a's prior mean is

    Δ = (α'·θ̄ − β') − (α_a·θ̄ − β_a),      z = Δ / √(x̄ᵀ (C_a + C_b') x̄),      x̄ = (θ̄, −1)

in logits of P(pass): Δ < 0, the item became harder for an average agent. The uncertainty of K and c is left out (many
items share it). Banks of overlapping histories are not independent, so their z are too small.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from harness.adaptive.arrays import BoolArray, FloatArray, normal_quantile, sigmoid
from harness.adaptive.bank import Bank
from harness.adaptive.errors import BankError

DRIFT_Z = 3.0
_ROUNDS = 5
_LEAST_VARIANCE = 1e-4
_UNKNOWN_VARIANCE = 0.1  # of a parameter of a bank without covariances


@dataclass(frozen=True)
class ItemDrift:
    """One common item: Δ in logits at the average ability and its z; P(pass) of the average agent in a and b; the
    change of the general loading and its z.
    """

    item: str
    shift: float
    z: float
    before: float
    after: float
    loading_shift: float
    loading_z: float


@dataclass(frozen=True, eq=False)
class _Side:
    """The common items of one bank: parameters (n, d+1) with β last, and their covariances (n, d+1, d+1)."""

    item: FloatArray
    covariance: FloatArray


@dataclass(frozen=True)
class BankComparison:
    """`items` by falling |z|; `drifted` those whose |z| is over the larger of 3 and the two-sided 5 % point divided
    among the items (Bonferroni). `scale` (d, d) and `offset` (d,) are K and c. `correlation` is that of the common
    items' logits at the average ability (NaN without spread), `rms_shift` in logits. `only_a`, `only_b`: items of one
    bank only.
    """

    common: int
    items: tuple[ItemDrift, ...]
    drifted: tuple[str, ...]
    scale: tuple[tuple[float, ...], ...]
    offset: tuple[float, ...]
    correlation: float
    rms_shift: float
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain, JSON-able values."""
        return {
            "common": self.common,
            "items": [asdict(item) for item in self.items],
            "drifted": list(self.drifted),
            "scale": [list(row) for row in self.scale],
            "offset": list(self.offset),
            "correlation": self.correlation,
            "rms_shift": self.rms_shift,
            "only_a": list(self.only_a),
            "only_b": list(self.only_b),
        }


def compare_banks(a: Bank, b: Bank) -> BankComparison:
    """What changed from `a` to `b`, by the equations of the module.

    Raises
    ------
    BankError
        If fewer than d + 2 items are calibrated in both banks.
    """
    common = [item for item in a.item_ids if item in b.index]
    rows_a, rows_b = a.positions(common), b.positions(common)
    kept = a.calibrated[rows_a] & b.calibrated[rows_b]
    names = [item for item, keep in zip(common, kept, strict=True) if keep]
    general = a.d != b.d
    before, after = _side(a, names, general), _side(b, names, general)
    d = before.item.shape[1] - 1
    if len(names) < d + 2:
        raise BankError(
            f"{len(names)} items are calibrated in both, {d + 2} are needed",
            place="compare_banks",
            remedy="Compare banks of one suite, or calibrate on more runs",
        )
    ability = a.prior_mean[:d]
    anchors = np.ones(len(names), dtype=np.bool_)
    for _ in range(_ROUNDS):
        scale, shift = _link(before, after, ability, anchors)
        linked = _moved(after, scale, shift)
        z = _shift(before, linked, ability)[1]
        steady = np.abs(z) <= DRIFT_Z
        if np.array_equal(steady, anchors) or steady.sum() < d + 2:
            break
        anchors = steady
    return _comparison(a, b, names, (before, linked), (scale, shift), ability)


def _side(bank: Bank, names: list[str], general: bool) -> _Side:
    chosen = bank.positions(names)
    d = bank.d
    item = np.column_stack([bank.alpha[chosen], bank.beta[chosen]])
    if bank.item_covariance is None:
        covariance = np.tile(_UNKNOWN_VARIANCE * np.eye(d + 1), (len(names), 1, 1))
    else:
        covariance = bank.item_covariance[chosen]
    if general and d > 1:
        keep = np.zeros((2, d + 1))
        keep[0, 0] = keep[1, d] = 1.0
        keep[1, 1:d] = -bank.prior_mean[1:]
        item, covariance = item @ keep.T, keep @ covariance @ keep.T
    return _Side(item, covariance)


def _link(before: _Side, after: _Side, ability: FloatArray, anchors: BoolArray) -> tuple[FloatArray, FloatArray]:
    """K (d, d) and c (d,)."""
    d = len(ability)
    x = np.append(ability, -1.0)
    variance = (before.covariance + after.covariance)[anchors] @ x @ x
    root = 1.0 / np.sqrt(np.maximum(variance, _LEAST_VARIANCE))
    loading = after.item[anchors, :d]
    scale = np.linalg.lstsq(loading * root[:, None], before.item[anchors, :d] * root[:, None], rcond=None)[0]
    gap = (before.item[anchors, d] - after.item[anchors, d]) * root
    shift = np.linalg.lstsq(loading @ scale * root[:, None], gap, rcond=None)[0]
    return np.asarray(scale), np.asarray(shift)


def _moved(side: _Side, scale: FloatArray, shift: FloatArray) -> _Side:
    """b's items in a's axes."""
    d = len(shift)
    turn = np.zeros((d + 1, d + 1))
    turn[:d, :d], turn[d, :d], turn[d, d] = scale.T, scale @ shift, 1.0
    return _Side(side.item @ turn.T, turn @ side.covariance @ turn.T)


def _shift(before: _Side, linked: _Side, ability: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Δ and z of each item, (n,) and (n,)."""
    x = np.append(ability, -1.0)
    variance = (before.covariance + linked.covariance) @ x @ x
    change = (linked.item - before.item) @ x
    return change, change / np.sqrt(np.maximum(variance, _LEAST_VARIANCE))


def _comparison(
    a: Bank,
    b: Bank,
    names: list[str],
    sides: tuple[_Side, _Side],
    link: tuple[FloatArray, FloatArray],
    ability: FloatArray,
) -> BankComparison:
    before, linked = sides
    x = np.append(ability, -1.0)
    change, z = _shift(before, linked, ability)
    p_before, p_after = sigmoid(before.item @ x), sigmoid(linked.item @ x)
    loading = linked.item[:, 0] - before.item[:, 0]
    loading_variance = before.covariance[:, 0, 0] + linked.covariance[:, 0, 0]
    loading_z = loading / np.sqrt(np.maximum(loading_variance, _LEAST_VARIANCE))
    items = tuple(
        ItemDrift(
            item=names[at],
            shift=float(change[at]),
            z=float(z[at]),
            before=float(p_before[at]),
            after=float(p_after[at]),
            loading_shift=float(loading[at]),
            loading_z=float(loading_z[at]),
        )
        for at in np.argsort(-np.abs(z), kind="stable")
    )
    bound = max(DRIFT_Z, float(normal_quantile(1.0 - 0.025 / len(names))))
    logits = before.item @ x, linked.item @ x
    varied = min(float(np.ptp(one)) for one in logits) > 0
    return BankComparison(
        common=len(names),
        items=items,
        drifted=tuple(item.item for item in items if abs(item.z) > bound),
        scale=tuple(tuple(float(value) for value in row) for row in link[0]),
        offset=tuple(float(value) for value in link[1]),
        correlation=float(np.corrcoef(*logits)[0, 1]) if varied else float("nan"),
        rms_shift=float(np.sqrt(np.mean(change**2))),
        only_a=tuple(item for item in a.item_ids if item not in b.index),
        only_b=tuple(item for item in b.item_ids if item not in a.index),
    )
