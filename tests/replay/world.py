"""A small world for replays: an account for the agent to book on, a lamp for the user, and a recorder of episodes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from harness.records.archive import Step
from harness.records.base import digest_of
from harness.records.environment import Answer, Call, Capabilities, EnvironmentFault, Opening, ToolSpec
from harness.records.replay import STATE, RecordedEpisode, States
from harness.records.vocabulary import Actor, Phase

RULE = "of the account and the lamp"
TOOLS = (
    ToolSpec(name="book", writes=True),
    ToolSpec(name="balance"),
    ToolSpec(name="hand_over", ends=True),
    ToolSpec(name="note"),
    ToolSpec(name="dice", deterministic=False),
    ToolSpec(name="shuffle", writes=True, deterministic=False),
    ToolSpec(name="switch", namespace="user", writes=True),
    ToolSpec(name="look", namespace="user"),
)
MODES: dict[str, dict[str, tuple[str, ...]]] = {
    "normal": {"agent": ("agent",), "user": ("user",), "reference": ("agent", "user")},
    "solo": {"agent": ("agent", "user"), "reference": ("agent", "user")},
    "deaf": {"agent": ("agent",), "reference": ("agent",)},
}
CAPABILITIES = Capabilities(
    environment="desk@1", code="sha256:0", modes=MODES, tools=TOOLS, data=("plain", "rich"), digest=RULE
)
_THROWS = count()


@dataclass
class Desk:
    """An environment. `opened` counts its instances; `without` a tool; `number` writes amounts in its own way."""

    without: str = ""
    number: type = int
    fails_at: int = -1
    opened: int = 0
    start: int = 100
    capabilities: Capabilities = CAPABILITIES

    def __post_init__(self) -> None:
        if self.without:
            kept = tuple(tool for tool in TOOLS if tool.name != self.without)
            self.capabilities = CAPABILITIES.model_copy(update={"tools": kept})

    @contextmanager
    def open(self, opening: Opening) -> Iterator[DeskSession]:
        if "broken" in opening.initial:
            raise EnvironmentFault("the initial state is not reached")
        self.opened += 1
        start = 1000 if opening.data == "rich" else self.start
        yield DeskSession(self, opening.mode, {"cash": start, "lamp": bool(opening.initial.get("lamp"))})


@dataclass
class DeskSession:
    desk: Desk
    mode: str
    state: dict[str, Any]
    calls: int = 0

    def call(self, call: Call) -> Answer:
        known = {(tool.name, tool.namespace) for tool in self.desk.capabilities.tools}
        spaces = MODES[self.mode].get(call.actor.value, ())
        if (call.name, call.namespace) not in known or call.namespace not in spaces:
            return Answer(f"Error: no tool {call.name}", error=True, missing=True)
        if self.calls == self.desk.fails_at:
            raise EnvironmentFault("the desk is gone")
        self.calls += 1
        if call.name == "book":
            amount = call.arguments.get("amount") if isinstance(call.arguments, dict) else None
            if not isinstance(amount, int) or self.state["cash"] + amount < 0:
                return Answer(f"Error: cannot book {amount}", error=True)
            self.state["cash"] += amount
            return Answer(
                json.dumps({"booked": self.desk.number(amount), "cash": self.desk.number(self.state["cash"])})
            )
        if call.name == "balance":
            return Answer(json.dumps({"cash": self.desk.number(self.state["cash"])}))
        if call.name == "switch":
            self.state["lamp"] = not self.state["lamp"]
        if call.name == "shuffle":
            self.state["cash"] = next(_THROWS)
        if call.name in ("dice", "shuffle"):
            return Answer(f"rolled {next(_THROWS)}")
        return Answer(json.dumps({"lamp": self.state["lamp"]}) if call.namespace == "user" else "done")

    def digest(self) -> str:
        return digest_of(self.state)

    def snapshot(self) -> bytes:
        return json.dumps(self.state).encode()

    def restore(self, state: bytes) -> None:
        self.state = json.loads(state)


@dataclass
class Recorder:
    """Leads an episode in a desk and writes it down as an archive would. `states`: with digests of states."""

    mode: str = "normal"
    states: bool = True
    desk: Desk = field(default_factory=Desk)
    steps: list[Step] = field(default_factory=list)

    def __post_init__(self) -> None:
        with self.desk.open(Opening(self.mode)) as session:
            self._session = session
        self._start = self._session.digest()
        self._ids = count()

    def says(self, actor: Actor, text: str) -> Recorder:
        if actor is Actor.AGENT:
            self.steps.append(Step("model.call", actor, {}))
        self.steps.append(Step("message", actor, {"content": text}))
        return self

    def calls(self, name: str, actor: Actor = Actor.AGENT, **arguments: Any) -> Recorder:
        namespace = next((tool.namespace for tool in TOOLS if tool.name == name), "agent")
        if actor is Actor.AGENT:
            self.steps.append(Step("model.call", actor, {}))
        answer = self._session.call(Call(actor, name, dict(arguments), namespace))
        id_ = f"c{next(self._ids)}"
        payload = {"gen_ai.tool.name": name, "arguments": dict(arguments), "gen_ai.tool.call.id": id_}
        self.steps.append(Step("tool.call", actor, payload))
        result: dict[str, Any] = {"content": answer.content, "error": answer.error, "gen_ai.tool.call.id": id_}
        if self.states:
            result[STATE] = self._session.digest()
        self.steps.append(Step("tool.result", Actor.ENVIRONMENT, result))
        return self

    def expects(self, name: str, **arguments: Any) -> Recorder:
        payload = {"gen_ai.tool.name": name, "arguments": arguments}
        self.steps.append(Step("reference.action", Actor.REFERENCE, payload, Phase.GRADING))
        return self

    def episode(self, **changes: Any) -> RecordedEpisode:
        states = States(rule=RULE, start=self._start, end=self._session.digest()) if self.states else States()
        made = RecordedEpisode(
            "t/0", "t", 0, tuple(self.steps), mode=self.mode, end="user_stop", format="tau2", states=states
        )
        return replace(made, **changes)


def usual(*, states: bool = True) -> RecordedEpisode:
    """Two bookings, a look between them, one that is refused, and a user who switches the lamp."""
    made = Recorder(states=states)
    made.says(Actor.USER, "book 20, then 30").calls("book", amount=20).calls("balance").calls("book", amount=30)
    made.calls("book", amount=-500).says(Actor.AGENT, "switch the lamp, please").calls("switch", Actor.USER)
    made.says(Actor.USER, "I did").calls("balance").says(Actor.AGENT, "150 in all").says(Actor.USER, "###STOP###")
    return made.expects("book", amount=50).expects("switch").episode()


def alone() -> RecordedEpisode:
    """An agent with all tools and no user."""
    made = Recorder(mode="solo").calls("book", amount=5).calls("switch").calls("balance")
    return made.says(Actor.AGENT, "###STOP###").episode(end="agent_stop")


def index_of(episode: RecordedEpisode, name: str, nth: int = 0) -> int:
    """The index of the nth call of a tool."""
    found = [i for i, step in enumerate(episode.steps) if step.payload.get("gen_ai.tool.name") == name]
    return found[nth]


def edited(episode: RecordedEpisode, at: int, **payload: Any) -> RecordedEpisode:
    """The episode with fields of a step's payload changed."""
    steps = list(episode.steps)
    old = steps[at]
    steps[at] = Step(old.kind, old.actor, {**old.payload, **payload}, old.phase, old.wall, old.span, old.parent)
    return replace(episode, steps=tuple(steps))


def without(episode: RecordedEpisode, *at: int) -> RecordedEpisode:
    """The episode without some of its steps."""
    steps: Sequence[Step] = [step for index, step in enumerate(episode.steps) if index not in at]
    return replace(episode, steps=tuple(steps))
