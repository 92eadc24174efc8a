"""A shop with two sides, small enough to see through: an environment for tests of graders and of the cross table.

It stores argument lists by reference and keeps a log of what was called, as tau-bench's does: cancelling an order
lengthens the payment list of the logged booking.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from harness.grading.episodes.conversation import copied
from harness.protocols import EpisodeCase
from harness.records.archive import Step
from harness.records.calls import call_of
from harness.records.environment import Answer, Call, Capabilities, EnvironmentFault, Opening, ToolSpec
from harness.records.replay import Fidelity, Invalid, RecordedEpisode, Replayed
from harness.records.vocabulary import Actor, Outcome

_TOOLS = (
    ToolSpec(name="book", writes=True),
    ToolSpec(name="cancel", writes=True),
    ToolSpec(name="look"),
    ToolSpec(name="transfer_to_human_agents", ends=True),
    ToolSpec(name="close", writes=True, ends=True),
    ToolSpec(name="toggle", namespace="user", writes=True),
    ToolSpec(name="is_on", namespace="user.checks"),
)
_ALL = ("agent", "user", "user.checks")


class Shop:
    """An :class:`harness.protocols.Environment`. Data version "late" says that the shop is closed."""

    def __init__(self, digest: str = "sha256 of sorted JSON", without: str = "") -> None:
        self.opened = 0
        self.capabilities = Capabilities(
            environment="shop@1",
            code="sha256:shop",
            modes={
                "normal": {"agent": ("agent",), "user": ("user",), "reference": _ALL},
                "solo": {"agent": ("agent", "user"), "reference": _ALL},
            },
            tools=tuple(tool for tool in _TOOLS if tool.name != without),
            data=("early", "late"),
            digest=digest,
        )

    @contextmanager
    def open(self, opening: Opening) -> Iterator[ShopSession]:
        if opening.mode not in self.capabilities.modes:
            raise EnvironmentFault(f"no mode {opening.mode!r}", place="shop@1")
        self.opened += 1
        yield ShopSession(self.capabilities, opening)


class ShopSession:
    """An :class:`harness.protocols.EnvironmentSession`."""

    def __init__(self, capabilities: Capabilities, opening: Opening) -> None:
        self.capabilities, self.mode = capabilities, opening.mode
        self.open_now = opening.data != "late"
        self.orders: dict[str, Any] = {}
        self.switches: dict[str, Any] = dict(opening.initial)
        self.closed = False
        self.log: list[dict[str, Any]] = []

    def call(self, call: Call) -> Answer:
        spaces = self.capabilities.modes[self.mode].get(call.actor.value, ())
        if call.namespace not in spaces or self.capabilities.tool(call.name, call.namespace) is None:
            return Answer(f"no tool {call.name}", error=True, missing=True)
        arguments = copied(call.arguments)
        self.log.append({"name": call.name, "kwargs": arguments})
        return Answer(*getattr(self, f"_{call.name}")(**arguments))

    def _book(self, id: str, payments: list[Any]) -> tuple[str, bool]:
        if any(isinstance(amount, (int, float)) and amount < 0 for amount in payments):
            return "Error: negative payment", True
        self.orders[id] = {"payments": payments}
        return f"booked {id}", False

    def _cancel(self, id: str) -> tuple[str, bool]:
        if id not in self.orders:
            return "Error: no such order", True
        payments = self.orders[id]["payments"]
        payments.extend([-amount for amount in payments])
        return f"cancelled {id}", False

    def _look(self) -> tuple[str, bool]:
        return ("open" if self.open_now else "shut") + f", {len(self.orders)} orders", False

    def _transfer_to_human_agents(self, summary: str = "") -> tuple[str, bool]:
        return "Transfer successful", False

    def _close(self) -> tuple[str, bool]:
        self.closed = True
        return "closed", False

    def _toggle(self, name: str) -> tuple[str, bool]:
        self.switches[name] = not self.switches.get(name, False)
        return f"{name} is {'on' if self.switches[name] else 'off'}", False

    def _is_on(self, name: str) -> tuple[str, bool]:
        return json.dumps(self.switches.get(name, False) is True), False

    def digest(self) -> str:
        state = {"orders": self.orders, "switches": self.switches, "closed": self.closed, "open": self.open_now}
        return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()

    def snapshot(self) -> bytes:
        raise EnvironmentFault("no snapshots", place="shop@1")

    def restore(self, state: bytes) -> None:
        raise EnvironmentFault("no snapshots", place="shop@1")


def make_shop(data_folder: object = None) -> Shop:
    """What a plug-in of an environment is: called with the data folder, which a shop does not need."""
    return Shop()


def say(text: str) -> list[Step]:
    """A message of the agent, with the model's turn before it."""
    return [Step("model.call", Actor.AGENT, {}), Step("message", Actor.AGENT, {"content": text})]


def hear(text: str) -> list[Step]:
    """A message of the user."""
    return [Step("message", Actor.USER, {"content": text})]


def do(tool: str, /, *, actor: Actor = Actor.AGENT, answer: str = "", **arguments: Any) -> list[Step]:
    """A call and its recorded answer."""
    payload = {"gen_ai.tool.name": tool, "arguments": arguments}
    turn = [Step("model.call", Actor.AGENT, {})] if actor is Actor.AGENT else []
    return [*turn, Step("tool.call", actor, payload), Step("tool.result", Actor.ENVIRONMENT, {"content": answer})]


def stop() -> list[Step]:
    """The user ends it."""
    return hear("Thanks. ###STOP###")


def episode(
    *parts: Sequence[Step], id: str = "1", outcome: Outcome = Outcome.UNGRADED, **fields: Any
) -> RecordedEpisode:
    """An episode of the shop."""
    steps = tuple(step for part in parts for step in part)
    return RecordedEpisode(id, fields.pop("task", id), fields.pop("repeat", 0), steps, outcome=outcome, **fields)


def replay(
    recorded: RecordedEpisode, shop: Shop, opening: Opening | None = None, invalid: Invalid | None = None
) -> Replayed:
    """The recorded calls made again; answers recorded as "" are not compared. As much of a replay as graders need."""
    opening = opening or Opening("normal")
    calls, first = 0, None
    with shop.open(opening) as session:
        for index, step in enumerate(recorded.steps):
            if step.kind != "tool.call":
                continue
            calls += 1
            answer = session.call(call_of(step, shop.capabilities, opening.mode))
            said = recorded.steps[index + 1].payload["content"]
            if first is None and said and said != answer.content:
                first = index
        end = session.digest()
    reason = invalid or (Invalid.DIVERGED if first is not None else None)
    fidelity = Fidelity(
        steps=calls, compared=calls, same=calls, cosmetic=0, key=0, missing=0, d_first=first, invalid=reason
    )
    return Replayed(recorded, "shop@1", opening.data or "early", opening.mode, (), fidelity, None if reason else end)


def case_of(
    recorded: RecordedEpisode, task: Any, shop: Shop | None = None, opening: Opening | None = None
) -> EpisodeCase:
    """What a grader gets of an episode."""
    shop, opening = shop or Shop(), opening or Opening("normal")
    return EpisodeCase(replay(recorded, shop, opening), task, shop, opening)
