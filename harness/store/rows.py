"""Records to rows and back. A row's JSON is what counts; its other columns are for finding it."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError

from harness.records.base import Record, canonical_json, sha256_of
from harness.records.errors import StoreError
from harness.records.grade import TrialResult
from harness.records.run import RunRow, TrialRow
from harness.records.task import Task, TreeFile
from harness.records.trial import TrialPlan, TrialState
from harness.store.encoding import storable

R = TypeVar("R", bound=Record)

# The state is the target of the trial's last move. Both subqueries use a partial index.
TRIAL_QUERY = """
SELECT t.run, t.trial, t.slot, t.repeat, t.attempt, t.task, t.task_version,
       (SELECT json_extract(e.body, '$.payload.to') FROM events e
         WHERE e.stream = t.trial AND e.kind = 'trial.state' ORDER BY e.seq DESC LIMIT 1),
       r.body
  FROM trials t LEFT JOIN results r ON r.trial = t.trial
"""


@dataclass(frozen=True)
class PackedPlan:
    """A plan as two texts: the task with its files, shared by all its trials, and the rest."""

    task_digest: str
    task_body: str
    body: str


@dataclass(frozen=True)
class StoredPlan:
    """A planned trial as its row holds it, with its task's text. Nothing in it has been believed yet."""

    trial: str
    run: str
    slot: int
    repeat: int
    attempt: int
    task: str
    task_version: str
    task_digest: str
    body: str
    task_body: str


PLAN_QUERY = """
SELECT t.trial, t.run, t.slot, t.repeat, t.attempt, t.task, t.task_version, t.task_digest, t.body,
       coalesce(k.body, '')
  FROM trials t LEFT JOIN tasks k ON k.digest = t.task_digest
"""


def body_of(record: Record) -> str:
    """The canonical JSON of a record. Raises StoreError when it would not read back (a NaN in a number)."""
    body = canonical_json(storable(record.model_dump(), type(record).__name__)).decode("ascii")
    try:
        type(record).model_validate(json.loads(body))
    except ValidationError as error:
        raise StoreError(f"a {type(record).__name__} cannot be stored: {describe(error)}") from error
    return body


def pack_plans(plans: Sequence[TrialPlan]) -> list[PackedPlan]:
    """Plans ready to store. A task object shared by many plans is serialised once."""
    packed_tasks: dict[int, tuple[str, str]] = {}
    packed: list[PackedPlan] = []
    for plan in plans:
        if id(plan.task) not in packed_tasks:
            text = _task_body(plan.task)
            packed_tasks[id(plan.task)] = (sha256_of(text.encode()), text)
        digest, task_text = packed_tasks[id(plan.task)]
        rest = storable(plan.model_dump(exclude={"task"}), "plan") | {"task": digest}
        packed.append(PackedPlan(digest, task_text, canonical_json(rest).decode("ascii")))
    return packed


def _task_body(task: Task) -> str:
    # Files go as pydantic's base64; only metadata can hold what JSON lacks (TOML has NaN).
    plain = task.model_dump(mode="json", exclude={"metadata"})
    return canonical_json(plain | {"metadata": storable(task.metadata, "metadata")}).decode("ascii")


def unpack_plan(body: str, task_body: str) -> TrialPlan:
    """The plan again. Raises StoreError when a text is damaged."""
    try:
        plain = json.loads(body)
        plain["task"] = _read_task(task_body)
        return TrialPlan.model_validate(plain)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise StoreError(f"a stored plan is damaged: {describe(error)}") from error


def _read_task(body: str) -> Task:
    # Not by pydantic's own JSON parser: it refuses lone surrogates, of which an instruction or a file name that is not
    # UTF-8 is made. Metadata is whatever the author wrote, and no file of ours.
    plain = json.loads(body)
    metadata = plain.pop("metadata")
    return Task.model_validate(_with_bytes(plain)).model_copy(update={"metadata": metadata})


def _with_bytes(value: Any) -> Any:
    """`value` with the contents of files, wherever it holds them, as bytes again."""
    if isinstance(value, list):
        return [_with_bytes(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == TreeFile.model_fields.keys() and isinstance(value["mode"], int):
        return value | {"content": base64.b64decode(value["content"], altchars=b"-_", validate=True)}
    return {key: _with_bytes(item) for key, item in value.items()}


def parse(kind: type[R], body: str) -> R:
    """A record without bytes in it from its stored JSON. Raises StoreError, naming the field, when it is damaged."""
    try:
        return kind.model_validate(json.loads(body))
    except (ValueError, TypeError) as error:
        raise StoreError(f"a stored {kind.__name__} is damaged: {describe(error)}") from error


def run_row(body: str) -> RunRow:
    return parse(RunRow, body)


def trial_row(row: Sequence[Any]) -> TrialRow:
    """A row of TRIAL_QUERY as a record."""
    run, trial, slot, repeat, attempt, task, version, state, result = row
    try:
        reached = TrialState(state) if state is not None else TrialState.PLANNED
    except ValueError as error:
        raise StoreError(f"the last move of trial {trial!r} is damaged: {error}") from error
    return TrialRow(
        run=run,
        trial=trial,
        slot=slot,
        repeat=repeat,
        attempt=attempt,
        task=task,
        task_version=version,
        state=reached,
        result=parse(TrialResult, result) if result is not None else None,
    )


def describe(error: Exception) -> str:
    """The first problem of a validation error in one line, or any other error's own words."""
    if not isinstance(error, ValidationError):
        return str(error)
    problem = error.errors(include_url=False, include_context=False)[0]
    return f"{'.'.join(str(part) for part in problem['loc'])}: {problem['msg']}"
