"""Tool kits: methods that are marked are tools, the others are functions of a task's set-up and checks."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class ToolType(StrEnum):
    READ = "read"
    WRITE = "write"


def is_tool(kind: ToolType) -> Callable[[Any], Any]:
    def mark(method: Any) -> Any:
        method.__tool_type__ = kind
        return method

    return mark


@dataclass
class Tool:
    name: str
    about: str

    @property
    def openai_schema(self) -> dict[str, Any]:
        return {"function": {"description": self.about, "parameters": {"type": "object"}}}


class ToolKitBase:
    def __init__(self, db: dict[str, Any]) -> None:
        self.db = db

    def get_tools(self) -> dict[str, Tool]:
        marked = (name for name in dir(type(self)) if hasattr(getattr(type(self), name), "__tool_type__"))
        return {name: Tool(name, str(getattr(type(self), name).__doc__)) for name in marked}

    def has_tool(self, name: str) -> bool:
        return name in self.get_tools()

    def tool_type(self, name: str) -> ToolType:
        kind: ToolType = getattr(type(self), name).__tool_type__
        return kind
