"""From a policy's numbers to one choice: the pool, the ties, the record.

Rules, in this order:
1. candidates are the open items that are not in flight; calibrated ones as long as there are any, and only
   then those whose parameters are prior-only, because their information is a guess (CASES S06);
2. the largest value wins; values within a relative 1e-12 of it tie (rounding differs between a row of a
   matrix product and another);
3. among the tied the largest seeded key wins, then the lowest position.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from harness.adaptive.arrays import FloatArray, IntArray, KeyArray
from harness.adaptive.errors import EngineError
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

    `value` is the policy's criterion; `candidates` the best few, best first, the chosen one at the head.
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

    def as_event(self) -> dict[str, Any]:
        """Plain, JSON-able values; floats survive JSON to the bit."""
        plain = asdict(self)
        plain["candidates"] = list(plain["candidates"])
        plain["theta"], plain["pending"] = list(self.theta), list(self.pending)
        return plain


def pool_of(state: AbilityState, pending: Sequence[int]) -> IntArray:
    """Positions that may be chosen now by rule 1, rising; empty if there are none."""
    mask = state.open.copy()
    mask[list(pending)] = False
    informed = mask & state.bank.calibrated
    return np.flatnonzero(informed if informed.any() else mask).astype(np.int64)


def select(
    policy: Policy, state: AbilityState, pending: Sequence[int], keys: KeyArray, seed: int, top: int = 5
) -> Choice:
    """The policy's choice from a pool that is not empty; `keys` (N,) settle ties.

    Raises
    ------
    EngineError
        If the pool is empty, or the policy gives a wrong number of values or one that is not finite.
    """
    pool = pool_of(state, pending)
    if not len(pool):
        raise EngineError("nothing to choose from", place="pool", remedy="Ask for a stop reason first")
    in_flight = tuple(sorted(pending))
    covariance = state.planning(in_flight)
    view = View(state, pool, in_flight, covariance, state.bank.probability(state.theta), keys)
    values = policy.values(view)
    if values.shape != pool.shape or not np.isfinite(values).all():
        raise EngineError(
            f"{values.size} values, {int(np.isfinite(values).sum())} finite, for {len(pool)} candidates",
            place=f"policy {policy.name!r}",
            remedy="A policy returns one finite number per candidate",
        )
    ranking = _ranked(values, keys[pool], top)
    names = state.bank.item_ids
    best = tuple(Candidate(names[pool[at]], int(pool[at]), float(values[at])) for at in ranking)
    return Choice(
        item=best[0].item,
        index=best[0].index,
        value=best[0].value,
        candidates=best,
        theta=tuple(state.theta.tolist()),
        logdet_information=-float(np.linalg.slogdet(covariance)[1]),
        policy=policy.name,
        seed=seed,
        executed=len(state.items),
        pending=tuple(names[item] for item in in_flight),
        pool=len(pool),
    )


def _ranked(values: FloatArray, keys: KeyArray, top: int) -> list[int]:
    """Indices of the `top` largest values, best first, the head settled by rules 2 and 3."""
    largest = values.max()
    tied = np.flatnonzero(values >= largest - TIE * abs(largest))
    head = int(tied[np.argmax(keys[tied])])
    count = min(top, len(values))
    best = np.argpartition(-values, count)[: count + 1] if len(values) > count + 1 else np.arange(len(values))
    rest = sorted((int(at) for at in best if at != head), key=lambda at: (-values[at], at))
    return [head, *rest[: count - 1]]
