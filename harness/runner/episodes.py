"""A recorded conversation of ours as replays and graders read it: from a trial's own stream."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from harness.records.archive import Step
from harness.records.event import Event
from harness.records.replay import STATE, RecordedEpisode, States
from harness.records.trial import TrialPlan
from harness.records.vocabulary import Actor, Outcome, Phase
from harness.runner.conversing import ARGUMENTS, AS_WRITTEN
from harness.runner.sealing import SEAL

FORMAT = "assay"  # whose rules of order its steps keep
OPENED = "environment.opened"
STEPS = frozenset({"message", "tool.call", "tool.result"})


def episode_of(
    plan: TrialPlan, events: Iterable[Event], read_blob: Callable[[str], bytes] | None = None
) -> RecordedEpisode:
    """The episode in a trial's stream, with every recorded state. What a reference did in the agent's place is the
    agent's step here.

    `read_blob` gives bodies that were too long for the stream. Raises what it raises.
    """
    steps: list[Step] = []
    outcome, reward, end = Outcome.UNGRADED, None, ""
    rule = began = ended = ""
    for event in events:
        if event.kind in STEPS and event.phase is Phase.INTERACTION:
            steps.append(_step(event, read_blob))
        elif event.kind == OPENED:
            rule, began = str(event.payload.get("digest") or ""), event.state_digest or ""
        elif event.kind == SEAL:
            ended = event.state_digest or ""
        elif event.kind == "interaction.ended":
            end = str(event.payload.get("stop") or "")
        elif event.kind == "trial.result":
            outcome, reward = Outcome(event.payload["outcome"]), event.payload.get("reward")
    conversation = plan.task.conversation
    return RecordedEpisode(
        id=plan.trial,
        task=plan.task.id,
        repeat=plan.repeat,
        steps=tuple(steps),
        mode=conversation.mode if conversation is not None else None,
        definition=conversation,
        outcome=outcome,
        reward=reward,
        end=end,
        format=FORMAT,
        states=States(rule=rule, start=began, end=ended),
    )


def _step(event: Event, read_blob: Callable[[str], bytes] | None) -> Step:
    payload: dict[str, Any] = dict(event.payload)
    if read_blob is not None:
        for name, digest in event.blobs.items():
            body = read_blob(digest).decode("utf-8", "surrogatepass")
            payload[name] = json.loads(body) if name == ARGUMENTS else body
    if AS_WRITTEN in payload:
        payload[ARGUMENTS] = json.loads(payload.pop(AS_WRITTEN))
    if event.state_digest is not None:
        payload[STATE] = event.state_digest
    actor = Actor.AGENT if event.actor is Actor.REFERENCE else event.actor
    return Step(event.kind, actor, payload, event.phase, event.wall, event.span, event.parent)
