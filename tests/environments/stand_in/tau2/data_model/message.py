"""Calls and answers, as far as a carrier of tau2 uses them."""

from dataclasses import dataclass
from typing import Any


@dataclass
class ToolCall:
    id: str
    name: str
    arguments: dict[str, Any]
    requestor: str = "assistant"


@dataclass
class ToolMessage:
    id: str
    content: str
    requestor: str
    error: bool
