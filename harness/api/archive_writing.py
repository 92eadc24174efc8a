"""Writes episodes of an archive as trials of ours: planned, chained, closed and verifiable like any other."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from json.encoder import encode_basestring_ascii as quoted

from harness.api.archive_reading import HERE, RESULT, Ready, unmeasured_body
from harness.records.archive import ArchiveRun
from harness.records.base import canonical_text
from harness.records.event import EventDraft
from harness.records.grade import TrialResult
from harness.records.task import Budget
from harness.records.trial import SolverSpec, TrialPlan, trial_id
from harness.records.vocabulary import Actor, Outcome, Reason
from harness.runner.trial import closing
from harness.store.chain import EndedTrial, Head
from harness.store.sqlite import SqliteStore

_BATCH_EPISODES = 400
_BATCH_BYTES = 8 << 20
_SOLVER = SolverSpec(name="imported", version="1")


@dataclass
class Cell:
    """A planned trial of the archive."""

    slot: int
    outcome: Outcome
    conflict: bool = False  # another record of it has another outcome


class Writer:
    """Writes the episodes of one run in batches; those that are there already, or were given before, are left alone."""

    def __init__(
        self, store: SqliteStore, run: str, info: ArchiveRun, cells: Mapping[tuple[str, int, int], Cell], *, new: bool
    ) -> None:
        self.store, self.run, self.info, self._cells = store, run, info, cells
        self.written = self.already = 0
        self.outcomes: Counter[Outcome] = Counter()
        self._planned: set[str] = set()
        self._done: set[str] = set()
        if not new:
            for row in store.trials(run):
                self._planned.add(row.trial)
                if row.result is not None:
                    self._done.add(row.trial)
        self._taken: set[str] = set()
        self._ended: list[EndedTrial] = []
        self._blobs: set[str] = set()
        self._bytes = 0

    def take(self, ready: Ready) -> None:
        """Add an episode. Raises StoreError."""
        cell = self._cells[ready.task.id, ready.repeat, ready.attempt]
        trial = trial_id(self.run, cell.slot, ready.attempt)
        if trial in self._taken:
            return
        self._taken.add(trial)
        self.outcomes[Outcome.INVALID if cell.conflict else ready.outcome] += 1
        if trial in self._done:
            self.already += 1
            return
        self._keep(ready.blobs)
        self._ended.append(self._ending(trial, cell, ready))
        self.written += 1
        self._bytes += ready.size
        if len(self._ended) >= _BATCH_EPISODES or self._bytes >= _BATCH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Make everything that was taken durable."""
        if self._ended:
            self.store.add_ended(self._ended)
        self._ended, self._bytes = [], 0

    def _ending(self, trial: str, cell: Cell, ready: Ready) -> EndedTrial:
        name = quoted(trial)[1:-1]
        result = ready.result.replace(HERE, name)
        if cell.conflict:
            result = _contradicted(result)
        last = unmeasured_body(RESULT, Actor.HARNESS, len(ready.kinds), result)
        bodies = f"{ready.bodies}\n{last}".replace(HERE, name).encode("ascii").split(b"\n")
        plan = TrialPlan(
            run=self.run,
            trial=trial,
            slot=cell.slot,
            repeat=ready.repeat,
            attempt=ready.attempt,
            task=ready.task,
            solver=_SOLVER,
            model=self.info.model,
            budget=Budget(),
        )
        return EndedTrial(
            plan=plan,
            planned=trial in self._planned,
            kinds=(*ready.kinds, RESULT),
            bodies=bodies,
            result=result,
            closing=self._closing(plan, Outcome.INVALID if cell.conflict else ready.outcome),
        )

    def _closing(self, plan: TrialPlan, outcome: Outcome) -> Callable[[Head], EventDraft]:
        ended = TrialResult.model_construct(trial=plan.trial, outcome=outcome)  # what the run's stream says of it

        def draft(head: Head) -> EventDraft:
            kind, payload = closing(plan.slot, plan.task.id, ended, head.hash, head.seq)
            return EventDraft(
                stream=self.run, kind=kind, actor=Actor.HARNESS, wall="", monotonic_s=0.0, payload=payload
            )

        return draft

    def _keep(self, blobs: Iterable[str]) -> None:
        for text in blobs:
            if text not in self._blobs:
                if len(self._blobs) > 1000:
                    self._blobs.clear()
                self._blobs.add(text)
                self.store.put_blob(text.encode("utf-8", "surrogatepass"))


def _contradicted(result: str) -> str:
    """A result of which the archive holds another one, with another outcome."""
    fields = json.loads(result)
    detail = f"the archive holds another record of this trial with another outcome; this one: {fields['detail']}"
    verdict = {"outcome": Outcome.INVALID.value, "reason": Reason.VERDICT_CONFLICT.value, "detail": detail[:4000]}
    return canonical_text(fields | verdict)
