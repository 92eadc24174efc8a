"""What one experiment is about: a history to learn from and test runs whose every outcome is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from harness.adaptive.arrays import FloatArray, IntArray
from harness.adaptive.bank import Bank, prior_bank
from harness.adaptive.calibration.ability_prior import past_abilities
from harness.adaptive.populations.lineage import Lineage
from harness.adaptive.responses import Responses


@dataclass(frozen=True, eq=False)
class Fold:
    """Nothing of the test runs may reach a method but the outcomes of the items it executes.

    `history` with the agent of each of its runs in `agents` (what a back-test must hold out together). `tested` (A
    runs) with `units`, what a bootstrap draws: runs of one agent belong together. `oracle` is the bank of the true
    items, where there is one; `probability` (A, N) the true chances of the test runs.
    """

    name: str
    history: Responses
    agents: tuple[str, ...]
    tested: Responses
    units: tuple[str, ...]
    oracle: Bank | None = None
    probability: FloatArray | None = None
    run_seeds: tuple[int, ...] = ()

    @property
    def truth(self) -> FloatArray:
        """The full pass rate of each test run over its known outcomes, (A,)."""
        return self.tested.pass_rates

    @property
    def seeds(self) -> tuple[int, ...]:
        """A seed for each test run: its own, or its place."""
        return self.run_seeds or tuple(range(len(self.tested.run_ids)))


def simulated_fold(lineage: Lineage, history: Sequence[int] | IntArray, tested: Sequence[int] | IntArray) -> Fold:
    """These runs of a lineage; every run is an agent of its own, as a version of the agent is to its developers."""
    past, now = np.asarray(history, dtype=np.int64), np.asarray(tested, dtype=np.int64)
    oracle = None
    if lineage.truth is not None:
        mean, covariance = past_abilities(lineage.truth.theta[past])
        oracle = replace(
            prior_bank(lineage.item_ids),
            alpha=lineage.truth.alpha,
            beta=lineage.truth.beta,
            prior_mean=mean,
            prior_covariance=covariance,
            calibrated=np.ones(len(lineage.item_ids), dtype=np.bool_),
        )
    return Fold(
        name=f"seed {lineage.seed}",
        history=lineage.responses(past),
        agents=tuple(lineage.run_ids[r] for r in past),
        tested=lineage.responses(now),
        units=tuple(f"{lineage.seed}/{lineage.run_ids[r]}" for r in now),
        oracle=oracle,
        probability=lineage.probability[now],
    )


def evenly(first: int, stop: int, count: int) -> IntArray:
    """`count` of the places first … stop − 1, evenly spread; all of them where there are no more."""
    if count >= stop - first:
        return np.arange(first, stop, dtype=np.int64)
    return np.asarray(first + (np.arange(count) * (stop - first)) // count, dtype=np.int64)


def rows_of(responses: Responses, rows: Sequence[int] | IntArray) -> Responses:
    """These runs alone."""
    chosen = np.asarray(rows, dtype=np.int64)
    dates = tuple(responses.dates[r] for r in chosen) if responses.dates else ()
    names = tuple(responses.run_ids[r] for r in chosen)
    return Responses(names, responses.item_ids, responses.passes[chosen], responses.trials[chosen], dates)
