"""`mock@tau2`: the smallest domain in which agent and user both have tools, each over a database of its own.

The agent keeps a list of tasks, the user has an inbox. In "normal" mode each side calls its own tools; in "solo" mode
there is no user, and the agent calls both. Any folder with `db.json` (tasks, users) and `user_db.json` (notifications)
will do. Facts: the mock domain of tau2-bench (MIT, © 2025 Sierra Research).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from harness.environments.folder import find, needed, read_database
from harness.environments.overlay import Database, Overlay
from harness.environments.session import AGENT, USER, code_of
from harness.environments.tau2_session import DIGEST, FUNCTIONS, Domain, Side, Tau2Session, reference_access
from harness.records.environment import Capabilities, EnvironmentFault, Opening, ToolSpec

NAME = "mock@tau2"
_MODULES = ("digests", "mock", "overlay", "tau2_session")


class Task(BaseModel):
    """An entry of the agent's list."""

    task_id: str
    title: str
    description: str | None = None
    status: Literal["pending", "completed"]


class User(BaseModel):
    """Whose list it is."""

    user_id: str
    name: str
    tasks: list[str]


class Notification(BaseModel):
    """A message in the user's inbox."""

    model_config = ConfigDict(extra="forbid")

    notification_id: str
    message: str
    status: Literal["unread", "read"] = "unread"
    task_id: str | None = None


_MODELS: dict[str, type[BaseModel]] = {"tasks": Task, "users": User, "notifications": Notification}


class MockTools:
    """The agent's tools, and what a task may check on its side."""

    def __init__(self, records: Overlay) -> None:
        self._records = records

    def create_task(self, user_id: Any, title: Any, description: Any = None) -> Any:
        """Adds a task to a user; its id counts those that there are."""
        self._require("users", user_id, "User")
        task_id = f"task_{self._records.count('tasks') + 1}"
        task = Task(task_id=task_id, title=title, description=description, status="pending").model_dump()
        self._records.put("tasks", task_id, task)
        self._records.change("users", user_id)["tasks"].append(task_id)
        return task

    def get_users(self) -> Any:
        """All users."""
        return [user for _, user in self._records.items("users")]

    def update_task_status(self, task_id: Any, status: Any) -> Any:
        """Changes a status."""
        self._require("tasks", task_id, "Task")
        task = self._records.change("tasks", task_id)
        task["status"] = status  # not validated: any word is kept
        return task

    def transfer_to_human_agents(self, summary: Any) -> Any:
        """Hands over; the episode goes on."""
        return "Transfer successful"

    def assert_number_of_tasks(self, user_id: Any, expected_number: Any) -> Any:
        """Whether a user has so many tasks."""
        self._require("users", user_id, "User")
        return len(self._records.read("users", user_id)["tasks"]) == expected_number

    def assert_task_status(self, task_id: Any, expected_status: Any) -> Any:
        """Whether a task has that status."""
        self._require("tasks", task_id, "Task")
        return self._records.read("tasks", task_id)["status"] == expected_status

    def _require(self, table: str, key: Any, what: str) -> None:
        if not self._records.has(table, key):
            raise ValueError(f"{what} {key} not found")


class MockUserTools:
    """The user's tools, and what a task may set up and check on that side."""

    def __init__(self, records: Overlay) -> None:
        self._records = records

    def check_notifications(self) -> Any:
        """All notifications."""
        return [notification for _, notification in self._records.items("notifications")]

    def dismiss_notification(self, notification_id: Any) -> Any:
        """Marks one as read."""
        self._require(notification_id)
        self._records.change("notifications", notification_id)["status"] = "read"
        return f"Notification {notification_id} dismissed"

    def add_notification(self, notification_id: Any, message: Any, task_id: Any = None) -> Any:
        """Adds one: what a task sets up."""
        added = Notification(notification_id=notification_id, message=message, task_id=task_id).model_dump()
        self._records.put("notifications", notification_id, added)
        return added

    def assert_notification_status(self, notification_id: Any, expected_status: Any) -> Any:
        """Whether one has that status."""
        self._require(notification_id)
        return self._records.read("notifications", notification_id)["status"] == expected_status

    def _require(self, notification_id: Any) -> None:
        if not self._records.has("notifications", notification_id):
            raise ValueError(f"Notification {notification_id} not found")


def _tool(name: str, namespace: str, *required: str, writes: bool = False, optional: tuple[str, ...] = ()) -> ToolSpec:
    schema = {
        "type": "object",
        "properties": {field: {"type": "string"} for field in (*required, *optional)},
        "required": list(required),
    }
    return ToolSpec(name=name, namespace=namespace, writes=writes, parameters=schema)


TOOLS = (
    _tool("create_task", AGENT, "user_id", "title", optional=("description",), writes=True),
    _tool("get_users", AGENT),
    _tool("transfer_to_human_agents", AGENT, "summary"),
    _tool("update_task_status", AGENT, "task_id", "status", writes=True),
    _tool("assert_number_of_tasks", AGENT + FUNCTIONS, "user_id", "expected_number"),
    _tool("assert_task_status", AGENT + FUNCTIONS, "task_id", "expected_status"),
    _tool("check_notifications", USER),
    _tool("dismiss_notification", USER, "notification_id", writes=True),
    _tool("add_notification", USER + FUNCTIONS, "notification_id", "message", optional=("task_id",), writes=True),
    _tool("assert_notification_status", USER + FUNCTIONS, "notification_id", "expected_status"),
)


class MockTau2:
    """An :class:`harness.protocols.Environment` with the modes "normal" and "solo".

    Raises EnvironmentFault when the folder lacks a database or a record does not fit.
    """

    def __init__(self, data_folder: Path | None) -> None:
        folder = needed(data_folder, NAME)
        self._sides = {
            AGENT: _side(find(folder, ("db.json",), below=("mock",)), ("tasks", "users")),
            USER: _side(find(folder, ("user_db.json",), below=("mock",)), ("notifications",)),
        }

    @cached_property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            environment=NAME,
            code=code_of(f"harness.environments.{name}" for name in _MODULES),
            modes={
                "normal": {AGENT: (AGENT,), USER: (USER,), **reference_access(AGENT, USER)},
                "solo": {AGENT: (AGENT, USER), **reference_access(AGENT, USER)},
            },
            tools=TOOLS,
            digest=f"{DIGEST}, of agent and user",
            snapshots=True,
        )

    @contextmanager
    def open(self, opening: Opening) -> Iterator[Tau2Session]:
        """Two fresh databases, and the task's initial state in them. Raises EnvironmentFault."""
        self.capabilities.check(opening)
        yield Tau2Session(Domain(self.capabilities, "", self._sides, _toolkits), opening)


def _toolkits(records: Mapping[str, Overlay]) -> Mapping[str, object]:
    return {AGENT: MockTools(records[AGENT]), USER: MockUserTools(records[USER])}


def _side(path: Path, tables: tuple[str, ...]) -> Side:
    read = read_database(path, tables)
    try:
        valid: Database = {
            table: {key: _valid(table, record) for key, record in records.items()} for table, records in read.items()
        }
    except ValidationError as error:
        raise EnvironmentFault(str(error), place=str(path), remedy="mend the record") from error
    return Side(valid, _valid)


def _valid(table: str, record: Any) -> Any:
    return _MODELS[table].model_validate(record).model_dump()
