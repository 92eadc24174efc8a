"""Mutants that a grader passed: what a mutated run is for, and no score of an agent."""

from __future__ import annotations

import json
from collections.abc import Iterable

from harness.protocols import EvidenceStore
from harness.records.base import Record
from harness.records.run import RunConfig, TrialRow
from harness.records.vocabulary import Outcome

MUTATED = "mutated"  # the solver's name


class Survivor(Record):
    """A deliberately wrong solution that passed. `mutant` is its name, null when the trial does not say."""

    task: str
    trial: str
    mutant: str | None


def survivors(config: RunConfig, latest: Iterable[TrialRow], store: EvidenceStore) -> tuple[Survivor, ...] | None:
    """The survivors among the last attempts of a mutated run; None for any other run. Raises StoreError."""
    if config.solver.name != MUTATED:
        return None
    passed = [row for row in latest if row.result is not None and row.result.outcome is Outcome.PASSED]
    return tuple(Survivor(task=row.task, trial=row.trial, mutant=_mutant(row.trial, store)) for row in passed)


def _mutant(trial: str, store: EvidenceStore) -> str | None:
    for event in store.events(trial, ["solver.note"]):
        body = event.payload.get("body")
        if event.payload.get("kind") == "mutant" and isinstance(body, str):
            name = json.loads(body).get("name")
            return str(name) if name is not None else None
    return None
