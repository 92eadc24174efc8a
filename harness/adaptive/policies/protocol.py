"""What a selection policy is: a number for every item, the largest of the pool chosen.

A policy never draws, breaks ties, or looks at the pool's rules; `selection` does. So one is a pure function of what
it is shown and fits a page. Everything it is shown may have leading axes, one entry per agent: the same few lines
choose for one agent in a live run and for hundreds at once in a study. Randomness comes from `View.keys`, numbers
that belong to the items (`harness.adaptive.keys`), and from `random_share`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from harness.adaptive.arrays import BoolArray, FloatArray, IntArray, KeyArray
from harness.adaptive.bank import Bank


@dataclass(frozen=True, eq=False)
class View:
    """All that a policy may know; `...` is nothing for one agent, (A,) for A agents.

    `theta` (..., d): θ̂. `covariance` (..., d, d): its covariance with the expected information of the items in flight
    added. `probability` (..., N): P(pass) of every item at θ̂. `pool` (..., N): items that may be chosen. `rest`
    (..., N): items of the estimated population with no outcome and not in flight. `chosen` (...,): number of items
    chosen so far, in flight ones included. `taken` (..., N): which those are. `keys` (N,): a seeded number per item.
    """

    bank: Bank
    theta: FloatArray
    covariance: FloatArray
    probability: FloatArray
    pool: BoolArray
    rest: BoolArray
    taken: BoolArray
    chosen: IntArray
    keys: KeyArray


class Policy(Protocol):
    """`name` goes into the record of every choice; `values` gives (..., N) numbers, more is better, finite over the
    pool and ignored outside it.

    `random_share` in [0, 1] is the probability that a step ignores the values and draws from the pool with equal
    probability, which is what lets the design-based estimators correct a wrong model.
    """

    @property
    def name(self) -> str: ...

    @property
    def random_share(self) -> float: ...

    def values(self, view: View) -> FloatArray: ...


def share_over(base: Policy) -> float:
    """The random share of a policy that reorders or restricts `base`: the base's own, but none where the base is all
    draws, since a draw takes no notice of values. Its order is still random then: equal values go by seeded keys.
    """
    return 0.0 if base.random_share >= 1.0 else base.random_share
