"""Writes episodes of an archive as trials of ours: planned, chained, closed and verifiable like any other.

The stream of an imported trial: its plan, where it came from (`import.source`, with every claim and its evidence), what
happened, its end. Nothing of it was measured here, so the harness's own clock reads 0 and times are the source's.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from harness.billing.account import account
from harness.billing.fold import Bill, fold
from harness.billing.usage import normalise
from harness.importers.consistency import instant
from harness.records.archive import ArchiveEpisode, ArchiveRun, ArchiveTask, Step
from harness.records.base import canonical_json, digest_of
from harness.records.event import Event, EventDraft
from harness.records.grade import TrialResult
from harness.records.task import Budget, FileTree, Grading, ImagePin, Limits, Task, TreeFile
from harness.records.trial import SolverSpec, TrialPlan, TrialState, trial_id
from harness.records.usage import Account, Span, Usage
from harness.records.vocabulary import Actor, Network, Outcome, Phase, Reason
from harness.runner.trial import closing
from harness.store.chain import Head
from harness.store.encoding import storable
from harness.store.sqlite import SqliteStore

SOURCE = "import.source"
_BATCH_EPISODES = 400
_BATCH_BYTES = 8 << 20
_INLINE = 4096  # characters of a system prompt: the same one comes with every episode
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,199}")
_NOT_ID = re.compile(r"[^A-Za-z0-9._/-]+")
_SOLVER = SolverSpec(name="imported", version="1")
_UNSUPPORTED = ("imported from an archive, which holds no environment to run it in",)


@dataclass
class Cell:
    """A planned trial of the archive."""

    slot: int
    outcome: Outcome
    conflict: bool = False  # another record of it has another outcome


def legal_task_id(id_: str) -> str:
    """An id as ours may be: the source's own where that is one, else made from it with a digest to tell it apart."""
    if _ID.fullmatch(id_):
        return id_
    plain = _NOT_ID.sub("-", id_).strip("-./_")[:180]
    return f"{plain or 'task'}-{hashlib.sha256(id_.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def task_of(task: ArchiveTask, suite: str) -> Task:
    """A task to be shown and compared, not run. Its version covers the instruction and the embedded definition."""
    files: tuple[TreeFile, ...] = ()
    if task.definition is not None:
        files = (TreeFile(path="task.json", content=canonical_json(storable(task.definition))),)
    return Task(
        id=legal_task_id(task.id),
        family=legal_task_id(suite),
        instruction=task.instruction,
        image=ImagePin(reference=""),
        limits=Limits(network=Network.NONE),
        grading=Grading(grader="imported@1", tests=FileTree(files=files)),
        metadata={"imported_id": task.id},
        unsupported=_UNSUPPORTED,
    )


def suite_version(tasks: Mapping[str, str]) -> str:
    """As a suite's own: over the ids and versions of its tasks."""
    return digest_of(sorted(tasks.items()))


