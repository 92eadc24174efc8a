"""The evidence store in memory, for tests and previews: the same chains, the same refusals, nothing on disk."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from harness.records.base import sha256_of
from harness.records.errors import StoreError
from harness.records.event import Event, EventDraft
from harness.records.grade import TrialResult
from harness.records.run import RunRow, TrialRow
from harness.records.trial import TrialPlan, TrialState
from harness.store.chain import Head, StoredEvent, chain_drafts, empty_head, event_of
from harness.store.lookup import choose
from harness.store.rows import StoredPlan, body_of, pack_plans, parse, unpack_plan


class MemoryStore:
    """An :class:`harness.protocols.EvidenceStore` whose evidence ends with the process. Raises StoreError."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._runs: dict[str, str] = {}
        self._plans: dict[str, tuple[TrialPlan, str, str]] = {}  # with its text and its task's
        self._streams: dict[str, list[StoredEvent]] = {}
        self._results: dict[str, str] = {}
        self._blobs: dict[str, bytes] = {}
        self._owned: set[str] = set()

    def create_run(self, row: RunRow) -> None:
        with self._lock:
            if row.run in self._runs:
                raise StoreError(f"run {row.run!r} exists already")
            self._runs[row.run] = body_of(row)

    def run(self, run: str) -> RunRow:
        with self._lock:
            return parse(RunRow, self._runs[self.run_id(run)])

    def runs(self) -> tuple[RunRow, ...]:
        with self._lock:
            return tuple(parse(RunRow, body) for body in self._runs.values())

    def plan(self, plans: Sequence[TrialPlan]) -> None:
        packed = pack_plans(plans)
        with self._lock:
            new: dict[str, tuple[TrialPlan, str, str]] = {}
            places = {(plan.run, plan.slot, plan.attempt) for plan, _, _ in self._plans.values()}
            for plan, texts in zip(plans, packed, strict=True):
                if plan.run not in self._runs:
                    raise StoreError(f"trial {plan.trial!r} belongs to run {plan.run!r}, which is not in the store")
                if plan.trial in self._plans or plan.trial in new:
                    raise StoreError(f"trial {plan.trial!r} is planned already")
                if (plan.run, plan.slot, plan.attempt) in places:
                    raise StoreError(f"slot {plan.slot}, attempt {plan.attempt} of run {plan.run!r} is planned already")
                places.add((plan.run, plan.slot, plan.attempt))
                new[plan.trial] = (plan, texts.body, texts.task_body)
            self._plans.update(new)

    def planned(self, trial: str) -> TrialPlan:
        """The plan of a trial as it was written."""
        with self._lock:
            _, body, task_body = self._plans[self.trial_id(trial)]
        return unpack_plan(body, task_body)

    def trials(self, run: str) -> tuple[TrialRow, ...]:
        with self._lock:
            id_ = self.run_id(run)
            plans = [plan for plan, _, _ in self._plans.values() if plan.run == id_]
            return tuple(self._trial_row(plan) for plan in sorted(plans, key=lambda plan: (plan.slot, plan.attempt)))

    def trial(self, trial: str) -> TrialRow:
        with self._lock:
            return self._trial_row(self._plans[self.trial_id(trial)][0])

    def _trial_row(self, plan: TrialPlan) -> TrialRow:
        moves = [row for row in self._streams.get(plan.trial, ()) if row.kind == "trial.state"]
        result = self._results.get(plan.trial)
        return TrialRow(
            run=plan.run,
            trial=plan.trial,
            slot=plan.slot,
            repeat=plan.repeat,
            attempt=plan.attempt,
            task=plan.task.id,
            task_version=plan.task.version,
            state=TrialState(event_of(moves[-1]).payload["to"]) if moves else TrialState.PLANNED,
            result=None if result is None else parse(TrialResult, result),
        )

    def run_id(self, asked: str) -> str:
        """The id that `asked` means: exact, a unique prefix, or `latest`. Raises StoreError with near matches."""
        return choose("run", asked, list(self._runs), latest=True)

    def trial_id(self, asked: str) -> str:
        """The id that `asked` means: exact, or a unique prefix. Raises StoreError with near matches."""
        return choose("trial", asked, list(self._plans))

    def append(self, drafts: Sequence[EventDraft]) -> tuple[Event, ...]:
        with self._lock:
            events, rows = chain_drafts(drafts, self._head, {})
            for row in rows:
                self._streams.setdefault(row.stream, []).append(row)
        return tuple(events)

    def finish(self, result: TrialResult, drafts: Sequence[EventDraft]) -> tuple[Event, ...]:
        body = body_of(result)
        with self._lock:
            if result.trial not in self._plans:
                raise StoreError(f"trial {result.trial!r} was never planned")
            if result.trial in self._results:
                raise StoreError(f"trial {result.trial!r} has its result already")
            events = self.append(drafts)
            self._results[result.trial] = body
        return events

    def events(self, stream: str, kinds: Sequence[str] | None = None) -> Iterator[Event]:
        wanted = None if kinds is None else frozenset(kinds)
        for row in self.stored_events(stream):
            if wanted is None or row.kind in wanted:
                yield event_of(row)

    def stored_events(self, stream: str, *, kind: str | None = None) -> Iterator[StoredEvent]:
        """The rows of a stream, as they would lie in a database."""
        with self._lock:
            rows = tuple(self._streams.get(stream, ()))
        return (row for row in rows if kind is None or row.kind == kind)

    def streams(self, run: str) -> tuple[str, ...]:
        """The streams that belong to a run: its own, and those named after it."""
        with self._lock:
            trials = {plan.trial for plan, _, _ in self._plans.values() if plan.run == run}
            found = [s for s in self._streams if s == run or s.startswith(f"{run}.") or s in trials]
        return tuple(sorted(found))

    def stored_run(self, run: str) -> str:
        return self._runs[run]

    def stored_plans(self, run: str) -> tuple[StoredPlan, ...]:
        return tuple(self.stored_plan(row.trial) for row in self.trials(run))

    def stored_plan(self, trial: str) -> StoredPlan:
        with self._lock:
            plan, body, task_body = self._plans[trial]
        return StoredPlan(
            trial=plan.trial,
            run=plan.run,
            slot=plan.slot,
            repeat=plan.repeat,
            attempt=plan.attempt,
            task=plan.task.id,
            task_version=plan.task.version,
            task_digest=sha256_of(task_body.encode()),
            body=body,
            task_body=task_body,
        )

    def stored_result(self, trial: str) -> str | None:
        return self._results.get(trial)

    def blob_problem(self, digest: str) -> str | None:
        return None if digest in self._blobs else "missing"

    def put_blob(self, data: bytes) -> str:
        digest = sha256_of(data)
        with self._lock:
            self._blobs[digest] = bytes(data)
        return digest

    def blob(self, digest: str) -> bytes:
        with self._lock:
            if digest not in self._blobs:
                raise StoreError(f"the blob {digest} is missing")
            return self._blobs[digest]

    @contextmanager
    def own(self, run: str) -> Iterator[None]:
        with self._lock:
            if run in self._owned:
                raise StoreError(f"run {run!r} is owned by this process")
            self._owned.add(run)
        try:
            yield
        finally:
            self._owned.discard(run)

    def owned(self, run: str) -> bool:
        return run in self._owned

    def _head(self, stream: str) -> Head:
        rows = self._streams.get(stream)
        return Head(rows[-1].seq + 1, rows[-1].hash) if rows else empty_head(stream)
