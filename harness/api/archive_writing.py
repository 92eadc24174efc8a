"""Writes episodes of an archive as trials of ours: planned, chained, closed and verifiable like any other.

The stream of an imported trial: its plan, where it came from (`import.source`, with every claim and its evidence), what
happened, its end. Nothing of it was measured here, so the harness's own clock reads 0 and times are the source's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from harness.api.archive_account import Spending, as_conflict, result_of, with_usage
from harness.api.archive_bodies import harness_body, payload_text, unmeasured_body
from harness.api.archive_inventory import AttemptKey, CountedTrial
from harness.api.archive_spool import Kept
from harness.billing.account import ANSWER, SPAN
from harness.records.archive import ArchiveRun, Step
from harness.records.base import canonical_text
from harness.records.grade import TrialResult
from harness.records.task import Budget
from harness.records.trial import SolverSpec, TrialPlan, TrialState, trial_id
from harness.records.usage import Account
from harness.records.vocabulary import Actor, Outcome, Phase
from harness.runner.trial import CLOSED, closing
from harness.store.chain import Head
from harness.store.ended import EndedTrial, EndedWriter
from harness.store.sqlite import SqliteStore

SOURCE, RESULT, STATE = "import.source", "trial.result", "trial.state"
_INLINE = 4096  # characters of a system prompt: the same one comes with every episode
_SPENDING = frozenset((ANSWER, SPAN))
_SETUP = Phase.SETUP
_SOLVER = SolverSpec(name="imported", version="1")
_UNLIMITED = Budget()


class Writer:
    """Gives the episodes of one run to `ended`; those that are there already are left alone."""

    def __init__(
        self,
        store: SqliteStore,
        ended: EndedWriter,
        run: str,
        info: ArchiveRun,
        counted: Callable[[AttemptKey], CountedTrial | None],
    ) -> None:
        self.store, self.run, self.info, self._ended, self._counted = store, run, info, ended, counted
        self.written = self.already = 0
        self.outcomes: Counter[Outcome] = Counter()
        self._planned: set[str] = set()
        self._done: set[str] = set()
        ended.begin(run)
        for trial, has_ended in store.ends(run):
            self._planned.add(trial)
            if has_ended:
                self._done.add(trial)
            else:
                ended.begin(trial)
        self._blobs: set[str] = set()

    def take(self, kept: Kept) -> None:
        """Add an episode. Raises StoreError for what cannot be stored, before anything of it is."""
        counted = self._counted((kept.task.id, kept.repeat, kept.attempt))
        assert counted is not None  # every episode that is kept was counted
        trial = trial_id(self.run, counted.slot, kept.attempt)
        if trial not in self._done:
            ended = self._ended_trial(trial, counted, kept)
            self._ended.take(ended, kept.size)
            self.written += 1
        else:
            self.already += 1
        self.outcomes[Outcome.INVALID if counted.conflict else counted.outcome] += 1

    def _ended_trial(self, trial: str, counted: CountedTrial, kept: Kept) -> EndedTrial:
        kinds, bodies, account = self._told(trial, kept)
        ending = as_conflict(kept.ending) if counted.conflict else kept.ending
        result = result_of(ending, account, trial=trial)
        text = canonical_text(result.model_dump())
        done = canonical_text({"to": TrialState.DONE.value})
        bodies.append(harness_body(trial, STATE, len(bodies), done))
        bodies.append(harness_body(trial, RESULT, len(bodies), text))
        plan = TrialPlan(
            run=self.run,
            trial=trial,
            slot=counted.slot,
            repeat=kept.repeat,
            attempt=kept.attempt,
            task=kept.task,
            solver=_SOLVER,
            model=self.info.model,
            budget=_UNLIMITED,
        )
        return EndedTrial(
            plan=plan,
            planned=trial in self._planned,
            kinds=[*kinds, STATE, RESULT],
            bodies=bodies,
            result=text,
            closing=(CLOSED, self._closing(plan, result)),
        )

    def _told(self, trial: str, kept: Kept) -> tuple[list[str], list[str], Account | None]:
        """Kinds and bodies of the events of an episode, up to its end, and what it spent."""
        planned = {"to": TrialState.PLANNED.value, "task": kept.task.id, "task_version": kept.task.version}
        kinds = [STATE, SOURCE]
        bodies = [
            harness_body(trial, STATE, 0, canonical_text(planned)),
            harness_body(trial, SOURCE, 1, kept.source),
        ]
        spending = Spending()
        for number, step in enumerate(kept.steps, start=2):
            kind, actor, payload, phase, wall, span, parent = step
            if payload.get("usage_raw") is not None:
                payload = with_usage(payload)
            if kind == ANSWER and span is None:
                span = f"s{number - 1}"
                step = Step(kind, actor, payload, phase, wall, span, parent)
            if kind in _SPENDING and actor is Actor.AGENT:
                spending.take(kind, payload, span, parent)
            apart = None
            if phase is _SETUP and isinstance(payload.get("content"), str) and len(payload["content"]) > _INLINE:
                apart = payload["content"]
                payload = {key: value for key, value in payload.items() if key != "content"}
                self._keep(apart)
            kinds.append(kind)
            bodies.append(unmeasured_body(trial, step, number, payload_text(payload), apart))
        return kinds, bodies, spending.account()

    def _closing(self, plan: TrialPlan, result: TrialResult) -> Callable[[Head, int], str]:
        def body(head: Head, seq: int) -> str:
            kind, payload = closing(plan.slot, plan.task.id, result, head.hash, head.seq)
            return harness_body(self.run, kind, seq, canonical_text(payload))

        return body

    def _keep(self, text: str) -> None:
        """Keep a text as a blob; the same one comes with every episode."""
        if text in self._blobs:
            return
        if len(self._blobs) > 1000:
            self._blobs.clear()
        self._blobs.add(text)
        self.store.put_blob(text.encode("utf-8", "surrogatepass"))