@dataclass
class _PlainDraft:
    """An event draft without validation: an archive has millions of steps, and what the store chains of each is checked
    there anyway. The fields are those of :class:`EventDraft`."""

    stream: str
    kind: str
    actor: Actor
    phase: Phase | None
    wall: str
    span: str | None
    parent: str | None
    payload: dict[str, Any]
    blobs: dict[str, str]
    monotonic_s: float = 0.0
    attempt: int = 1
    state_digest: str | None = None


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
        self._tasks: dict[tuple[str, int], tuple[ArchiveTask, Task]] = {}
        self._plans: list[TrialPlan] = []
        self._endings: list[tuple[TrialResult, list[EventDraft]]] = []
        self._slots: dict[str, tuple[int, str]] = {}
        self._blobs: dict[str, str] = {}
        self._bytes = 0

    def take(self, episode: ArchiveEpisode) -> None:
        """Add an episode. Raises StoreError."""
        key = (legal_task_id(episode.task.id), episode.repeat, episode.attempt)
        cell = self._cells[key]
        trial = trial_id(self.run, cell.slot, episode.attempt)
        if trial in self._taken:
            return
        self._taken.add(trial)
        outcome = Outcome.INVALID if cell.conflict else episode.outcome
        self.outcomes[outcome] += 1
        if trial in self._done:
            self.already += 1
            return
        plan = self._plan(trial, cell.slot, episode)
        if trial not in self._planned:
            self._plans.append(plan)
        self._slots[trial] = (cell.slot, plan.task.id)
        self._endings.append(self._ending(plan, episode, conflict=cell.conflict))
        self.written += 1
        self._bytes += episode.source.length
        if len(self._endings) >= _BATCH_EPISODES or self._bytes >= _BATCH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Make everything that was taken durable."""
        if self._plans:
            self.store.plan(self._plans)
        if self._endings:
            self.store.finish_all(self._endings, self._closing)
        self._plans, self._endings, self._slots, self._bytes = [], [], {}, 0

    def _closing(self, result: TrialResult, head: Head) -> EventDraft:
        slot, task = self._slots[result.trial]
        kind, payload = closing(slot, task, result, head.hash, head.seq)
        return _draft(self.run, kind, Actor.HARNESS, payload)

    def _plan(self, trial: str, slot: int, episode: ArchiveEpisode) -> TrialPlan:
        return TrialPlan(
            run=self.run,
            trial=trial,
            slot=slot,
            repeat=episode.repeat,
            attempt=episode.attempt,
            task=self._task(episode.task),
            solver=_SOLVER,
            model=self.info.model,
            budget=Budget(),
        )

    def _task(self, task: ArchiveTask) -> Task:
        # Keyed by the definition's identity: importers share one object among the episodes of a task, and it is kept.
        key = (task.id, id(task.definition))
        if key not in self._tasks or self._tasks[key][0].definition is not task.definition:
            if len(self._tasks) > 5000:
                self._tasks.clear()
            self._tasks[key] = (task, task_of(task, self.info.suite))
        return self._tasks[key][1]

    def _ending(
        self, plan: TrialPlan, episode: ArchiveEpisode, *, conflict: bool
    ) -> tuple[TrialResult, list[EventDraft]]:
        trial = plan.trial
        planned = {"to": TrialState.PLANNED.value, "task": plan.task.id, "task_version": plan.task.version}
        drafts = [
            _draft(trial, "trial.state", Actor.HARNESS, planned),
            _draft(trial, SOURCE, Actor.HARNESS, _source(episode)),
        ]
        drafts += [self._step(trial, number, step) for number, step in enumerate(episode.steps(), start=1)]
        result = _result(trial, episode, spent(drafts), conflict=conflict)
        drafts.append(_draft(trial, "trial.state", Actor.HARNESS, {"to": TrialState.DONE.value}))
        drafts.append(_draft(trial, "trial.result", Actor.HARNESS, result.plain()))
        return result, drafts

    def _step(self, trial: str, number: int, step: Step) -> EventDraft:
        payload, blobs = step.payload, {}
        raw = payload.get("usage_raw")
        if raw is not None:
            usage = normalise(raw)
            payload = payload | {"usage": None if usage is None else usage.plain()}
        content = payload.get("content")
        if step.phase is Phase.SETUP and isinstance(content, str) and len(content) > _INLINE:
            payload = {key: value for key, value in payload.items() if key != "content"}
            blobs = {"content": self._blob(content)}
        span = step.span or (f"s{number}" if step.kind == "model.call" else None)
        draft = _PlainDraft(trial, step.kind, step.actor, step.phase, step.wall, span, step.parent, payload, blobs)
        return cast("EventDraft", draft)

    def _blob(self, text: str) -> str:
        if text not in self._blobs:
            if len(self._blobs) > 1000:
                self._blobs.clear()
            self._blobs[text] = self.store.put_blob(text.encode("utf-8", "surrogatepass"))
        return self._blobs[text]


def _draft(stream: str, kind: str, actor: Actor, payload: Mapping[str, Any]) -> EventDraft:
    return EventDraft(stream=stream, kind=kind, actor=actor, wall="", monotonic_s=0.0, payload=dict(payload))


def _source(episode: ArchiveEpisode) -> dict[str, Any]:
    """Where an episode came from, and what is claimed of it on what evidence."""
    claims = {name: getattr(episode, name) for name in ("grading", "termination", "mode", "attribution")}
    return {
        "source": episode.source.plain(),
        "task": episode.task.id,
        "claims": {name: claim.plain() for name, claim in claims.items()},
        "criteria": episode.criteria,
        "stated": episode.stated,
        "usage_raw": episode.usage,
        "started": episode.started,
        "finished": episode.finished,
        "findings": [finding.plain() for finding in episode.findings],
    }


def spent(drafts: Iterable[EventDraft]) -> Account | None:
    """What the agent's own calls used, from its model calls, or from the span tree where there is one."""
    mine = [draft for draft in drafts if draft.actor is Actor.AGENT and draft.kind in ("model.call", "span")]
    if not mine:
        return None
    if any(draft.kind == "span" for draft in mine):
        return _of_bill(fold(span for draft in mine if (span := span_of(draft)) is not None))
    # Drafts have all that the fold reads of an event; every call has a span of its own.
    return account(cast("list[Event]", mine))


