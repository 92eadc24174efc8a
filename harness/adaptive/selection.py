"""From a policy's numbers to one choice: the pool, the draw, the ties, the record.

Rules, in this order:
1. with probability `policy.random_share`, settled by the seed and the number of the step, the step is a draw: every
   open item not in flight has the same chance, and the one with the largest seeded key is it;
2. otherwise candidates are the open items not in flight; calibrated ones as long as there are any, and only then
   those whose parameters are prior-only, because their information is a guess (CASES S06);
3. the largest value wins; values within a relative 1e-12 of it tie (rounding differs between a row of a
   matrix product and another);
4. among the tied the largest seeded key wins, then the lowest position.

Given everything before the step, an item's probability of being chosen is ε/M + (1−ε)·[it is the policy's choice], for
M items open and a random share ε. It goes into the record, since the design-based estimators live on it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from harness.adaptive.arrays import BoolArray, FloatArray, IntArray, KeyArray
from harness.adaptive.errors import EngineError
from harness.adaptive.evidence import Draw
from harness.adaptive.keys import mix, seeded_keys, uniforms
from harness.adaptive.policies.protocol import Policy, View
from harness.adaptive.state import AbilityState

TIE = 1e-12


@dataclass(frozen=True)
class Candidate:
    """One item the policy looked at."""

    item: str
    index: int
    value: float


@dataclass(frozen=True)
class Choice:
    """The next item and why.

    `value` is the policy's criterion; `candidates` the best few by it, best first, the chosen one at the head unless
    it was drawn. `draw` says with which probability it was chosen, and whether it was drawn.
    `theta` (d,) is the estimate at the time, `logdet_information` log det of the information with the items
    in flight, in nats. `executed` outcomes were known and `pending` items were in flight, `pool` candidates
    were compared.
    """

    item: str
    index: int
    value: float
    candidates: tuple[Candidate, ...]
    theta: tuple[float, ...]
    logdet_information: float
    policy: str
    seed: int
    executed: int
    pending: tuple[str, ...]
    pool: int
    draw: Draw

    def as_event(self) -> dict[str, Any]:
        """Plain, JSON-able values; floats survive JSON to the bit."""
        plain = asdict(self)
        plain["candidates"] = list(plain["candidates"])
        plain["theta"], plain["pending"] = list(self.theta), list(self.pending)
        return plain


def drawable(state: AbilityState, pending: Sequence[int]) -> BoolArray:
    """(N,) items that are open and not in flight."""
    mask = state.open.copy()
    if pending:
        mask[list(pending)] = False
    return mask


def preferred(mask: BoolArray, calibrated: BoolArray) -> BoolArray:
    """The calibrated ones of `mask` (..., N) as long as there are any (rule 2)."""
    informed = mask & calibrated
    if mask.ndim == 1:
        return informed if informed.any() else mask
    return np.where(informed.any(axis=-1, keepdims=True), informed, mask)


@dataclass(frozen=True, eq=False)
class Lot:
    """The numbers of one seed: `ties` (N,) settle equal values, `order` (N,) draws, `salt` the coin of each step."""

    seed: int
    ties: KeyArray
    order: KeyArray
    salt: KeyArray

    @classmethod
    def of(cls, seed: int, item_ids: Sequence[str]) -> Lot:
        """The numbers of these items."""
        return cls(
            seed,
            seeded_keys(seed, "choice", item_ids),
            seeded_keys(seed, "draw", item_ids),
            seeded_keys(seed, "coin", [""]),
        )

    def is_draw(self, steps: IntArray, share: float) -> BoolArray:
        """Whether these steps, (...,), are draws: each with probability `share`, independently."""
        coins = uniforms(mix(self.salt, np.atleast_1d(steps).astype(np.uint64)))
        return np.asarray(coins < share).reshape(np.shape(steps))


def view_of(state: AbilityState, pending: Sequence[int], keys: KeyArray) -> View:
    """What a policy sees of one agent."""
    taken = state.executed.copy()
    if pending:
        taken[list(pending)] = True
    covariance = state.planning(pending)
    return View(
        bank=state.bank,
        theta=state.theta,
        covariance=covariance,
        preposterior=state.covariance - covariance if pending else None,
        probability=state.bank.probability(state.theta),
        pool=preferred(drawable(state, pending), state.bank.calibrated),
        rest=state.counted & ~taken,
        taken=taken,
        chosen=np.asarray(len(state.items) + len(pending), dtype=np.int64),
        keys=keys,
    )


@dataclass(frozen=True, eq=False)
class Picked:
    """What rules 1 to 4 give, each (...,): the `item`, the policy's own `best`, the `probability` with which the item
    was chosen given all before, and the number of items that were `open`. Without an open item the item means nothing.
    """

    item: IntArray
    best: IntArray
    probability: FloatArray
    open: IntArray


@dataclass(frozen=True, eq=False)
class Offer:
    """What is chosen from, `...` as in `View`: `values` and the `pool` they hold for, all that is `open` to a draw, and
    the seeded keys `ties` and `order`, all (..., N).
    """

    values: FloatArray
    pool: BoolArray
    open: BoolArray
    ties: KeyArray
    order: KeyArray


def pick(offer: Offer, is_draw: BoolArray, share: float) -> Picked:
    """One item for each agent; `is_draw` (...,) says whose step is a draw, `share` the policy's random share."""
    values = np.where(offer.pool, offer.values, -np.inf)
    largest = values.max(axis=-1, keepdims=True)
    tied = offer.pool & (values >= largest - TIE * np.abs(largest))
    best = np.where(tied, offer.ties, 0).argmax(axis=-1)
    item = best
    if is_draw.any():
        item = np.where(is_draw, np.where(offer.open, offer.order, 0).argmax(axis=-1), best)
    count = np.maximum(offer.open.sum(axis=-1), 1)
    probability = share / count + (1.0 - share) * (item == best)
    return Picked(np.asarray(item), np.asarray(best), np.asarray(probability), np.asarray(count))


