"""How a model leads a conversation: its calls reach the tools of their side, its words the user, its slips itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from harness.protocols import Heard
from harness.records.environment import Answer, ToolSpec
from harness.testing import ScriptedModel, calls, says
from solvers.agent import Agent
from solvers.converse import EMPTY, SOLO, tool_schemas
from tests.solvers.scenes import StageSandbox, make_episode

pytestmark = pytest.mark.anyio
TOOLS = (ToolSpec(name="add", description="Adds."), ToolSpec(name="press", namespace="user"))


@dataclass
class Talk:
    """A :class:`harness.protocols.SolverConversation` of fixed answers; the last of them ends it."""

    answers: list[str]
    opening: str | None = "Hello."
    tools: tuple[ToolSpec, ...] = TOOLS
    called: list[tuple[str, Any, str, str]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    async def call(self, name: str, arguments: Any, *, namespace: str = "agent", id: str = "") -> Answer:
        self.called.append((name, arguments, namespace, id))
        return Answer(f"{name} did it")

    async def say(self, text: str) -> Heard:
        self.said.append(text)
        return Heard(self.answers[len(self.said) - 1], ended=len(self.said) == len(self.answers))


async def lead(talk: Talk, *lines: Any) -> ScriptedModel:
    model = ScriptedModel(*lines)
    await Agent().run(make_episode(StageSandbox(), model, instruction="The policy.", conversation=talk))
    return model


async def test_it_calls_hears_and_ends_when_the_user_does() -> None:
    talk = Talk(["And now?", "Bye."])
    model = await lead(talk, calls(("add", {"by": 1}), ("press", {})), says("Done so far."), says("That was it."))
    assert talk.called == [("add", {"by": 1}, "agent", "call-0"), ("press", {}, "user", "call-1")]
    assert talk.said == ["Done so far.", "That was it."]
    first, _, last = model.heard
    assert [message["content"] for message in first] == ["The policy.", "Hello."]
    assert [message["content"] for message in last if message["role"] in ("tool", "user")] == [
        "Hello.",
        "add did it",
        "press did it",
        "And now?",
    ]
    assert [tool["function"]["name"] for tool in model.asked[0]["tools"]] == ["add", "press"]


async def test_alone_it_works_until_it_calls_nothing_more() -> None:
    talk = Talk([], opening=None)
    model = await lead(talk, calls(("press", {})), says("Done."))
    assert talk.said == []
    assert model.heard[0][-1]["content"] == SOLO


async def test_what_is_no_json_does_not_reach_the_environment_and_what_is_no_tool_does() -> None:
    talk = Talk(["Bye."])
    model = await lead(talk, calls(("add", "{by: 1"), ("fly", {"to": "moon"}), ("add", "[1]")), says(""))
    assert talk.called == [("fly", {"to": "moon"}, "agent", "call-1"), ("add", [1], "agent", "call-2")]
    assert "not JSON" in model.heard[1][-3]["content"]
    assert talk.said == [EMPTY]


def test_tools_of_both_sides_with_one_name_are_told_apart() -> None:
    shown = tool_schemas((ToolSpec(name="add"), ToolSpec(name="add", namespace="user")))
    assert {name: tool.namespace for name, (_, tool) in shown.items()} == {"add": "agent", "user__add": "user"}