def span_of(event: EventDraft) -> Span | None:
    """The billing span of a `span` event, with its usage in disjoint buckets; None for any other event."""
    if event.kind != "span" or event.span is None:
        return None
    payload = event.payload
    usage = payload.get("usage")
    cost = payload.get("cost_usd")
    return Span(
        span=event.span,
        parent=event.parent,
        provider=_word(payload.get("gen_ai.provider.name")),
        response_id=_word(payload.get("gen_ai.response.id")),
        model=_word(payload.get("gen_ai.response.model")),
        usage=Usage.model_validate(usage) if isinstance(usage, dict) else None,
        cost_usd=cost if isinstance(cost, (int, float)) and cost >= 0 else None,
    )


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _of_bill(bill: Bill) -> Account:
    return Account(
        usage=bill.usage,
        calls=bill.calls,
        calls_without_usage=len(bill.missing),
        cost_usd=bill.cost_usd,
        cost_at_least_usd=bill.cost_at_least_usd,
    )


def _result(trial: str, episode: ArchiveEpisode, account: Account | None, *, conflict: bool) -> TrialResult:
    usage = account.usage if account is not None and account.usage is not None else normalise(episode.usage)
    cost = episode.cost_usd if episode.cost_usd is not None else account.cost_usd if account is not None else None
    steps = episode.step_count if episode.step_count is not None else account.calls if account is not None else None
    finished = instant(episode.finished)
    outcome, reason, detail = episode.outcome, episode.reason, episode.detail
    if conflict:
        outcome, reason = Outcome.INVALID, Reason.VERDICT_CONFLICT
        detail = f"the archive holds another record of this trial with another outcome; this one: {episode.detail}"
    return TrialResult(
        trial=trial,
        outcome=outcome,
        reason=reason,
        detail=detail[:4000],
        stop=episode.stop,
        stop_detail=episode.stop_detail[:4000],
        reward=episode.reward,
        flags=episode.flags,
        usage=usage,
        calls=account.calls if account is not None else 0,
        calls_without_usage=account.calls_without_usage if account is not None else 0,
        steps=steps,
        cost_usd=cost,
        cost_at_least_usd=account.cost_at_least_usd if account is not None and cost is None else cost or 0.0,
        seconds=episode.seconds,
        tokens=episode.tokens if usage is None else None,
        finished_at=finished.isoformat() if finished is not None else "",
    )
