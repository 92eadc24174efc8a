"""What a selection policy is: a number for every item, the largest of the pool chosen.

A policy never draws, breaks ties, or looks at the pool's rules; `selection` does. So one is a pure function of what
it is shown and fits a page. Everything it is shown may have leading axes, one entry per agent: the same few lines
choose for one agent in a live run and for hundreds at once in a study. Randomness comes from `View.keys`, numbers
that belong to the items (`harness.adaptive.keys`), and from `random_share`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from harness.adaptive.arrays import BoolArray, FloatArray, IntArray, KeyArray, sigmoid
from harness.adaptive.bank import Bank


@dataclass(frozen=True, eq=False)
class View:
    """All that a policy may know; `...` is nothing for one agent, (A,) for A agents.

    `theta` (..., d): θ̂. `covariance` (..., d, d): its covariance with the expected information of the items in flight
    added. `preposterior` (..., d, d): the covariance of how θ̂ will move by their outcomes, which is what these are
    expected to take off its own; None if none is in flight. `probability` (..., N): P(pass) of every item at θ̂. `pool`
    (..., N): items that may be chosen. `rest` (..., N): items of the estimated population with no outcome and not in
    flight. `chosen` (...,): number of items chosen so far, in flight ones included. `taken` (..., N): which those are.
    `keys` (N,): a seeded number per item.
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
    preposterior: FloatArray | None = None

    @cached_property
    def weight(self) -> FloatArray:
        """p(1−p) of every item, (..., N), as it is expected to be once the items in flight are back.

        Their outcomes move θ̂ by about N(0, D), D the `preposterior`: what they take off the variance of θ is the
        variance of its mean (preposterior analysis, Raiffa & Schlaifer 1961). With v = αᵀDα, κ = 1/√(1 + πv/8) and
        z = α·θ̂ − β, E σ(z) ≈ σ(κz) (MacKay 1992), hence E σ'(z) ≈ κ σ'(κz). Without it the items that look best at the
        present θ̂ are chosen as if θ̂ were to stay, several at a time, and some are wasted once it has moved.
        """
        if self.preposterior is None:
            return np.asarray(self.probability * (1.0 - self.probability))
        kappa = 1.0 / np.sqrt(1.0 + (np.pi / 8.0) * np.maximum(self.bank.logit_variance(self.preposterior), 0.0))
        p = sigmoid(kappa * (self.theta @ self.bank.axes - self.bank.beta))
        return np.asarray(kappa * p * (1.0 - p))


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
