"""The schema of conversation tasks: `conversation.toml` of a folder, and the files in its `tasks/`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from harness.formats.schema import Count, Seconds, Table

Text = Annotated[str, Field(min_length=1)]
Texts = Annotated[list[Text], Field(min_length=1)] | Text
Side = Literal["agent", "user"]


class ActionTable(Table):
    """A tool call. `read`: it changes nothing, so that leaving it out is no mistake."""

    name: Text
    arguments: dict[str, Any] = {}
    actor: Side = "agent"
    namespace: Side | None = None  # None: the actor's own side
    read: bool = False


class UserCallTable(Table):
    """A call of one of the user's own tools."""

    name: Text
    arguments: dict[str, Any] = {}


class RuleTable(Table):
    """See :class:`harness.records.conversation.UserRule`. One text may stand for a list of one."""

    when: Texts | None = None
    unless: Texts | None = None
    asks: bool | None = None
    state: Texts | None = None
    say: Texts | None = None
    call: UserCallTable | None = None
    to: Text | None = None
    ends: bool = False


class UserTable(Table):
    """The scripted user of a task; what is shared by all stands in `conversation.toml`, and its rules come last."""

    opening: Text | None = None
    facts: dict[str, str] = {}
    rule: list[RuleTable] = []
    state: Text | None = None
    lost: Texts | None = None
    patience: Annotated[int, Field(ge=0)] | None = None
    most_turns: Count | None = None


class StepTable(Table):
    """A step of the reference solution: a call, or something said. `needed`: without it the task is not solved."""

    call: Text | None = None
    arguments: dict[str, Any] = {}
    namespace: Side = "agent"
    say: Text | None = None
    needed: bool = False


class BudgetTable(Table):
    timeout_sec: Seconds | None = None
    tokens: Count | None = None
    steps: Count | None = None
    cost_usd: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None


class Settings(Table):
    """What a folder says for all its tasks, and a file of tasks for its own. None: not said here."""

    environment: Text | None = None
    mode: Text | None = None
    data: Text | None = None
    data_folder: Text | None = None
    policy: Text | None = None  # a file of the folder: what the agent is told
    grader: Text | None = None
    grading_sec: Seconds | None = None
    budget: BudgetTable = BudgetTable()
    user: UserTable | None = None
    tags: list[Text] = []


class TaskTable(Table):
    """One task. What it does not say is as in its file, then as in the folder."""

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    difficulty: Literal["easy", "medium", "hard"] | None = None
    requires_write: bool = True
    ticket: Text | None = None  # solo mode: what is to be done, told to the agent after the policy
    outputs: list[Text] = []
    answer: Text | None = None  # what the reference says at the end
    initial: dict[str, Any] = {}
    user: UserTable | None = None
    action: list[ActionTable] = []
    forbidden: list[ActionTable] = []
    solution: list[StepTable] = []
    budget: BudgetTable = BudgetTable()
    tags: list[Text] = []


class ConversationToml(Settings):
    """`conversation.toml`."""

    schema_version: Literal["1"] = "1"


class TasksToml(Settings):
    """A file in `tasks/`: a family of tasks."""

    task: Annotated[list[TaskTable], Field(min_length=1)]
