"""What is known of one agent in mid-run: an immutable value, replaced at each outcome.

An outcome (item i, y passes in n trials) updates by one Sherman–Morrison step, the predictor,

    Σ ← Σ − w Σα αᵀΣ / (1 + w αᵀΣα),      θ ← θ + Σα (y − np),      w = np(1−p),

and then by Newton steps to the exact MAP of all outcomes so far (`update`), O(k d² + d³) for k outcomes. So
θ̂ equals batch re-estimation to about 1e-10 whatever the order of arrival, and the same list of outcomes
rebuilds the same bits.

An item is in one of four places. *Open*: may be chosen. *Observed*: has its outcome. *Ungraded*: ran but has
no grade, so it gives no information, is never chosen again, and stays among the items whose pass rate is
estimated. *Unavailable*: the instrument is broken there; it leaves the estimated population as well. Items in
flight are the caller's to list (`AbilityState.planning`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from harness.adaptive.ability import Outcomes
from harness.adaptive.arrays import BoolArray, FloatArray, sigmoid
from harness.adaptive.bank import Bank
from harness.adaptive.errors import StateError
from harness.adaptive.evidence import Draw, Evidence
from harness.adaptive.update import Seen, updated


class Withdrawal(Enum):
    """Why an item leaves the pool without an outcome."""

    UNAVAILABLE = "unavailable"
    UNGRADED = "ungraded"


@dataclass(frozen=True)
class Spent:
    """What one attempt cost, in dollars, and how long it took, in seconds; None where not known, which is not 0.

    Raises StateError on a number that is negative or not finite.
    """

    cost_usd: float | None = None
    duration_s: float | None = None

    def __post_init__(self) -> None:
        for name in ("cost_usd", "duration_s"):
            amount = getattr(self, name)
            if amount is not None and not 0.0 <= amount < float("inf"):
                raise StateError(
                    f"{amount}", place=name, remedy="Give a finite number of at least 0, or None where it is not known"
                )

    def as_event(self) -> dict[str, float]:
        """The known amounts by name."""
        known = (("cost_usd", self.cost_usd), ("duration_s", self.duration_s))
        return {name: amount for name, amount in known if amount is not None}


NOT_KNOWN = Spent()


@dataclass(frozen=True, eq=False)
class AbilityState:
    """θ̂, its covariance, and where every item stands. Begin with `AbilityState.start(bank)`.

    `theta` (d,) is the MAP; `covariance` (d, d) the inverse of the information there, prior included. `items`,
    `passes`, `trials` and `draws` are in order of observation, and `seen` has the same for the update. `executed`,
    `open` and `counted` (N,) say where items stand. `withdrawn` maps positions to (kind, reason). `spent` has one
    entry per outcome and per withdrawal. No array is written to after construction.
    """

    bank: Bank
    theta: FloatArray
    covariance: FloatArray
    items: tuple[int, ...]
    passes: tuple[int, ...]
    trials: tuple[int, ...]
    draws: tuple[Draw | None, ...]
    withdrawn: dict[int, tuple[Withdrawal, str]]
    seen: Seen
    executed: BoolArray
    open: BoolArray
    counted: BoolArray
    spent: tuple[Spent, ...] = ()

    @classmethod
    def start(cls, bank: Bank) -> AbilityState:
        """Before any outcome: θ̂ is the prior mean, the covariance the prior's, every item open and counted."""
        everything, none = np.ones(len(bank), dtype=np.bool_), np.zeros(len(bank), dtype=np.bool_)
        seen = Seen.nothing(bank.d)
        return cls(bank, bank.prior_mean, bank.prior_covariance, (), (), (), (), {}, seen, none, everything, everything)

    @classmethod
    def rebuild(cls, bank: Bank, outcomes: Iterable[tuple[int, bool]]) -> AbilityState:
        """The state after these outcomes in this order, to the same bits as observing them one by one."""
        state = cls.start(bank)
        for item, passed in outcomes:
            state = state.observe(item, passed)
        return state

    def observe(
        self, item: int, passes: int, trials: int = 1, draw: Draw | None = None, spent: Spent = NOT_KNOWN
    ) -> AbilityState:
        """The state with one more item's outcome: `passes` in `trials` attempts at it. The same outcome told again
        changes nothing; `draw` says how the item came to be chosen, `spent` what all its attempts took.

        Raises
        ------
        StateError
            If the item has another outcome already, was withdrawn and not reinstated, or the counts are not
            0 ≤ passes ≤ trials with at least one trial.
        """
        passes, trials = int(passes), int(trials)
        if not 0 <= passes <= trials or trials < 1:
            raise StateError(
                f"{passes} passes in {trials} trials", place=self._name(item), remedy="Give 0 ≤ passes ≤ trials ≥ 1"
            )
        if 0 <= item < len(self.executed) and self.executed[item]:
            at = self.items.index(item)
            if (self.passes[at], self.trials[at]) == (passes, trials):
                return self
        self._require_open(item)
        bank, seen = self.bank, self.seen.with_outcome(self.bank.alpha[item], self.bank.beta[item], passes, trials)
        theta, covariance = updated(self.theta, self.covariance, seen, bank)
        executed, still_open = self.executed.copy(), self.open.copy()
        executed[item], still_open[item] = True, False
        return AbilityState(
            bank=bank,
            theta=theta,
            covariance=covariance,
            items=(*self.items, item),
            passes=(*self.passes, passes),
            trials=(*self.trials, trials),
            draws=(*self.draws, draw),
            withdrawn=self.withdrawn,
            seen=seen,
            executed=executed,
            open=still_open,
            counted=self.counted,
            spent=(*self.spent, spent),
        )

    def withdraw(self, item: int, kind: Withdrawal, reason: str, spent: Spent = NOT_KNOWN) -> AbilityState:
        """The state without this item in the pool; θ̂ and information are as before. Raises StateError as
        `observe` does.
        """
        self._require_open(item)
        still_open, still_counted = self.open.copy(), self.counted
        still_open[item] = False
        if kind is Withdrawal.UNAVAILABLE:
            still_counted = self.counted.copy()
            still_counted[item] = False
        withdrawn = {**self.withdrawn, item: (kind, reason)}
        paid = (*self.spent, spent)
        return replace(self, withdrawn=withdrawn, open=still_open, counted=still_counted, spent=paid)

    def reinstate(self, item: int) -> AbilityState:
        """The state with a withdrawn item open and counted again; raises StateError if it was not withdrawn."""
        if item not in self.withdrawn:
            raise StateError("was not withdrawn", place=self._name(item), remedy="Reinstate withdrawn items only")
        now_open, now_counted = self.open.copy(), self.counted.copy()
        now_open[item] = now_counted[item] = True
        withdrawn = {at: why for at, why in self.withdrawn.items() if at != item}
        return replace(self, withdrawn=withdrawn, open=now_open, counted=now_counted)

    def planning(self, pending: Sequence[int]) -> FloatArray:
        """The covariance (d, d) with the expected information of items in flight, the same in any order of them.

        (Σ⁻¹ + Σ_j w_j α_j α_jᵀ)⁻¹ at the present θ̂: an outcome not yet known moves information, not θ̂.
        """
        if not pending:
            return self.covariance
        at = sorted(pending)
        alpha = self.bank.alpha[at]
        p = sigmoid(alpha.dot(self.theta) - self.bank.beta[at])
        planned = np.linalg.inv(np.linalg.inv(self.covariance) + (alpha.T * (p * (1.0 - p))).dot(alpha))
        return np.asarray((planned + planned.T) * 0.5)

    @property
    def unexecuted(self) -> BoolArray:
        """(N,) items of the estimated population that have no outcome: open ones and ungraded ones."""
        return self.counted & ~self.executed

    @property
    def n_population(self) -> int:
        """Number of items whose pass rate is estimated: all but the unavailable."""
        return int(self.counted.sum())

    @property
    def outcomes(self) -> Outcomes:
        """The outcomes with the parameters of their items, in order of observation."""
        return self.seen.outcomes(self.bank)

    @property
    def evidence(self) -> Evidence:
        """What the estimators read."""
        unknown = Draw(float("nan"), 0, False)
        draws = [draw or unknown for draw in self.draws]
        return Evidence(
            bank=self.bank,
            theta=self.theta,
            covariance=self.covariance,
            items=np.array(self.items, dtype=np.int64),
            passes=np.array(self.passes, dtype=np.float64),
            trials=np.array(self.trials, dtype=np.float64),
            probability=np.array([draw.probability for draw in draws], dtype=np.float64),
            pool=np.array([draw.pool for draw in draws], dtype=np.int64),
            random=np.array([draw.random for draw in draws], dtype=np.bool_),
            rest=self.unexecuted,
            counted=self.counted,
        )

    @property
    def log_posterior(self) -> float:
        """ℓ(θ̂) of `ability`: finite for any number of outcomes (CASES S10)."""
        return float(self.outcomes.log_posterior(self.theta))

    def _require_open(self, item: int) -> None:
        if not 0 <= item < len(self.bank):
            raise StateError(
                f"the bank has {len(self.bank)} items", place=f"item {item}", remedy="Give a position within it"
            )
        if item in self.withdrawn:
            kind, reason = self.withdrawn[item]
            raise StateError(
                f"was withdrawn as {kind.value} ({reason or 'no reason given'})",
                place=self._name(item),
                remedy="Reinstate it first if that no longer holds",
            )
        if not self.open[item]:
            raise StateError(
                "already has another outcome",
                place=self._name(item),
                remedy="Give all trials of an item in one observation",
            )

    def _name(self, item: int) -> str:
        return f"item {self.bank.item_ids[item]!r}" if 0 <= item < len(self.bank) else f"item {item}"


def downdate(covariance: FloatArray, loading: FloatArray, weight: FloatArray | float) -> FloatArray:
    """(Σ⁻¹ + w α αᵀ)⁻¹ by Sherman–Morrison: Σ − w Σα αᵀΣ / (1 + w αᵀΣα), (..., d, d), O(d²); `loading` (..., d),
    `weight` (...,) ≥ 0.
    """
    column = (covariance @ loading[..., None])[..., 0]
    gain = np.asarray(weight / (1.0 + weight * (loading * column).sum(axis=-1)))
    return np.asarray(covariance - column[..., :, None] * column[..., None, :] * gain[..., None, None])
