"""Initial states, as far as a carrier of tau2 uses them."""

from dataclasses import dataclass
from typing import Any


@dataclass
class EnvFunctionCall:
    env_type: str
    func_name: str
    arguments: dict[str, Any]


@dataclass
class InitializationData:
    agent_data: dict[str, Any] | None = None
    user_data: dict[str, Any] | None = None
