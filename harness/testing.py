"""Doubles that ship with Assay, for tests of solvers, graders and runners: no engine, no network."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any

from harness.records.chat import ChatReply, ToolCall
from harness.records.usage import Usage
from harness.sandbox.memory import MemorySandbox, MemorySandboxProvider, Trouble, lost
from harness.sandbox.memory_files import MemoryFiles
from harness.sandbox.memory_process import Background, Process, Program
from harness.sandbox.tiny_shell import tiny_shell

__all__ = [
    "Background",
    "MemoryFiles",
    "MemorySandbox",
    "MemorySandboxProvider",
    "Process",
    "Program",
    "ScriptedModel",
    "Trouble",
    "calls",
    "lost",
    "says",
    "tiny_shell",
]


class ScriptedModel:
    """A :class:`harness.protocols.SolverModel` that says the lines it was given, in order; exceptions it raises.

    `heard` holds each conversation as it was when it was sent, `asked` the other arguments. Asked for more than it
    has, it fails the test.
    """

    def __init__(self, *lines: ChatReply | Exception, name: str = "scripted-1") -> None:
        self.name = name
        self.heard: list[list[dict[str, Any]]] = []
        self.asked: list[dict[str, Any]] = []
        self._lines = list(lines)

    async def chat(
        self,
        messages: Sequence[dict[str, Any]],
        *,
        tools: Sequence[dict[str, Any]] = (),
        max_tokens: int | None = None,
        temperature: float | None = None,
    ) -> ChatReply:
        self.heard.append(copy.deepcopy(list(messages)))
        self.asked.append({"tools": tuple(tools), "max_tokens": max_tokens, "temperature": temperature})
        if len(self.heard) > len(self._lines):
            raise AssertionError(f"the model was asked {len(self.heard)} times and has {len(self._lines)} lines")
        line = self._lines[len(self.heard) - 1]
        if isinstance(line, Exception):
            raise line
        return line


def says(text: str, *, finish_reason: str = "stop") -> ChatReply:
    """A reply of text alone."""
    message = {"role": "assistant", "content": text}
    return ChatReply(content=text, finish_reason=finish_reason, usage=Usage(input=10, output=2), message=message)


def calls(*made: tuple[str, Any]) -> ChatReply:
    """A reply that calls tools: (name, arguments) pairs; arguments that are text are sent as they are."""
    tool_calls = tuple(
        ToolCall(id=f"call-{number}", name=name, arguments=given if isinstance(given, str) else json.dumps(given))
        for number, (name, given) in enumerate(made)
    )
    plain = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in tool_calls
    ]
    return ChatReply(
        content=None,
        tool_calls=tool_calls,
        finish_reason="tool_calls",
        usage=Usage(input=10, output=2),
        message={"role": "assistant", "content": None, "tool_calls": plain},
    )
