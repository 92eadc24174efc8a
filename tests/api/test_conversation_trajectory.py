"""A conversation that a model led, as an ATIF trajectory: everything once, and what the user's own tools said not."""

from __future__ import annotations

import pytest

from harness.api.export_atif import trajectory
from harness.records.chat import ToolCall
from harness.records.conversation import Action
from solvers.agent import Agent
from tests.runner.conversations import Counter, conversation, make_talk, talking
from tests.runner.scenes import FakeModel, carry_out, reply

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_everything_is_in_it_once() -> None:
    call = ToolCall(id="c1", name="add", arguments='{"by": 2}')
    spoken = {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "add", "arguments": '{"by": 2}'}}]}
    replies = [
        reply().model_copy(update={"content": None, "tool_calls": (call,), "message": spoken}),
        reply().model_copy(update={"content": "Press the button.", "message": {"content": "Press the button."}}),
        reply().model_copy(update={"content": "It comes to 3.", "message": {"content": "It comes to 3."}}),
    ]
    services = talking(Agent().run, Counter(), model=FakeModel(list(replies)))
    press = Action(name="press", actor="user", namespace="user", arguments={"by": 1})
    asked = conversation(actions=(Action(name="add", arguments={"by": 2}), press), outputs=("3",))
    await carry_out(services, make_talk(asked), model="fake-1")
    store = services.store
    made = trajectory(store.run("r1"), store.trial("r1.0000.1"), store)
    told = [
        (
            step["source"],
            step["message"],
            [one["function_name"] for one in step.get("tool_calls", ())],
            [one["content"] for one in step.get("observation", {}).get("results", ())],
        )
        for step in made["steps"]
    ]
    assert told == [
        ("user", "Please add 2 and tell me what comes of it.", [], []),
        ("system", "Do what the user wants.", [], []),
        ("agent", "", ["add"], ['{"value": 2}']),
        ("agent", "Press the button.", [], []),
        ("user", 'I pressed it: {"value": 3}', [], []),
        ("agent", "It comes to 3.", [], []),
        ("user", "Thanks, bye.", [], []),
    ]
    assert sum("metrics" in step for step in made["steps"]) == 3
