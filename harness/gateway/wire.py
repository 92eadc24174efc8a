"""The OpenAI chat shape on the wire: requests out, replies and streams in. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from harness.gateway.refusals import said_in
from harness.gateway.retrying import FailedAttempt
from harness.records.chat import ChatReply, ChatRequest, ToolCall
from harness.records.usage import Usage

Normalise = Callable[[Any], Usage | None]


OPTIONAL = ("max_completion_tokens", "temperature", "seed")


def request_body(
    request: ChatRequest, *, stream: bool, renamed: Mapping[str, str | None] = MappingProxyType({})
) -> bytes:
    """The JSON body of a call. ASCII escapes carry lone surrogates (CASES E07).

    `renamed` maps an optional parameter to the name this service knows it by, or to None when it knows none.
    """
    body: dict[str, Any] = {"model": request.model, "messages": list(request.messages)}
    if request.tools:
        body["tools"] = list(request.tools)
    values = {"max_completion_tokens": request.max_tokens, "temperature": request.temperature, "seed": request.seed}
    for key, value in values.items():
        name = renamed.get(key, key)
        if value is not None and name is not None:
            body[name] = value
    if stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return json.dumps(body, allow_nan=False).encode()


def refused_parameter(text: str, renamed: Mapping[str, str | None]) -> tuple[str, str | None] | None:
    """Which optional parameter a refusal names, and what to send instead; None when it names none.

    Newer services know `max_completion_tokens` only, older ones `max_tokens` only, some models no `temperature`.
    """
    for key in OPTIONAL:
        name = renamed.get(key, key)
        if name is not None and re.search(rf"\b{name}\b", text):
            return key, "max_tokens" if name == "max_completion_tokens" else None
    return None


def read_reply(body: Any, provider: str, normalise: Normalise) -> ChatReply:
    """A reply from a response body. Raises FailedAttempt when it holds no answer: what was paid for is lost anyway."""
    if not isinstance(body, Mapping) or not isinstance(body.get("choices"), list) or not body["choices"]:
        raise FailedAttempt("the response holds no choices", status=200)
    choice = body["choices"][0]
    message = choice.get("message") if isinstance(choice, Mapping) else None
    if not isinstance(message, Mapping):
        raise FailedAttempt("the response holds no message", status=200)
    content = message.get("content")
    return ChatReply(
        content=content if isinstance(content, str) else None,
        tool_calls=tuple(_tool_calls(message.get("tool_calls"))),
        finish_reason=_text(choice.get("finish_reason")),
        usage=normalise(body.get("usage")),
        response_id=_text(body.get("id")),
        model=_text(body.get("model")),
        provider=provider,
        service_tier=_text(body.get("service_tier")) or None,
        message={key: value for key, value in message.items() if value is not None},
    )


def _tool_calls(calls: Any) -> Iterable[ToolCall]:
    for number, call in enumerate(calls if isinstance(calls, list) else ()):
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping):
            arguments = function.get("arguments")
            yield ToolCall(
                id=_text(call.get("id")) or f"call_{number}",
                name=_text(function.get("name")) or "",
                arguments=arguments if isinstance(arguments, str) else json.dumps(arguments),
            )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


class StreamedReply:
    """Puts a streamed answer together from its events; `body` is then of the shape of one that was not streamed."""

    def __init__(self) -> None:
        self.done = False
        self._head: dict[str, Any] = {}
        self._usage: Any = None
        self._content: list[str] = []
        self._calls: dict[int, dict[str, Any]] = {}
        self._finish: Any = None

    @property
    def response_id(self) -> str | None:
        return _text(self._head.get("id"))

    @property
    def usage(self) -> Any:
        """The last usage that was sent: streams send cumulative values."""
        return self._usage

    def feed(self, line: str) -> None:
        """One line of the event stream. Raises FailedAttempt for an event that is no JSON, or an error event."""
        if not line.startswith("data:"):
            return
        data = line[5:].strip()
        if data == "[DONE]":
            self.done = True
            return
        try:
            event = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise FailedAttempt(f"the stream holds a broken event: {error}") from error
        if not isinstance(event, Mapping):
            return
        if event.get("error"):
            raise FailedAttempt(f"the stream ended in an error: {said_in(json.dumps(event['error']))}", status=200)
        self._head = {key: event.get(key) or self._head.get(key) for key in ("id", "model", "service_tier")}
        self._usage = event.get("usage") or self._usage
        try:
            for choice in event.get("choices") or ():
                self._take(choice)
        except (AttributeError, TypeError, ValueError, OverflowError) as error:
            raise FailedAttempt(f"the stream holds an event of another shape: {error}", status=200) from error

    def _take(self, choice: Mapping[str, Any]) -> None:
        delta = choice.get("delta") or {}
        if isinstance(delta.get("content"), str):
            self._content.append(delta["content"])
        for part in delta.get("tool_calls") or ():
            call = self._calls.setdefault(
                int(part.get("index", 0)), {"id": None, "type": "function", "function": {"name": "", "arguments": ""}}
            )
            call["id"] = part.get("id") or call["id"]
            function = part.get("function") or {}
            call["function"]["name"] += function.get("name") or ""
            call["function"]["arguments"] += function.get("arguments") or ""
        self._finish = choice.get("finish_reason") or self._finish

    @property
    def body(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": "".join(self._content) or None}
        if self._calls:
            message["tool_calls"] = [self._calls[index] for index in sorted(self._calls)]
        return {
            **self._head,
            "choices": [{"message": message, "finish_reason": self._finish}],
            "usage": self._usage,
        }
