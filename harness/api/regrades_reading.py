"""Recorded episodes out of a run in the store: imported ones, and conversations of our own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from harness.api.archive_gaps import Missing, lacking
from harness.api.crosses_reading import LABEL
from harness.records.archive import TRACE, Trace
from harness.records.errors import StoreError
from harness.records.event import Event
from harness.records.replay import RecordedEpisode
from harness.records.run import TrialRow
from harness.records.trial import TrialPlan
from harness.replay.order import end_of
from harness.replay.recorded import ONLY_RUN, SOURCE, definition_of, from_import
from harness.runner.episodes import episode_of
from harness.store.sqlite import SqliteStore
from harness.store.verify import Problem, verify_trial


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
    """The episode of a finished trial, its stream verified. Raises StoreError, also for a trial that holds none."""
    plan = store.planned(trial.trial)
    events = tuple(store.events(trial.trial))
    head = events[-1].hash if events else ""
    damage = next(iter(verify_trial(store, trial.trial).problems), None)
    if plan.task.conversation is not None:
        grader = next((str(event.payload.get("grader", "")) for event in events if event.kind == "grade"), "")
        episode = _held(events, lambda some: episode_of(plan, some, store.blob), damage)
        return StoredEpisode(trial, plan, episode, head, grader)
    source = next((event for event in events if event.kind == SOURCE), None)
    if source is None:
        raise StoreError(
            f"trial {trial.trial} holds no episode of calls and answers",
            remedy="a trial in a container is graded again by `assay regrade RUN`, without --environment",
        )
    format = str(store.run(trial.run).config.extra.get("import", {}).get("format", ""))
    episode = _held(events, lambda some: from_import(plan, some, format, store.blob), damage)
    wrong = next((found for found in source.payload.get("findings", ()) if found["rule"].startswith(LABEL)), None)
    label, proposed = ("", "") if wrong is None else (wrong["what"], str(wrong["proposal"].get("task_id", "")))
    return StoredEpisode(trial, plan, episode, head, "", label, proposed)


def _held(
    events: Sequence[Event], read: Callable[[Sequence[Event]], RecordedEpisode], damage: Problem | None
) -> RecordedEpisode:
    """The episode in a stream, with what does not hold of the stream at the step that it comes before."""
    episode = read(events)
    if damage is None:
        return episode
    before = [event for event in events if damage.seq is not None and event.seq < damage.seq]
    at = len(read(before).steps) if before else end_of(episode.steps)
    trace = Trace(by=("chain",), broken=(at, f"its stream does not verify: {damage}"))
    return replace(episode, stated={**episode.stated, TRACE: trace.plain()})


def relabelled(stored: StoredEpisode, definitions: dict[str, Any]) -> StoredEpisode:
    """The episode as the task that its content names, where that is known and the run has it."""
    if not stored.label or stored.proposed not in definitions:
        return stored
    episode = replace(stored.episode, task=stored.proposed, definition=definitions[stored.proposed])
    return replace(stored, episode=episode, label="")


def missing_in(store: SqliteStore, run: str, content: Mapping[str, str] = MappingProxyType({})) -> Missing:
    """The trials that a run planned and has no row of: of an imported run, those that its archive did not hold.
    `content`: the tasks that trials count as, where not as their rows'. Raises StoreError."""
    config = store.run(run).config
    trials = store.trials(run)
    there = {(row.task, row.repeat): (content.get(row.trial, row.task), row.repeat) for row in trials}
    plan = {(task, repeat) for repeat in range(config.repeats) for task in config.tasks}
    source = config.extra.get("import")
    cut = isinstance(source, dict) and bool(source.get("cut"))
    named = tuple((ONLY_RUN, slot) for slot in lacking(plan, there))
    return Missing(named, unnamed=int(cut and not named), at_least=cut)


def definitions_of(store: SqliteStore, trials: Iterable[TrialRow]) -> dict[str, Any]:
    """The tasks of an imported run by the names that its archive has for them. Raises StoreError."""
    found: dict[str, Any] = {}
    for trial in trials:
        plan = store.planned(trial.trial)
        found.setdefault(str(plan.task.metadata.get("imported_id", plan.task.id)), definition_of(plan))
    return found
