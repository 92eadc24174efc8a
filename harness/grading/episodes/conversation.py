"""A recorded episode as graders see it: what the agent and the user said and called, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.records.archive import Step
from harness.records.calls import OWN_SIDE, call_of
from harness.records.environment import Call, Capabilities
from harness.records.vocabulary import Actor, Phase


@dataclass(frozen=True, slots=True)
class Act:
    """A message (`text`) or a tool call (`call`) of the record; `index` counts the recorded steps.

    `aside`: the message came with a tool call of the same turn, and was no answer to the user.
    """

    index: int
    actor: Actor
    text: str | None = None
    call: Call | None = None
    aside: bool = False


def acts_of(steps: Sequence[Step], capabilities: Capabilities, mode: str) -> tuple[Act, ...]:
    """What was said and called in the interaction, by agent, user, or (a scripted greeting) the harness.

    Reference actions and what a grader did are not among them.
    """
    acts: list[Act] = []
    metered = any(step.kind == "model.call" for step in steps)
    turn: list[int] = []  # positions in `acts` of what the agent said in the turn so far
    for index, step in enumerate(steps):
        if step.kind == "model.call" or step.actor is not Actor.AGENT or not metered:
            turn = []
        if step.phase not in (Phase.INTERACTION, None) or step.actor not in (*OWN_SIDE, Actor.HARNESS):
            continue
        if step.kind == "message":
            content = step.payload.get("content")
            acts.append(Act(index, step.actor, text=content if isinstance(content, str) else ""))
            turn.append(len(acts) - 1)
        elif step.kind == "tool.call" and step.actor in OWN_SIDE:
            for position in turn:
                acts[position] = Act(acts[position].index, step.actor, text=acts[position].text, aside=True)
            acts.append(Act(index, step.actor, call=call_of(step, capabilities, mode)))
    return tuple(acts)


def copied(value: Any) -> Any:
    """A deep copy of a JSON value."""
    if isinstance(value, Mapping):
        return {key: copied(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [copied(inner) for inner in value]
    return value


def by_value(value: Any) -> Any:
    """A JSON value with every whole float as the integer that it equals: 250.0 and 250 become one."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {key: by_value(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [by_value(inner) for inner in value]
    return value
