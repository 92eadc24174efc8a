"""Re-derives what the store claims: every chain, every state move, every result, every blob.

What a chain alone cannot show is the loss of its own tail. A finished trial's tail is vouched for twice: the
stored result must equal the payload of its last `trial.result` event, and the run's stream says in
`trial.closed` at which hash and length the trial's stream ended. The tail of the run's own stream, and a file
rewritten from end to end by someone with the code, are beyond any store that signs nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from harness.records.base import canonical_json, digest_of, sha256_of
from harness.records.errors import StoreError
from harness.records.event import chain_start, link_body
from harness.records.run import RunRow
from harness.records.trial import IllegalMove, TrialPlan, TrialState, move
from harness.store.chain import StoredEvent
from harness.store.rows import StoredPlan, parse, unpack_plan

REFERENCE_CLOSED = "reference.closed"  # in a trial's stream: how the stream of its grader's reference run ended


@dataclass(frozen=True)
class Problem:
    """Something that does not hold. `seq` None: it concerns no single event."""

    stream: str
    seq: int | None
    what: str

    def __str__(self) -> str:
        return f"{self.stream}{'' if self.seq is None else f', event {self.seq}'}: {self.what}"


@dataclass(frozen=True)
class ChainReport:
    """One stream: how many events it has, the hash it ends with, and what is broken, first thing first."""

    stream: str
    events: int
    head: str
    problems: tuple[Problem, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.problems

    @property
    def first(self) -> Problem | None:
        """The first broken event."""
        return self.problems[0] if self.problems else None


@dataclass(frozen=True)
class TrialReport:
    """One trial: its chain and everything that is derived from it. `notices` are no damage."""

    trial: str
    chain: ChainReport
    problems: tuple[Problem, ...]  # the chain's included
    notices: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.problems


@dataclass(frozen=True)
class RunReport:
    """A run: its own stream, its trials, and streams named after it that belong to no planned trial."""

    run: str
    chain: ChainReport
    trials: tuple[TrialReport, ...]
    others: tuple[ChainReport, ...]
    problems: tuple[Problem, ...]  # all of them
    notices: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not self.problems

    @property
    def events(self) -> int:
        return self.chain.events + sum(trial.chain.events for trial in self.trials) + sum(c.events for c in self.others)


class Verifiable(Protocol):
    """What verification reads: rows as they lie, none of them believed."""

    def run_id(self, asked: str) -> str: ...
    def trial_id(self, asked: str) -> str: ...
    def stored_events(self, stream: str, *, kind: str | None = None) -> Iterator[StoredEvent]: ...
    def stored_run(self, run: str) -> str: ...
    def stored_plans(self, run: str) -> tuple[StoredPlan, ...]: ...
    def stored_plan(self, trial: str) -> StoredPlan: ...
    def stored_result(self, trial: str) -> str | None: ...
    def streams(self, run: str) -> tuple[str, ...]: ...
    def blob_problem(self, digest: str) -> str | None: ...


def verify_stream(store: Verifiable, stream: str) -> ChainReport:
    """Re-derive one chain and look at every blob it names. Never raises for damage: it is in the report."""
    return _Walk(store, stream).report()


def verify_trial(store: Verifiable, trial: str) -> TrialReport:
    """Verify one trial: its chain, moves, result, plan, and its end as the run's stream has it. Raises StoreError
    only for an unknown trial."""
    plan = store.stored_plan(store.trial_id(trial))
    closed, unreadable = _closings(store, plan.run)
    return _verify_planned(store, plan, closed.get(plan.trial, ()), unreadable)


def verify_run(store: Verifiable, run: str) -> RunReport:
    """Verify a run with all its trials. Raises StoreError only for an unknown run."""
    id_ = store.run_id(run)
    chain = verify_stream(store, id_)
    closed, _ = _closings(store, id_)
    plans = store.stored_plans(id_)
    trials = tuple(_verify_planned(store, plan, closed.get(plan.trial, ()), ()) for plan in plans)
    known = {id_, *(plan.trial for plan in plans)}
    others = tuple(verify_stream(store, stream) for stream in store.streams(id_) if stream not in known)
    problems = [*chain.problems, *_run_row_problems(id_, store.stored_run(id_))]
    for name in sorted(set(closed) - known):
        problems.append(Problem(id_, closed[name][0][0], f"trial {name} was closed, but its plan is gone"))
    for trial in trials:
        problems += trial.problems
    for other in others:
        problems += other.problems
    for plan in plans:
        problems += _beside_problems(store, plan.trial, {other.stream: other for other in others})
    notices = [notice for trial in trials for notice in trial.notices]
    notices += [f"stream {other.stream} belongs to no planned trial" for other in others if not _beside(other, known)]
    return RunReport(id_, chain, trials, others, tuple(problems), tuple(notices))


def _beside_problems(store: Verifiable, trial: str, others: dict[str, ChainReport]) -> Iterator[Problem]:
    """Whether the streams that a trial's grader wrote beside it end as the trial's own stream says."""
    for row in store.stored_events(trial, kind=REFERENCE_CLOSED):
        try:
            payload = json.loads(row.body)["payload"]
            stream, head = str(payload["stream"]), payload["head"]
        except (ValueError, KeyError, TypeError):
            yield Problem(trial, row.seq, "does not say how the reference's stream ended")
            continue
        if stream not in others:
            yield Problem(trial, row.seq, f"the stream {stream} that it closed is gone")
        elif others[stream].head != head:
            yield Problem(
                stream, None, f"does not end as event {row.seq} of {trial} says: its tail was lost or added to"
            )


def _beside(other: ChainReport, known: set[str]) -> bool:
    """Whether a stream is of a grader's doing beside a trial: named `<trial>.<what>`."""
    return other.stream.rpartition(".")[0] in known


