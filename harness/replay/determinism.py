"""Two replays of one episode beside each other: what is not the same is not deterministic. Pure."""

from __future__ import annotations

from typing import NamedTuple

from harness.records.environment import Capabilities
from harness.records.replay import Replayed
from harness.replay.order import end_of


class Unsteady(NamedTuple):
    """A step that answered otherwise the second time. `declared`: its tool is said to do so."""

    at: int
    name: str
    declared: bool


def unsteady_steps(first: Replayed, second: Replayed, capabilities: Capabilities) -> tuple[Unsteady, ...]:
    """Steps whose answers differ, and, last, the end state, when it does (named ""; after the last step)."""
    loose = {tool.name for tool in capabilities.tools if not tool.deterministic}
    found = [
        Unsteady(one.index, one.name, one.name in loose)
        for one, other in zip(first.steps, second.steps, strict=False)
        if one.replayed != other.replayed
    ]
    if first.end_state != second.end_state or len(first.steps) != len(second.steps):
        used = any(step.name in loose for step in first.steps)
        found.append(Unsteady(end_of(first.episode.steps), "", used))
    return tuple(found)