def select(policy: Policy, state: AbilityState, pending: Sequence[int], lot: Lot, top: int = 5) -> Choice:
    """The choice from a pool that is not empty.

    Raises
    ------
    EngineError
        If the pool is empty, or the policy gives values of a wrong shape or one in the pool that is not finite.
    """
    drawn = drawable(state, pending)
    if not drawn.any():
        raise EngineError("nothing to choose from", place="pool", remedy="Ask for a stop reason first")
    in_flight = tuple(sorted(pending))
    view = view_of(state, in_flight, lot.ties)
    values = policy.values(view)
    if values.shape != view.pool.shape or not _finite(values, view.pool):
        raise EngineError(
            f"shape {values.shape}, {int(np.isfinite(values).sum())} finite, for {len(drawn)} items",
            place=f"policy {policy.name!r}",
            remedy="A policy returns one finite number per item of the pool",
        )
    share = policy.random_share
    step = len(state.items) + len(state.withdrawn) + len(in_flight)
    is_draw = share > 0.0 and bool(lot.is_draw(np.asarray(step, dtype=np.int64), share))
    picked = pick(Offer(values, view.pool, drawn, lot.ties, lot.order), np.asarray(is_draw), share)
    names, index, pool = state.bank.item_ids, int(picked.item), int(np.count_nonzero(view.pool))
    ranking = _ranked(np.where(view.pool, values, -np.inf), int(picked.best), min(top, pool))
    value = float(values[index])
    return Choice(
        item=names[index],
        index=index,
        value=value if math.isfinite(value) else 0.0,
        candidates=tuple(Candidate(names[at], at, float(values[at])) for at in ranking),
        theta=tuple(state.theta.tolist()),
        logdet_information=-float(np.linalg.slogdet(view.covariance)[1]),
        policy=policy.name,
        seed=lot.seed,
        executed=len(state.items),
        pending=tuple(names[item] for item in in_flight),
        pool=pool,
        draw=Draw(float(picked.probability), int(picked.open), is_draw),
    )


def _finite(values: FloatArray, pool: BoolArray) -> bool:
    """Whether all `values` of the `pool` are, (N,) both; finite extremes settle it, as NaN is either's."""
    extremes = values[values.argmin()], values[values.argmax()]
    return all(map(math.isfinite, extremes)) or bool(np.isfinite(values[pool]).all())


def _ranked(left: FloatArray, head: int, count: int) -> list[int]:
    """Positions of the `count` largest of `left` (N,), best first, of equal ones the lowest, but the `head` before all.
    Takes them out of `left`.
    """
    found = [head]
    while len(found) < count:
        left[found[-1]] = -np.inf
        found.append(int(left.argmax()))
    return found
