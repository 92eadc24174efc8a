"""The OpenAI chat shape from the service's side: a turn as a message with plausible usage, whole or as a stream."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.simulation.script import Turn

CHARS_PER_TOKEN = 4
CACHE_BLOCK_TOKENS = 128
COMMAND_ARGUMENTS = ("command", "cmd", "script", "commands")


class BadRequest(Exception):
    """A request that cannot be answered; `status` and a message for whoever sent it."""

    def __init__(self, message: str, status: int = 400, code: str = "invalid_request_error") -> None:
        super().__init__(message)
        self.status = status
        self.code = code


@dataclass(frozen=True)
class Asked:
    """A chat request, as far as the simulation minds it."""

    model: str
    messages: tuple[Mapping[str, Any], ...]
    tool: str | None  # the offered tool that takes a command line, with the names of its arguments
    command_argument: str
    timeout_argument: str | None
    max_tokens: int | None
    stream: bool
    with_usage: bool

    @classmethod
    def read(cls, body: Any) -> Asked:
        """Raises BadRequest."""
        if not isinstance(body, Mapping):
            raise BadRequest("the body is no JSON object")
        model, messages = body.get("model"), body.get("messages")
        if not isinstance(model, str) or not model:
            raise BadRequest("`model` is missing")
        if not isinstance(messages, list) or not messages or not all(isinstance(m, Mapping) for m in messages):
            raise BadRequest("`messages` must be a list of objects, and not empty")
        limit = body.get("max_completion_tokens", body.get("max_tokens"))
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
            raise BadRequest("`max_tokens` must be a whole number of at least 1")
        options = body.get("stream_options")
        return cls(
            model,
            tuple(messages),
            *_shell_tool(body.get("tools")),
            max_tokens=limit,
            stream=body.get("stream") is True,
            with_usage=isinstance(options, Mapping) and options.get("include_usage") is True,
        )


def _shell_tool(tools: Any) -> tuple[str | None, str, str | None]:
    """Name, command argument and timeout argument of the first tool that takes a command line."""
    for tool in tools if isinstance(tools, list) else ():
        function = tool.get("function") if isinstance(tool, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            continue
        parameters = function.get("parameters")
        properties = parameters.get("properties") if isinstance(parameters, Mapping) else None
        if not isinstance(properties, Mapping):
            continue
        argument = next((name for name in COMMAND_ARGUMENTS if name in properties), None)
        if argument is not None:
            timeout = next((name for name in ("timeout_s", "timeout") if name in properties), None)
            return function["name"], argument, timeout
    return None, "command", None


@dataclass(frozen=True)
class Answer:
    """A complete answer, from which a body or a stream is made."""

    id: str
    model: str
    message: dict[str, Any]
    finish_reason: str
    usage: dict[str, Any]

    @property
    def body(self) -> dict[str, Any]:
        choice = {"index": 0, "message": self.message, "finish_reason": self.finish_reason}
        return {**self._head("chat.completion"), "choices": [choice], "usage": self.usage}

    def events(self, *, with_usage: bool) -> Iterator[bytes]:
        """The events of a stream: the role, the text and the arguments in pieces, the end, and usage if asked for."""
        yield self._event({"role": "assistant", "content": ""})
        for piece in _pieces(self.message.get("content") or ""):
            yield self._event({"content": piece})
        for index, call in enumerate(self.message.get("tool_calls", ())):
            function = {"name": call["function"]["name"], "arguments": ""}
            yield self._event({"tool_calls": [{"index": index, **call, "function": function}]})
            for piece in _pieces(call["function"]["arguments"]):
                yield self._event({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
        yield self._event({}, self.finish_reason)
        if with_usage:
            yield _line({**self._head("chat.completion.chunk"), "choices": [], "usage": self.usage})
        yield b"data: [DONE]\n\n"

    def _event(self, delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return _line({**self._head("chat.completion.chunk"), "choices": [choice]})

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": 0, "model": self.model}


def make_answer(asked: Asked, turn: Turn, response_id: str, reasoning_tokens: int) -> Answer:
    """An answer that says `turn`. Raises BadRequest when no tool was offered to run its command with."""
    message: dict[str, Any] = {"role": "assistant", "content": turn.text}
    reason = "stop"
    if turn.command is not None:
        if asked.tool is None:
            raise BadRequest("offer a tool that takes a command line in an argument `command`: the agent has to act")
        arguments: dict[str, Any] = {asked.command_argument: turn.command}
        if turn.timeout_s is not None and asked.timeout_argument is not None:
            arguments[asked.timeout_argument] = turn.timeout_s
        function = {"name": asked.tool, "arguments": json.dumps(arguments)}
        message["tool_calls"] = [{"id": f"call-{response_id[-12:]}", "type": "function", "function": function}]
        reason = "tool_calls"
    visible = tokens_of(turn.text) + tokens_of(turn.command or "")
    if asked.max_tokens is not None and visible + reasoning_tokens > asked.max_tokens:
        reasoning_tokens = min(reasoning_tokens, asked.max_tokens)
        visible = asked.max_tokens - reasoning_tokens
        message = _cut(message, visible * CHARS_PER_TOKEN)
        reason = "length"
    return Answer(response_id, asked.model, message, reason, _usage(asked.messages, visible, reasoning_tokens))


def _cut(message: dict[str, Any], chars: int) -> dict[str, Any]:
    """What is left of a message when the token limit strikes: text first, then arguments, which end amid their JSON."""
    text = message["content"][:chars]
    left = chars - len(text)
    calls = message.get("tool_calls")
    if not calls or left <= 0:
        return {"role": "assistant", "content": text}
    function = {**calls[0]["function"], "arguments": calls[0]["function"]["arguments"][:left]}
    return {"role": "assistant", "content": text, "tool_calls": [{**calls[0], "function": function}]}


def _usage(messages: Sequence[Mapping[str, Any]], visible: int, reasoning: int) -> dict[str, Any]:
    """Tokens at four characters each. What stood in the request before is read from the cache, in whole blocks."""
    sizes = [tokens_of(json.dumps(message, ensure_ascii=False)) for message in messages]
    spoken = [number for number, message in enumerate(messages) if message.get("role") == "assistant"]
    before = sum(sizes[: spoken[-1]]) if spoken else 0
    prompt, completion = sum(sizes), visible + reasoning
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": before // CACHE_BLOCK_TOKENS * CACHE_BLOCK_TOKENS},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }


def tokens_of(text: str) -> int:
    """A plausible number of tokens for a text."""
    return -(-len(text) // CHARS_PER_TOKEN)


def _pieces(text: str, size: int = 400) -> Iterator[str]:
    return (text[at : at + size] for at in range(0, len(text), size))


def _line(event: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(event).encode() + b"\n\n"
