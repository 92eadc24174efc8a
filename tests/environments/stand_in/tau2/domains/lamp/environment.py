"""A lamp: the agent counts bulbs in a store, the user switches; what the user's lamp needs, the store hears of."""

# mypy: ignore-errors
# tau2 is found only where this folder is on the path.
import hashlib
import json
from typing import Any

from tau2.data_model.message import ToolCall, ToolMessage
from tau2.data_model.tasks import EnvFunctionCall, InitializationData
from tau2.environment.toolkit import ToolKitBase, ToolType, is_tool

print("stand-in: this must not get among the answers")


class StoreTools(ToolKitBase):
    @is_tool(ToolType.READ)
    def count_bulbs(self) -> int:
        """How many bulbs there are."""
        return int(self.db["bulbs"])

    @is_tool(ToolType.WRITE)
    def send_bulb(self, to: str) -> str:
        """Send one."""
        if self.db["bulbs"] < 1:
            raise ValueError("no bulb is left")
        self.db["bulbs"] -= 1
        return f"sent to {to}"

    def assert_bulbs(self, expected: int) -> bool:
        return bool(self.db["bulbs"] == expected)


class LampTools(ToolKitBase):
    @is_tool(ToolType.WRITE)
    def press_switch(self) -> str:
        """Press it."""
        self.db["on"] = not self.db["on"]
        return "on" if self.db["on"] else "off"

    def break_lamp(self) -> str:
        self.db["on"] = False
        return "broken"


class LampEnvironment:
    def __init__(self, *, solo_mode: bool) -> None:
        self.tools, self.user_tools, self.solo_mode = StoreTools({"bulbs": 2}), LampTools({"on": False}), solo_mode

    def set_state(self, data: InitializationData | None, actions: list[EnvFunctionCall], history: list[Any]) -> None:
        if data is not None:
            self.tools.db.update(data.agent_data or {})
            self.user_tools.db.update(data.user_data or {})
        for action in actions:
            self.run_env_function_call(action)

    def run_env_function_call(self, call: EnvFunctionCall) -> Any:
        kit = self.user_tools if call.env_type == "user" else self.tools
        return getattr(kit, call.func_name)(**call.arguments)

    def get_response(self, call: ToolCall) -> ToolMessage:
        try:
            kit: ToolKitBase = self.user_tools if call.requestor == "user" else self.tools
            if self.solo_mode and self.user_tools.has_tool(call.name):
                kit = self.user_tools
            if not kit.has_tool(call.name):
                raise ValueError(f"Tool '{call.name}' not found.")
            said, error = getattr(kit, call.name)(**call.arguments), False
        except Exception as problem:  # noqa: BLE001  as the original has it
            said, error = f"Error: {problem}", True
        return ToolMessage(call.id, said if isinstance(said, str) else json.dumps(said), call.requestor, error)

    def get_db_hash(self) -> str:
        return hashlib.sha256(json.dumps(self.tools.db, sort_keys=True).encode()).hexdigest()

    def get_user_db_hash(self) -> str:
        return hashlib.sha256(json.dumps(self.user_tools.db, sort_keys=True).encode()).hexdigest()


def get_environment(solo_mode: bool = False) -> LampEnvironment:
    return LampEnvironment(solo_mode=solo_mode)