class _Walk:
    """One pass over a stream."""

    def __init__(self, store: Verifiable, stream: str) -> None:
        self.store, self.stream = store, stream
        self.problems: list[Problem] = []
        self.moves: list[tuple[int, Any]] = []
        self.results: list[tuple[int, Any]] = []
        self.hashes: list[str] = []
        self._blobs: set[str] = set()
        self._next, self._previous = 0, chain_start(stream)
        try:
            for row in store.stored_events(stream):
                self._step(row)
        except StoreError as error:
            self._broken(self._next, f"cannot be read: {error.message}")

    def report(self) -> ChainReport:
        return ChainReport(self.stream, len(self.hashes), self._previous, tuple(self.problems))

    def _broken(self, seq: int | None, what: str) -> None:
        self.problems.append(Problem(self.stream, seq, what))

    def _step(self, row: StoredEvent) -> None:
        if not isinstance(row.seq, int):  # SQLite would store a text there without complaint
            self._broken(None, f"an event has {row.seq!r} for its number")
            return
        if row.seq > self._next:
            missing = "is missing" if row.seq == self._next + 1 else f"and all up to {row.seq - 1} are missing"
            self._broken(self._next, missing)
        elif row.seq < self._next:
            self._broken(row.seq, "stands before the first event")
        body = row.body if isinstance(row.body, str) else ""
        if link_body(str(row.previous), body.encode("utf-8", "surrogatepass")) != row.hash:
            self._broken(row.seq, "its content does not have its hash: it was changed")
        elif row.seq == self._next and row.previous != self._previous:
            self._broken(row.seq, "does not continue the event before it: one of the two was replaced or moved")
        self._next, self._previous = row.seq + 1, str(row.hash)
        self.hashes.append(str(row.hash))
        self._read(row, body)

    def _read(self, row: StoredEvent, body: str) -> None:
        try:
            fields = json.loads(body)
            place = (fields["stream"], fields["seq"], fields["kind"])
            payload, blobs = fields["payload"], dict(fields["blobs"])
        except (ValueError, KeyError, TypeError):
            self._broken(row.seq, "its content is not an event")
            return
        if place != (row.stream, row.seq, row.kind):
            self._broken(row.seq, f"stands in the wrong place: it was written as event {place[1]} of {place[0]}")
        for name, digest in blobs.items():
            if digest not in self._blobs:
                self._blobs.add(digest)
                self._look_at_blob(row.seq, name, digest)
        if row.kind == "trial.state":
            self.moves.append((row.seq, payload))
        elif row.kind == "trial.result":
            self.results.append((row.seq, payload))

    def _look_at_blob(self, seq: int, name: str, digest: Any) -> None:
        try:
            problem = self.store.blob_problem(str(digest))
        except StoreError as error:
            problem = error.message
        if problem is not None:
            self._broken(seq, f"its blob {name!r} ({digest}) is {problem}")


def _verify_planned(
    store: Verifiable, plan: StoredPlan, closed: Iterable[tuple[int, dict[str, Any]]], unreadable: Iterable[Problem]
) -> TrialReport:
    walk = _Walk(store, plan.trial)
    chain = walk.report()
    state, move_problems = _check_moves(walk)
    problems = [*chain.problems, *unreadable, *move_problems]
    problems += [Problem(plan.trial, None, what) for what in _plan_problems(plan, walk.moves)]
    result = store.stored_result(plan.trial)
    problems += _check_result(walk, result, state)
    closings = tuple(closed)
    for seq, payload in closings:
        problems += _check_closing(plan, walk, seq, payload)
    notices: tuple[str, ...] = ()
    if result is not None and not closings:
        notices = (f"{plan.trial}: the run's stream does not say where this trial ended; `assay resume` notes it",)
    return TrialReport(plan.trial, chain, tuple(problems), notices)


