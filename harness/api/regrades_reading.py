"""Recorded episodes out of a run in the store: imported ones, and conversations of our own."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from harness.api.archive_writing import SOURCE
from harness.api.crosses_reading import LABEL
from harness.records.archive import Step
from harness.records.errors import StoreError
from harness.records.event import Event
from harness.records.replay import RecordedEpisode
from harness.records.run import TrialRow
from harness.records.trial import TrialPlan
from harness.runner.episodes import episode_of
from harness.store.sqlite import SqliteStore

_STEPS = frozenset({"message", "model.call", "tool.call", "tool.result", "reference.action", "span"})
_DEFINITION = "task.json"


@dataclass(frozen=True)
class StoredEpisode:
    """An episode of a stored run. `head` is the hash of its stream's last event, `label` what its label gets wrong;
    `proposed` is the task that its content names then ("" for none)."""

    trial: TrialRow
    plan: TrialPlan
    episode: RecordedEpisode
    head: str
    grader: str = ""  # that graded it, where the record says
    label: str = ""
    proposed: str = ""


def stored_episode(store: SqliteStore, trial: TrialRow) -> StoredEpisode:
    """The episode of a finished trial. Raises StoreError, also for a trial that holds none."""
    plan = store.planned(trial.trial)
    events = tuple(store.events(trial.trial))
    head = events[-1].hash if events else ""
    if plan.task.conversation is not None:
        grader = next((str(event.payload.get("grader", "")) for event in events if event.kind == "grade"), "")
        return StoredEpisode(trial, plan, episode_of(plan, events, store.blob), head, grader)
    source = next((event for event in events if event.kind == SOURCE), None)
    if source is None:
        raise StoreError(
            f"trial {trial.trial} holds no episode of calls and answers",
            remedy="a trial in a container is graded again from what its seal kept: leave --environment out",
        )
    return _imported(store, trial, plan, events, source)


def relabelled(stored: StoredEpisode, definitions: dict[str, Any]) -> StoredEpisode:
    """The episode as the task that its content names, where that is known and the run has it."""
    if not stored.label or stored.proposed not in definitions:
        return stored
    episode = replace(stored.episode, task=stored.proposed, definition=definitions[stored.proposed])
    return replace(stored, episode=episode, label="")


def definitions_of(store: SqliteStore, trials: Iterable[TrialRow]) -> dict[str, Any]:
    """The tasks of an imported run by the names that its archive has for them. Raises StoreError."""
    found: dict[str, Any] = {}
    for trial in trials:
        plan = store.planned(trial.trial)
        found.setdefault(str(plan.task.metadata.get("imported_id", plan.task.id)), _definition(plan))
    return found


def _imported(
    store: SqliteStore, trial: TrialRow, plan: TrialPlan, events: tuple[Event, ...], source: Event
) -> StoredEpisode:
    said = source.payload
    claims = {name: claim.get("value") for name, claim in said["claims"].items()}
    wrong = next((found for found in said.get("findings", ()) if found["rule"].startswith(LABEL)), None)
    result = trial.result
    if result is None:
        raise StoreError(f"trial {trial.trial} has no result", remedy="import the archive again")
    episode = RecordedEpisode(
        id=trial.trial,
        task=str(said["task"]),
        repeat=trial.repeat,
        steps=tuple(_step(event, store) for event in events if event.kind in _STEPS),
        mode=claims["mode"],
        definition=_definition(plan),
        outcome=result.outcome,
        reward=result.reward,
        end=claims["termination"] or "",
        stated=dict(said.get("stated", {})),
    )
    label, proposed = ("", "") if wrong is None else (wrong["what"], str(wrong["proposal"].get("task_id", "")))
    return StoredEpisode(trial, plan, episode, events[-1].hash, "", label, proposed)


def _definition(plan: TrialPlan) -> Any:
    file = next((file for file in plan.task.grading.tests.files if file.path == _DEFINITION), None)
    return None if file is None else json.loads(file.content)


def _step(event: Event, store: SqliteStore) -> Step:
    payload = dict(event.payload)
    for name, digest in event.blobs.items():
        payload[name] = store.blob(digest).decode("utf-8", "surrogatepass")
    return Step(event.kind, event.actor, payload, event.phase, event.wall, event.span, event.parent)
