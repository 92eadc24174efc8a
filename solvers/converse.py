"""How an LLM agent leads a conversation: the environment's tools, and a user who hears every reply without a call."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from harness.protocols import Episode, Remaining, SolverConversation
from harness.records.chat import ChatReply, ToolCall
from harness.records.environment import ToolSpec

USER_SIDE = "user__"  # before the name of a tool of the user's side, where the agent's side has one of that name too
SOLO = "Nobody answers you. When everything is done, reply without calling a tool: that ends your work."
EMPTY = "(no words)"


def tool_schemas(tools: Sequence[ToolSpec]) -> dict[str, tuple[dict[str, Any], ToolSpec]]:
    """What a model is shown of each tool, by the name it is to use."""
    agents = {tool.name for tool in tools if tool.namespace == "agent"}
    shown: dict[str, tuple[dict[str, Any], ToolSpec]] = {}
    for tool in tools:
        name = f"{USER_SIDE}{tool.name}" if tool.namespace == "user" and tool.name in agents else tool.name
        function = {"name": name, "description": tool.description, "parameters": tool.parameters or {"type": "object"}}
        shown[name] = ({"type": "function", "function": function}, tool)
    return shown


async def converse(episode: Episode, conversation: SolverConversation, temperature: float | None) -> None:
    """Ask the model, carry out its calls, pass on what it says, until the user ends it or, alone, the model does.

    The end of a conversation closes the gate: whatever handle is used next refuses, and that ends this loop.
    """
    assert episode.model is not None
    shown = tool_schemas(conversation.tools)
    messages = opening(episode, conversation)
    while True:
        reply = await episode.model.chat(
            messages, tools=[schema for schema, _ in shown.values()], temperature=temperature
        )
        messages.append(spoken(reply))
        if reply.tool_calls:
            for call in reply.tool_calls:
                content = await answer(call, conversation, shown)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": content})
            continue
        if conversation.opening is None:
            return
        heard = await conversation.say(reply.content or EMPTY)
        if heard.ended:
            return
        messages.append({"role": "user", "content": heard.text + _warning(episode.remaining())})


def opening(episode: Episode, conversation: SolverConversation) -> list[dict[str, Any]]:
    """The first messages: the policy word for word, and what the user says first."""
    system = {"role": "system", "content": episode.instruction}
    if conversation.opening is None:
        return [system, {"role": "user", "content": SOLO}]
    return [system, {"role": "user", "content": conversation.opening}]


def spoken(reply: ChatReply) -> dict[str, Any]:
    """The assistant message to put back: as the service sent it, or else made from what was understood."""
    if reply.message:
        return {"role": "assistant", **reply.message}
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in reply.tool_calls
    ]
    message: dict[str, Any] = {"role": "assistant", "content": reply.content}
    return {**message, "tool_calls": calls} if calls else message


async def answer(
    call: ToolCall, conversation: SolverConversation, shown: dict[str, tuple[dict[str, Any], ToolSpec]]
) -> str:
    """Carry out one tool call. What the model wrote as arguments goes to the environment as far as it is JSON; a tool
    that is not there is the environment's to refuse."""
    try:
        arguments: Any = json.loads(call.arguments or "{}", parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        return f"[nothing was done: the arguments are not JSON: {error}]"
    tool = shown[call.name][1] if call.name in shown else None
    name, namespace = (tool.name, tool.namespace) if tool is not None else (call.name, "agent")
    made = await conversation.call(name, arguments, namespace=namespace, id=call.id)
    return made.content


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


def _warning(left: Remaining) -> str:
    """Not the user's words, but the harness's: the model should know when its last steps have come."""
    return f"\n[{left.steps} steps are left]" if left.steps is not None and left.steps <= 2 else ""
