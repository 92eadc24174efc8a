"""Recorded episodes as replays and graders read them: out of an importer's episode, or of the trial it was imported as.

Conversations of our own are read by :mod:`harness.runner.episodes`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from harness.records.archive import ArchiveEpisode, Step
from harness.records.event import Event
from harness.records.replay import RecordedEpisode, States
from harness.records.trial import TrialPlan
from harness.records.vocabulary import Outcome, Phase

SOURCE = "import.source"  # the event of an imported trial that says where it came from
DEFINITION = "task.json"  # an imported task's embedded definition, among its grading files
TAU_BENCH = "tau-bench"  # whose rule for a state's digest its archives keep
ONLY_RUN = "run"  # the key of an archive's run where its format has just one
_STEPS = frozenset({"message", "model.call", "tool.call", "tool.result", "reference.action", "span"})


def from_archive(episode: ArchiveEpisode, format: str) -> RecordedEpisode:
    """An episode as an importer read it. `format` is what the archive was recognised as."""
    return RecordedEpisode(
        id=name_of(episode),
        task=episode.task.id,
        repeat=episode.repeat,
        steps=tuple(episode.steps()),
        mode=episode.mode.value,
        definition=episode.task.definition,
        outcome=episode.outcome,
        reward=episode.reward,
        end=episode.termination.value or "",
        stated=episode.stated,
        format=format,
        states=states_of(episode.stated, format),
    )


def name_of(episode: ArchiveEpisode) -> str:
    """What an episode of an archive is called: TASK/TRIAL, with the run before it where a file may hold several."""
    attempt = f".{episode.attempt}" if episode.attempt > 1 else ""
    return f"{run_prefix(episode.run)}{episode.task.id}/{episode.repeat}{attempt}"


def run_prefix(run: str) -> str:
    """What stands before an episode's name where a file may hold several runs."""
    return "" if run == ONLY_RUN else f"{run}:"


def from_import(
    plan: TrialPlan, events: Iterable[Event], format: str, read_blob: Callable[[str], bytes]
) -> RecordedEpisode:
    """The same episode out of the trial that it was imported as. Raises what `read_blob` raises."""
    steps: list[Step] = []
    source: Mapping[str, Any] = {}
    outcome, reward = Outcome.UNGRADED, None
    for event in events:
        if event.kind == SOURCE:
            source = event.payload
        elif event.kind == "trial.result":
            outcome, reward = Outcome(event.payload["outcome"]), event.payload.get("reward")
        elif event.kind in _STEPS:
            steps.append(_step(event, read_blob))
    stated, claims = source.get("stated") or {}, source.get("claims") or {}
    return RecordedEpisode(
        id=plan.trial,
        task=str(source.get("task", plan.task.id)),
        repeat=plan.repeat,
        steps=tuple(steps),
        mode=(claims.get("mode") or {}).get("value"),
        definition=definition_of(plan),
        outcome=outcome,
        reward=reward,
        end=(claims.get("termination") or {}).get("value") or "",
        stated=stated,
        format=format,
        states=states_of(stated, format),
    )


def states_of(stated: Mapping[str, Any], format: str) -> States:
    """The states that a source's own words hold. tau-bench keeps the digest of the reference's end state, and whether
    the episode ended in it, for the tasks that it grades by states alone."""
    info = stated.get("reward_info")
    found = info.get("info") if format == TAU_BENCH and isinstance(info, Mapping) else None
    if not isinstance(found, Mapping) or not isinstance(found.get("gt_data_hash"), str):
        return States()
    same = found.get("r_actions")
    return States(
        rule=TAU_BENCH,
        reference=found["gt_data_hash"],
        end_is_reference=bool(same) if isinstance(same, (bool, int, float)) else None,
    )


def _step(event: Event, read_blob: Callable[[str], bytes]) -> Step:
    payload = dict(event.payload)
    if event.phase is not Phase.SETUP:
        for name, digest in event.blobs.items():
            payload[name] = read_blob(digest).decode("utf-8", "surrogatepass")
    return Step(event.kind, event.actor, payload, event.phase, event.wall, event.span, event.parent)


def definition_of(plan: TrialPlan) -> Any:
    """The definition that an imported task came with; None when its source had none."""
    for file in plan.task.grading.tests.files:
        if file.path == DEFINITION:
            return json.loads(file.content)
    return None
