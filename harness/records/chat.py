"""A chat with a language model, as the solver sees it and as it is metered."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from harness.records.base import Record
from harness.records.usage import Usage


class ChatRequest(Record):
    """One model call in the OpenAI chat shape."""

    model: str
    messages: tuple[dict[str, Any], ...] = Field(min_length=1)
    tools: tuple[dict[str, Any], ...] = ()
    max_tokens: int | None = Field(default=None, gt=0)
    temperature: float | None = None
    seed: int | None = None


class ToolCall(Record):
    """A tool call; `arguments` is the model's own text, which may not be JSON."""

    id: str
    name: str
    arguments: str


class ChatReply(Record):
    """A model's answer. `usage` None: the service did not say."""

    content: str | None
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str | None = None
    usage: Usage | None = None
    response_id: str | None = None
    model: str | None = None  # as the service names it
    provider: str | None = None
    service_tier: str | None = None  # how it was served, by the service's own word ("flex", "priority"); None: not said
    message: dict[str, Any] = {}  # the assistant message to put back into the conversation


class Attempt(Record):
    """One HTTP attempt at a model call. Failed attempts that may have been charged carry what is known."""

    number: int = Field(ge=1)
    status: int | None = None
    error: str | None = None
    duration_s: float = 0.0
    waited_s: float = 0.0  # before this attempt, for back-off or Retry-After
    response_id: str | None = None
    usage: Usage | None = None
    charged: bool | None = None  # None: unknown (a stream that was cut)
