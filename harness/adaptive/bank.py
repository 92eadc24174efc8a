"""A bank: calibrated item parameters with their provenance.

    P(pass of item i | θ) = σ(α_i·θ − β_i),        θ ~ N(prior_mean, prior_covariance)

α_i are discriminations, β_i a difficulty: a larger β is a harder item. Axis 1 is the general ability, with α₁ > 0 on
average (for every item if the fit was "map"); see `orientation` for how the axes are fixed.
Source: She & Lin 2026 (arXiv:2609.21267), equation 10.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from harness.adaptive.arrays import BoolArray, FloatArray, IntArray, frozen, frozen_mask, sigmoid
from harness.adaptive.errors import BankError
from harness.adaptive.fit_report import FitReport
from harness.adaptive.plan import Backtest
from harness.adaptive.provenance import Convergence, Provenance

UNKNOWN_ITEM = "unknown to the bank"
PRIOR_ONLY_SPREAD = 1.5
_WEIGHT_SLACK = 1e-9


@dataclass(frozen=True, eq=False)
class Bank:
    """N items with d abilities.

    Parameters
    ----------
    item_ids : N distinct ids.
    alpha : (N, d) discriminations, finite.
    beta : (N,) difficulties, finite.
    prior_mean, prior_covariance : (d,) and (d, d), the ability of an agent not yet seen; the covariance
        positive definite.
    provenance : where all this comes from.
    calibrated : (N,) bool; False where the parameters are prior-only (the item is in `provenance.held_out`).
        Such items are chosen last: their "information" is a guess.
    item_covariance : (N, d+1, d+1) posterior covariance of (α_i, β_i), or None if not known.
    past_covariance : (d, d), how the abilities of past agents scatter, positive definite; None: as the prior does.
    alternatives : other models of the same items, each with its weight; the weights add up to at most 1 and the rest
        is this model's own (`weight`). Predictions averaged over all with these weights are the best known on
        held-out outcomes; whoever ignores them has the simplest model that is about as good.
    cost_usd, duration_s : (N,) what an attempt at each item took on average in the history, NaN where not known; None
        where nothing is.
    backtest : which way of testing did best on past agents, and how far to trust its intervals, or None.
    report : how well the calibration fits its history, or None; restricting or extending the bank leaves it as it is.

    Raises
    ------
    BankError
        On shapes that disagree, duplicate ids, numbers that are not finite, or a prior covariance that is not
        positive definite; or alternatives of other items, nested, or with weights that are none.
    """

    item_ids: tuple[str, ...]
    alpha: FloatArray
    beta: FloatArray
    prior_mean: FloatArray
    prior_covariance: FloatArray
    provenance: Provenance
    calibrated: BoolArray
    item_covariance: FloatArray | None = None
    past_covariance: FloatArray | None = None
    alternatives: tuple[Alternative, ...] = ()
    cost_usd: FloatArray | None = None
    duration_s: FloatArray | None = None
    report: FitReport | None = None
    backtest: Backtest | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "item_ids", tuple(self.item_ids))
        object.__setattr__(self, "alternatives", tuple(self.alternatives))
        self._freeze_parameters()
        self._freeze_amounts()
        self._check_alternatives()

    def _freeze_parameters(self) -> None:
        alpha = np.asarray(self.alpha)
        if alpha.ndim != 2:
            raise BankError(f"shape {alpha.shape}", place="alpha", remedy="Give one row of d loadings per item")
        n, d = len(self.item_ids), alpha.shape[1]
        shapes: dict[str, tuple[int, ...]] = {
            "alpha": (n, d),
            "beta": (n,),
            "prior_mean": (d,),
            "prior_covariance": (d, d),
            "calibrated": (n,),
        }
        if self.item_covariance is not None:
            shapes["item_covariance"] = (n, d + 1, d + 1)
        if self.past_covariance is not None:
            shapes["past_covariance"] = (d, d)
        for name, shape in shapes.items():
            value = frozen_mask(self.calibrated) if name == "calibrated" else frozen(getattr(self, name))
            if value.shape != shape:
                raise BankError(
                    f"shape {value.shape}, expected {shape}",
                    place=name,
                    remedy="Make all arrays agree on N and d",
                )
            if not np.isfinite(value).all():
                raise BankError("not finite", place=name, remedy="Calibrate again; a bank holds no NaN or infinity")
            object.__setattr__(self, name, value)
        if n == 0 or d == 0 or len(set(self.item_ids)) != n:
            raise BankError(
                f"{n} items, {len(set(self.item_ids))} distinct, d = {d}",
                place="item_ids",
                remedy="Give at least one item, each with an id of its own, and d ≥ 1",
            )
        for name in ("prior_covariance", "past_covariance"):
            spread = getattr(self, name)
            if spread is not None and np.linalg.eigvalsh(spread)[0] <= 0:
                raise BankError("not positive definite", place=name, remedy="Give a proper covariance of θ")

    def _freeze_amounts(self) -> None:
        for name, amounts in self._amounts():
            object.__setattr__(self, name, frozen(amounts))
            if np.shape(amounts) != (len(self.item_ids),) or (np.asarray(amounts) < 0).any() or np.isinf(amounts).any():
                raise BankError(
                    f"shape {np.shape(amounts)}, or an amount that is none",
                    place=name,
                    remedy="Give one number of at least 0 per item, NaN where it is not known",
                )

    def _check_alternatives(self) -> None:
        for other in self.alternatives:
            if other.bank.item_ids != self.item_ids or other.bank.alternatives:
                raise BankError(
                    "of other items, or nested", place="alternatives", remedy="Give models of the same items"
                )
        if any(not other.weight > 0 for other in self.alternatives) or self.weight < -_WEIGHT_SLACK:
            raise BankError(
                f"weights {[other.weight for other in self.alternatives]}",
                place="alternatives",
                remedy="Give weights above 0 that add up to at most 1",
            )

    @property
    def weight(self) -> float:
        """This model's own share in an average with its alternatives: 1 less theirs."""
        return 1.0 - sum(other.weight for other in self.alternatives)

    @property
    def d(self) -> int:
        """Number of abilities."""
        return int(self.alpha.shape[1])

    def __len__(self) -> int:
        return len(self.item_ids)

    @cached_property
    def index(self) -> dict[str, int]:
        """Item id → position."""
        return {item: position for position, item in enumerate(self.item_ids)}

    @cached_property
    def prior_precision(self) -> FloatArray:
        """Inverse of `prior_covariance`, (d, d)."""
        inverse = np.linalg.inv(self.prior_covariance)
        return np.asarray((inverse + inverse.T) / 2)

    def past_distance(self, theta: FloatArray, covariance: FloatArray | float = 0.0) -> float:
        """How far θ (d,), known up to a `covariance` C (d, d), is from the mean of past agents, in standard deviations
        of such estimates: the Mahalanobis distance √((θ − m)ᵀ (Σ + C)⁻¹ (θ − m)), Σ the `past_covariance`.
        """
        spread = self.prior_covariance if self.past_covariance is None else self.past_covariance
        off = np.asarray(theta) - self.prior_mean
        return float(np.sqrt(off @ np.linalg.solve(spread + covariance, off)))

    @cached_property
    def axes(self) -> FloatArray:
        """α axis by axis, (d, N): what is done to all items reads it in order."""
        return np.ascontiguousarray(self.alpha.T)

    @cached_property
    def _products(self) -> tuple[IntArray, IntArray, FloatArray]:
        """The pairs of axes a ≤ b, and α_a α_b of each pair, (d(d+1)/2, N), doubled where they differ."""
        left, right = np.triu_indices(self.d)
        return left, right, self.axes[left] * self.axes[right] * np.where(left == right, 1.0, 2.0)[:, None]

    @cached_property
    def digest(self) -> str:
        """sha256 over ids, every array bit for bit, and the provenance: equal banks, equal digests."""
        digest = hashlib.sha256(json.dumps([list(self.item_ids), self.provenance.as_dict()], sort_keys=True).encode())
        arrays = [self.alpha, self.beta, self.prior_mean, self.prior_covariance]
        if self.item_covariance is not None:
            arrays.append(self.item_covariance)
        if self.past_covariance is not None:
            arrays.append(self.past_covariance)
        for array in arrays:
            digest.update(repr(array.shape).encode() + array.astype("<f8").tobytes())
        digest.update(self.calibrated.tobytes())
        for name, amounts in self._amounts():
            digest.update(name.encode() + amounts.astype("<f8").tobytes())
        for other in self.alternatives:
            digest.update(f"{other.weight!r} {other.bank.digest}".encode())
        if self.report is not None:
            digest.update(json.dumps(self.report.as_dict(), sort_keys=True).encode())
        if self.backtest is not None:
            digest.update(json.dumps(self.backtest.as_dict(), sort_keys=True).encode())
        return digest.hexdigest()

    def probability(self, theta: FloatArray) -> FloatArray:
        """σ(α·θ − β): θ (d,) gives (N,), θ (A, d) gives (A, N)."""
        return sigmoid(np.asarray(theta) @ self.axes - self.beta)

    def logit_variance(self, covariance: FloatArray) -> FloatArray:
        """αᵀCα of each item, the variance of its logit under a symmetric C: (..., d, d) gives (..., N)."""
        left, right, products = self._products
        return np.asarray(covariance[..., left, right] @ products)

    def positions(self, items: Sequence[str]) -> IntArray:
        """Positions of these ids, (len(items),); raises BankError naming the first that is not here."""
        try:
            return np.array([self.index[item] for item in items], dtype=np.int64)
        except KeyError as missing:
            raise BankError(
                "not in the bank",
                place=f"item {missing.args[0]!r}",
                remedy="Align the bank with the suite first",
            ) from None

    def restrict(self, items: Sequence[str]) -> Bank:
        """The bank of these items alone, in this order; raises BankError if one is unknown or named twice."""
        chosen = self.positions(items)
        kept = set(items)
        covariance = None if self.item_covariance is None else self.item_covariance[chosen]
        provenance = replace(
            self.provenance,
            held_out={item: why for item, why in self.provenance.held_out.items() if item in kept},
            flagged={item: why for item, why in self.provenance.flagged.items() if item in kept},
        )
        return replace(
            self,
            item_ids=tuple(items),
            alpha=self.alpha[chosen],
            beta=self.beta[chosen],
            calibrated=self.calibrated[chosen],
            item_covariance=covariance,
            provenance=provenance,
            alternatives=self._alternatives(lambda bank: bank.restrict(items)),
            **self._changed_amounts(lambda amounts: amounts[chosen]),
        )

    def extend(self, items: Sequence[str]) -> Bank:
        """The bank with these unknown items appended, prior-only and flagged so.

        A new item gets the mean difficulty and loadings of the calibrated items (of all items if none is),
        and, where items carry a covariance, the spread of the calibrated items as its own. Raises BankError
        if one is in the bank already.
        """
        if not items:
            return self
        known = [item for item in items if item in self.index]
        if known:
            raise BankError("already in the bank", place=f"item {known[0]!r}", remedy="Extend by unknown items only")
        base = self.calibrated if self.calibrated.any() else np.ones(len(self), dtype=np.bool_)
        parameters = np.column_stack([self.alpha, self.beta])[base]
        typical = np.tile(parameters.mean(axis=0), (len(items), 1))
        covariance = None
        if self.item_covariance is not None:
            own = self.item_covariance[base].mean(axis=0)
            if len(parameters) > 1:
                own = own + np.cov(parameters, rowvar=False)
            covariance = np.concatenate([self.item_covariance, np.tile(own, (len(items), 1, 1))])
        held_out = {**self.provenance.held_out, **dict.fromkeys(items, UNKNOWN_ITEM)}
        return replace(
            self,
            item_ids=(*self.item_ids, *items),
            alpha=np.concatenate([self.alpha, typical[:, :-1]]),
            beta=np.concatenate([self.beta, typical[:, -1]]),
            calibrated=np.concatenate([self.calibrated, np.zeros(len(items), dtype=np.bool_)]),
            item_covariance=covariance,
            provenance=replace(self.provenance, held_out=held_out),
            alternatives=self._alternatives(lambda bank: bank.extend(items)),
            **self._changed_amounts(lambda amounts: np.append(amounts, np.full(len(items), np.nan))),
        )

    def _amounts(self) -> list[tuple[str, FloatArray]]:
        """What is known of costs and durations, by field."""
        known = (("cost_usd", self.cost_usd), ("duration_s", self.duration_s))
        return [(name, amounts) for name, amounts in known if amounts is not None]

    def _changed_amounts(self, change: Callable[[FloatArray], FloatArray]) -> dict[str, Any]:
        return {name: change(amounts) for name, amounts in self._amounts()}

    def _alternatives(self, change: Callable[[Bank], Bank]) -> tuple[Alternative, ...]:
        return tuple(Alternative(other.weight, change(other.bank)) for other in self.alternatives)

    def align(self, items: Sequence[str]) -> Bank:
        """The bank of exactly a suite's items in the suite's order: the known restricted, the unknown added
        by `extend`.
        """
        return self.extend([item for item in items if item not in self.index]).restrict(items)


@dataclass(frozen=True, eq=False)
class Alternative:
    """Another model of a bank's items, and its share in an average (`Bank.alternatives`)."""

    weight: float
    bank: Bank


def prior_bank(item_ids: Sequence[str], seed: int = 0, reason: str = "no history") -> Bank:
    """A bank that knows nothing: d = 1, α = 1, β = 0, θ ~ N(0, 1.5²), every item prior-only for `reason`.

    With it every item ties, so choice is a simple random sample by seed and the estimate a mildly shrunken
    sample mean.
    """
    n = len(item_ids)
    variance = PRIOR_ONLY_SPREAD**2
    provenance = Provenance(
        method="prior",
        d=1,
        seed=seed,
        n_runs=0,
        convergence=Convergence(True, 0, 0.0, 0.0),
        held_out=dict.fromkeys(item_ids, reason),
        notes=(f"{reason}: every item parameter is its prior; choice is a random sample",),
    )
    return Bank(
        item_ids=tuple(item_ids),
        alpha=np.ones((n, 1)),
        beta=np.zeros(n),
        prior_mean=np.zeros(1),
        prior_covariance=np.full((1, 1), variance),
        provenance=provenance,
        calibrated=np.zeros(n, dtype=np.bool_),
    )
