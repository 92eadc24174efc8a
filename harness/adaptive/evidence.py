"""What an estimator reads: the outcomes so far, how their items came to be chosen, and what is left.

Every array may have leading axes `...`, one entry per agent: nothing in a live run, (A,) in a study of A agents.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.adaptive.arrays import BoolArray, FloatArray, IntArray
from harness.adaptive.bank import Bank


@dataclass(frozen=True)
class Draw:
    """How an item was chosen: the `probability` of its choice at that step given all before it, the size of the `pool`
    it came from, and whether the step was a `random` draw with equal probabilities.
    """

    probability: float
    pool: int
    random: bool

    def as_list(self) -> list[float | int | bool]:
        """Plain, JSON-able values, floats to the bit."""
        return [self.probability, self.pool, self.random]


@dataclass(frozen=True, eq=False)
class Evidence:
    """Outcomes on k items of a bank of N.

    Parameters
    ----------
    bank : the items.
    theta, covariance : (..., d) and (..., d, d), the MAP of the ability and its Laplace covariance.
    items : (..., k) positions in order of observation.
    passes, trials : (..., k); a slot with no trials is padding and counts for nothing.
    probability, pool, random : (..., k), see `Draw`; probability is NaN where the choice is not known.
    rest : (..., N) items of the estimated population without an outcome.
    counted : (..., N) the estimated population: `rest` and the executed.
    """

    bank: Bank
    theta: FloatArray
    covariance: FloatArray
    items: IntArray
    passes: FloatArray
    trials: FloatArray
    probability: FloatArray
    pool: IntArray
    random: BoolArray
    rest: BoolArray
    counted: BoolArray

    @property
    def executed(self) -> IntArray:
        """Number of items with an outcome, (...,)."""
        return np.asarray((self.trials > 0).sum(axis=-1), dtype=np.int64)

    @property
    def n_items(self) -> IntArray:
        """Size of the estimated population, (...,)."""
        return np.asarray(self.counted.sum(axis=-1), dtype=np.int64)

    @property
    def rates(self) -> FloatArray:
        """Pass rate of each executed item, (..., k); 0 in padding."""
        return np.divide(self.passes, self.trials, out=np.zeros(self.passes.shape), where=self.trials > 0)

    @property
    def score(self) -> FloatArray:
        """Σ of the executed items' pass rates, (...,), in items."""
        return np.asarray(self.rates.sum(axis=-1))

    def of_executed(self, values: FloatArray) -> FloatArray:
        """`values` (N,) or (..., N) at the executed items, (..., k)."""
        if values.ndim == 1:
            return np.asarray(values[self.items])
        return np.take_along_axis(values, self.items, axis=-1)
