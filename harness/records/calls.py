"""From what a record says of a call to the call that an environment is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.records.archive import Step
from harness.records.environment import Call, Capabilities
from harness.records.vocabulary import Actor

FAILED = "Error"  # what a failed call's answer begins with, where the record has no flag
OWN_SIDE = {Actor.AGENT: "agent", Actor.USER: "user"}
_ROLES = {"assistant": Actor.AGENT, "user": Actor.USER}


def call_of(step: Step, capabilities: Capabilities, mode: str) -> Call:
    """The call that a recorded `tool.call` step made: in the namespace that the record names; or else of the actor's
    own side, unless only another side that it may call has a tool of that name (the agent in solo mode)."""
    name, own = str(step.payload.get("gen_ai.tool.name")), step.payload.get("namespace") or OWN_SIDE[step.actor]
    allowed = capabilities.modes.get(mode, {}).get(step.actor.value, (own,))
    spaces = [space for space in (own, *allowed) if capabilities.tool(name, space) is not None]
    return Call(
        actor=step.actor,
        name=name,
        arguments=step.payload.get("arguments"),
        namespace=spaces[0] if spaces else own,
        id=str(step.payload.get("gen_ai.tool.call.id", "")),
    )


def history_of(initial: Mapping[str, Any]) -> tuple[Call, ...]:
    """The calls of a `message_history` that a task begins with: they belong to its initial state."""
    calls = []
    for message in initial.get("message_history") or ():
        actor = _ROLES.get(str(message.get("role"))) if isinstance(message, Mapping) else None
        if actor is None:
            continue
        for call in message.get("tool_calls") or ():
            calls.append(Call(actor, str(call.get("name")), call.get("arguments"), OWN_SIDE[actor]))
    return tuple(calls)