def _check_moves(walk: _Walk) -> tuple[TrialState, list[Problem]]:
    """Fold the state moves through the one table; an illegal one is named and then taken as made."""
    state, problems = TrialState.PLANNED, []
    for number, (seq, payload) in enumerate(walk.moves):
        try:
            following = TrialState(payload["to"])
        except (ValueError, KeyError, TypeError):
            problems.append(Problem(walk.stream, seq, "its move has no known target"))
            continue
        if not (number == 0 and following is TrialState.PLANNED):
            try:
                move(state, following)
            except IllegalMove as error:
                problems.append(Problem(walk.stream, seq, str(error)))
        state = following
    return state, problems


def _check_result(walk: _Walk, result: str | None, state: TrialState) -> list[Problem]:
    stream, problems = walk.stream, []
    if result is None:
        if walk.results:
            problems.append(Problem(stream, walk.results[-1][0], "the trial's stored result is gone"))
        elif state is TrialState.DONE:
            problems.append(Problem(stream, None, "the trial is done, but there is no result"))
        return problems
    if state is not TrialState.DONE:
        problems.append(Problem(stream, None, f"has a result but its last move is to {state.value}: the tail is lost"))
    if not walk.results:
        problems.append(Problem(stream, None, "has a result but no `trial.result` event: the tail is lost"))
    elif result != canonical_json(walk.results[-1][1]).decode():
        problems.append(Problem(stream, walk.results[-1][0], "the stored result is not the one this event recorded"))
    return problems


def _check_closing(plan: StoredPlan, walk: _Walk, seq: int, payload: dict[str, Any]) -> list[Problem]:
    head, length = payload.get("head"), payload.get("events")
    found = len(walk.hashes)
    if not isinstance(length, int) or length < 1:
        return [Problem(plan.run, seq, f"does not say how long the stream of {plan.trial} is")]
    if found < length:
        return [Problem(plan.trial, found, f"the tail is lost: {length} events were closed, {found} are here")]
    if found > length:
        return [Problem(plan.trial, length, f"was added after the trial was closed with {length} events")]
    if walk.hashes[-1] != head:
        return [Problem(plan.trial, length - 1, "is not the event that the run's stream closed the trial with")]
    return []


def _closings(store: Verifiable, run: str) -> tuple[dict[str, list[tuple[int, dict[str, Any]]]], list[Problem]]:
    """The `trial.closed` notes of a run, by trial, each with its seq; and those that cannot be read."""
    closed: dict[str, list[tuple[int, dict[str, Any]]]] = {}
    problems: list[Problem] = []
    for row in store.stored_events(run, kind="trial.closed"):
        try:
            payload = json.loads(row.body)["payload"]
            closed.setdefault(str(payload["trial"]), []).append((row.seq, payload))
        except (ValueError, KeyError, TypeError):
            problems.append(Problem(run, row.seq, "its content is not an event"))
    return closed, problems


def _run_row_problems(run: str, body: str) -> list[Problem]:
    try:
        row = parse(RunRow, body)
    except StoreError as error:
        return [Problem(run, None, f"the run's row is damaged: {error.message}")]
    problems = []
    if row.run != run:
        problems.append(Problem(run, None, f"the run's row was written for run {row.run}"))
    if digest_of(row.config) != row.config_digest:
        problems.append(Problem(run, None, "the run's configuration does not have its digest: it was changed"))
    return problems


def _plan_problems(stored: StoredPlan, moves: list[tuple[int, Any]]) -> list[str]:
    """Whether a plan's row, its JSON, its task and what the trial's first move says of it are one and the same."""
    if sha256_of(stored.task_body.encode("utf-8", "surrogatepass")) != stored.task_digest:
        return ["the planned task does not have its digest: it was changed"]
    try:
        plan = unpack_plan(stored.body, stored.task_body)
    except StoreError as error:
        return [error.message]
    said = json.loads(stored.body)
    columns: dict[str, Any] = {
        "trial": stored.trial,
        "run": stored.run,
        "slot": stored.slot,
        "repeat": stored.repeat,
        "attempt": stored.attempt,
        "task": stored.task_digest,
    }
    wrong = [name for name, value in columns.items() if said.get(name) != value]
    if (plan.task.id, plan.task.version) != (stored.task, stored.task_version):
        wrong.append("task_version")
    problems = [f"the plan's row and its content differ in {name}" for name in wrong]
    first = moves[0][1] if moves else None
    if isinstance(first, dict) and first.get("to") == TrialState.PLANNED:
        problems += [
            f"the stored plan's {name} is not the one the trial began with"
            for name, value in _identity(plan).items()
            if name in first and first[name] != value
        ]
    return problems


def _identity(plan: TrialPlan) -> dict[str, Any]:
    plain = json.loads(canonical_json(plan.model_dump(mode="json", exclude={"task"})))
    kept = {name: plain[name] for name in ("solver", "model", "attempt", "repeat", "seed", "budget", "override")}
    return kept | {"task": plan.task.id, "task_version": plan.task.version}
