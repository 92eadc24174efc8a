"""A small world with tools and a user: a counter that both sides can turn, and a tool that is never twice the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from harness.grading.conversation import ConversationGrader
from harness.protocols import EpisodeGrader, SolverConversation
from harness.records.base import digest_of
from harness.records.conversation import Action, Conversation, UserRule, UserScript
from harness.records.environment import Answer, Call, Capabilities, EnvironmentFault, Opening, ToolSpec
from harness.records.task import Budget, FileTree, Grading, ImagePin, Solution, Task, TreeFile
from harness.records.vocabulary import Actor
from harness.runner.conversing import environment_digest
from harness.runner.services import Services
from harness.simulation.user import ScriptedUser
from tests.runner.scenes import DIGEST, Script, make_services

TOOLS = (
    ToolSpec(name="add", writes=True),
    ToolSpec(name="show"),
    ToolSpec(name="hand_over", ends=True),
    ToolSpec(name="dice", deterministic=False),
    ToolSpec(name="press", namespace="user", writes=True),
)
ALL = ("agent", "user")
_NUMBERS = count()


@dataclass
class CounterSession:
    mode: str
    value: int = 0
    broken: bool = False

    def call(self, call: Call) -> Answer:
        allowed = MODES[self.mode].get(call.actor.value, ())
        if call.namespace not in allowed or (call.name, call.namespace) not in {(t.name, t.namespace) for t in TOOLS}:
            return Answer(f"no tool {call.name}", error=True, missing=True)
        if self.broken:
            raise EnvironmentFault("the counter fell off the table")
        if call.name in ("add", "press"):
            by = call.arguments.get("by", 1) if isinstance(call.arguments, dict) else None
            if not isinstance(by, int):
                return Answer("by is a whole number", error=True)
            self.value += by
        if call.name == "dice":
            return Answer(str(next(_NUMBERS)))
        return Answer(json.dumps({"value": self.value}))

    def digest(self) -> str:
        return digest_of(self.value)

    def snapshot(self) -> bytes:
        return json.dumps(self.value).encode()

    def restore(self, state: bytes) -> None:
        self.value = json.loads(state)


MODES: dict[str, dict[str, tuple[str, ...]]] = {
    "normal": {"agent": ("agent",), "user": ("user",), "reference": ALL},
    "solo": {"agent": ALL, "reference": ALL},
}


CAPABILITIES = Capabilities(
    environment="counter@1", code=DIGEST, modes=MODES, tools=TOOLS, digest="of the value", snapshots=True
)


@dataclass
class Counter:
    """`sessions` holds every instance that was ever opened."""

    sessions: list[CounterSession] = field(default_factory=list)
    broken: bool = False
    capabilities: Capabilities = CAPABILITIES

    @contextmanager
    def open(self, opening: Opening) -> Iterator[CounterSession]:
        if opening.mode not in MODES:
            raise EnvironmentFault(f"there is no mode {opening.mode!r}")
        session = CounterSession(opening.mode, int(opening.initial.get("value", 0)), self.broken)
        self.sessions.append(session)
        yield session


USER = UserScript(
    opening="Please add {number} and tell me what comes of it.",
    facts={"number": "2", "request": "Add {number}."},
    lost=("What do you mean?",),
    rules=(
        UserRule(when=("press the button",), say=("I pressed it: {answer}",), call=Action(name="press")),
        UserRule(when=("comes to",), say=("Thanks, bye.",), ends=True),
    ),
    patience=2,
)


def conversation(**changes: Any) -> Conversation:
    """Adds 2 and says so; the user leaves when told what it comes to."""
    values: dict[str, Any] = {
        "environment": "counter@1",
        "mode": "normal",
        "user": USER,
        "actions": (Action(name="add", arguments={"by": 2}),),
        "outputs": ("2",),
        **changes,
    }
    return Conversation(**values)


def steps(*lines: dict[str, Any]) -> Solution:
    text = "".join(json.dumps(line) + "\n" for line in lines).encode()
    return Solution(script="steps.jsonl", files=FileTree(files=(TreeFile(path="steps.jsonl", content=text),)))


GOLD = steps({"call": "add", "arguments": {"by": 2}}, {"say": "It comes to 2."})


def make_talk(asked: Conversation | None = None, **changes: Any) -> Task:
    """A task that is a conversation."""
    values: dict[str, Any] = {
        "id": "talk/1",
        "family": "talk",
        "instruction": "Do what the user wants.",
        "image": ImagePin(reference="environment:counter@1", digest=environment_digest(Counter(), "normal", "")),
        "budget": Budget(wall_s=60.0),
        "solution": GOLD,
        "grading": Grading(grader="conversation@1", timeout_s=10.0),
        "conversation": asked or conversation(),
        **changes,
    }
    return Task(**values)


def talking(script: Script, world: Counter, grader: EpisodeGrader | None = None, **changes: Any) -> Services:
    """Services of a run of conversations in `world`."""
    services = make_services(script, **changes)
    return replace(
        services,
        environment=lambda asked: world,
        episode_grader=lambda reference: grader or ConversationGrader(),
        user=lambda script, seed: ScriptedUser(script, seed),
    )


def of(episode: Any) -> SolverConversation:
    """The conversation of an episode that has one."""
    found: SolverConversation | None = episode.conversation
    assert found is not None
    return found


async def gold(episode: Any) -> None:
    """Solve the task."""
    await of(episode).call("add", {"by": 2})
    await of(episode).say("It comes to 2.")


def by(actor: Actor, events: list[Any], kind: str) -> list[Any]:
    return [event for event in events if event.actor is actor and event.kind == kind]
