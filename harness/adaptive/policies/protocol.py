"""What a selection policy is: a number for every candidate, the largest chosen.

A policy never draws, breaks ties, or looks at the pool's rules; `selection.select` does. So one is a pure
function of what it is shown and fits a page. Randomness comes from `View.keys`, numbers that belong to the
items (`harness.adaptive.keys`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from harness.adaptive.arrays import FloatArray, IntArray, KeyArray
from harness.adaptive.state import AbilityState


@dataclass(frozen=True, eq=False)
class View:
    """All that a policy may know.

    `candidates` (M,): positions that may be chosen, rising. `pending`: positions in flight, rising.
    `covariance` (d, d): the state's with the expected information of the pending added. `probability` (N,):
    P(pass) of every item at θ̂. `keys` (N,): a seeded 64-bit number per item.
    """

    state: AbilityState
    candidates: IntArray
    pending: tuple[int, ...]
    covariance: FloatArray
    probability: FloatArray
    keys: KeyArray


class Policy(Protocol):
    """`name` goes into the record of every choice; `values` gives (M,) finite numbers, one per candidate,
    more is better.
    """

    @property
    def name(self) -> str: ...

    def values(self, view: View) -> FloatArray: ...
