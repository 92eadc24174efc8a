"""Choices that no outcome changes, evaluated at once: no step-by-step run is needed for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.cluster.vq import kmeans2
from scipy.stats import hypergeom

from harness.adaptive.ability import Outcomes, maximise
from harness.adaptive.arrays import FloatArray, IntArray
from harness.adaptive.bank import Bank
from harness.adaptive.estimators.protocol import Moments
from harness.adaptive.evidence import Evidence
from harness.adaptive.keys import seeded_keys
from harness.adaptive.responses import Responses

TOLERANCE = 1e-8


def evidence_on(bank: Bank, tested: Responses, items: IntArray, random: bool) -> Evidence:
    """What is known after executing `items` (A, k) in this order; `random` says that each was a draw from the rest."""
    rows = np.arange(len(items))[:, None]
    passes, trials = tested.passes[rows, items], tested.trials[rows, items]
    outcomes = Outcomes(bank.alpha[items], bank.beta[items], passes, trials, bank.prior_mean, bank.prior_precision)
    theta = maximise(np.tile(bank.prior_mean, (len(items), 1)), outcomes, TOLERANCE)
    counted = tested.trials > 0
    rest = counted.copy()
    rest[rows, items] = False
    pool = counted.sum(axis=1, keepdims=True) - np.arange(items.shape[1])
    return Evidence(
        bank=bank,
        theta=theta,
        covariance=np.asarray(np.linalg.inv(outcomes.information(theta)), dtype=np.float64),
        items=items,
        passes=passes,
        trials=trials,
        probability=1.0 / np.maximum(pool, 1) if random else np.ones(items.shape),
        pool=np.maximum(pool, 1),
        random=np.full(items.shape, random, dtype=np.bool_),
        rest=rest,
        counted=counted,
    )


def random_orders(tested: Responses, seeds: Sequence[int]) -> IntArray:
    """The order in which the random policy executes the items of each run, (A, N); items without an outcome last."""
    keys = np.stack([seeded_keys(seed, "draw", tested.item_ids) for seed in seeds])
    keys = np.where(tested.trials > 0, keys >> np.uint64(1), np.uint64(0))
    return np.asarray(np.argsort(-keys.astype(np.int64), axis=1, kind="stable"))


def expected_random_error(tested: Responses, checkpoints: Sequence[int]) -> FloatArray:
    """E |mean of k items drawn without replacement − mean of all|, exactly, (A, K): the count of passes is
    hypergeometric. Needs single trials.
    """
    found = np.empty((len(tested.run_ids), len(checkpoints)))
    for run in range(len(tested.run_ids)):
        total, passed = int(tested.trials[run].sum()), int(tested.passes[run].sum())
        for at, k in enumerate(checkpoints):
            size = min(k, total)
            counts = np.arange(size + 1)
            chance = hypergeom.pmf(counts, total, passed, size)
            found[run, at] = float(chance @ np.abs(counts / size - passed / total))
    return found


@dataclass(frozen=True)
class Clusters:
    """K-means subsets (She & Lin 2026, section 3.3.2): the item nearest each centroid, weighing its cluster's share."""

    items: IntArray
    weights: FloatArray
    name: str = "weighted"

    @classmethod
    def of(cls, features: FloatArray, k: int, seed: int = 0) -> Clusters:
        """`k` clusters of the rows of `features` (N, f), started by k-means++; empty ones are dropped."""
        centres, labels = kmeans2(features, k, minit="++", seed=seed)
        items, weights = [], []
        for cluster in range(k):
            members = np.flatnonzero(labels == cluster)
            if len(members):
                distance = ((features[members] - centres[cluster]) ** 2).sum(axis=1)
                items.append(int(members[np.argmin(distance)]))
                weights.append(len(members) / len(features))
        return cls(np.array(items, dtype=np.int64), np.array(weights))

    def moments(self, evidence: Evidence) -> Moments:
        """Σ w y; no error is published for it (NaN)."""
        value = (self.weights * evidence.rates).sum(axis=-1)
        return Moments(np.asarray(value), np.full(value.shape, np.nan))
