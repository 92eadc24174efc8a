"""A small finite population played under a policy: what the estimators of a design are tested on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np

from harness.adaptive import Bank
from harness.adaptive.arrays import FloatArray
from harness.adaptive.estimators import Moments, SampleMean
from harness.adaptive.evidence import Evidence
from harness.adaptive.planning.trajectories import Study, run_study
from harness.adaptive.policies import Policy


class Recorder:
    """An estimator that keeps the evidence it is shown."""

    name = "recorder"

    def __init__(self) -> None:
        self.seen: list[Evidence] = []

    def moments(self, evidence: Evidence) -> Moments:
        self.seen.append(evidence)
        return SampleMean().moments(evidence)


def played(
    bank: Bank, outcomes: FloatArray, policy: Policy, k: int, seeds: Sequence[int], in_flight: int = 1
) -> Evidence:
    """The evidence after k steps, one agent per seed, all with the same `outcomes` (N,)."""
    recorder = Recorder()
    table = np.tile(outcomes, (len(seeds), 1))
    run_study(bank, table, np.ones(table.shape), Study(policy, (recorder,), (k,), tuple(seeds), in_flight))
    return recorder.seen[0]


def agent(evidence: Evidence, at: int) -> Evidence:
    """One agent's part of the evidence of many."""
    arrays = {field.name: getattr(evidence, field.name)[at] for field in fields(Evidence) if field.name != "bank"}
    return replace(evidence, **arrays)


def unrecorded(evidence: Evidence) -> Evidence:
    """The same outcomes, had nobody noted how their items were chosen."""
    nothing = np.zeros(evidence.items.shape, dtype=np.int64)
    return replace(
        evidence, probability=np.full(evidence.items.shape, np.nan), pool=nothing, random=nothing.astype(np.bool_)
    )
