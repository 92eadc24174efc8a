"""Conversation tasks: a folder with a `conversation.toml`, the agent's policy, and files of tasks in `tasks/`.

Each file of `tasks/` is a family; a task's id is `<file>/<id>`. What a task does not say is as its file says, then as
the folder does. The data of the environment lies in a folder of the suite (`data_folder`) or where the user says.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from harness.formats.conversation_schema import (
    ActionTable,
    ConversationToml,
    RuleTable,
    Settings,
    TasksToml,
    TaskTable,
    UserTable,
)
from harness.formats.conversation_steps import STEPS, last_words, mutations_of, steps_of, steps_text
from harness.formats.parse import dotted, parse_toml
from harness.formats.places import Where, flatten, near_match, raise_all
from harness.formats.schema import Table
from harness.formats.toml_lines import KeyPath, key_lines, nearest_line
from harness.records.base import digest_of, sha256_of
from harness.records.conversation import Action, Conversation, UserRule, UserScript
from harness.records.errors import TaskError
from harness.records.task import Budget, FileTree, Grading, ImagePin, Limits, Solution, Task, TreeFile
from harness.records.vocabulary import Network

CONVERSATION_TOML = "conversation.toml"
TASKS = "tasks"
ENVIRONMENT = "environment:"  # what the reference of an image pin begins with where there is no container
GRADER = "conversation@1"
GRADING_S = 60.0
_MOST_BYTES = 64 << 20
_T = TypeVar("_T", bound=Table)


class ConversationFormat:
    """A folder with a `conversation.toml`; every file in its `tasks/` is a family of tasks."""

    name = "conversation"

    def recognises(self, folder: Path) -> bool:
        return (folder / CONVERSATION_TOML).is_file()

    def load(self, folder: Path) -> tuple[Task, ...]:
        """All tasks, by file and in their order there. Raises TaskError, or LoadErrors with all that is wrong."""
        where = Where(str(folder))
        common = _read(folder, CONVERSATION_TOML, ConversationToml, where)
        tasks: list[Task] = []
        errors: list[TaskError] = []
        paths = [f"{TASKS}/{path.name}" for path in sorted((folder / TASKS).glob("*.toml"))]
        if not paths:
            errors.append(TaskError(f"{TASKS}/ holds no file of tasks", place=where.place(CONVERSATION_TOML)))
        for path in paths:
            try:
                file = _File(folder, path, _read(folder, path, TasksToml, where), common.values, where)
            except TaskError as error:
                errors.extend(flatten(error))
                continue
            for number in range(len(file.toml.values.task)):
                try:
                    tasks.append(file.made(number))
                except TaskError as error:
                    errors.extend(flatten(error))
        raise_all(errors, str(folder))
        return tuple(tasks)


@dataclass(frozen=True)
class _Toml(Generic[_T]):
    values: _T
    lines: dict[KeyPath, int]


def _read(folder: Path, path: str, model: type[_T], where: Where) -> _Toml[_T]:
    text, values = parse_toml(_bytes(folder, path, where), where, path)
    lines = key_lines(text)
    try:
        return _Toml(model.model_validate(values), lines)
    except ValidationError as error:
        raise_all(
            TaskError(
                f"{dotted(tuple(detail['loc']))}: {_said_of(detail['type'], detail['msg'])}",
                place=where.place(path, nearest_line(lines, tuple(detail["loc"]))),
                remedy="docs/tasks.md has all keys" if detail["type"] == "extra_forbidden" else "",
            )
            for detail in error.errors(include_url=False)
        )
        raise


def _said_of(kind: str, message: str) -> str:
    return "unknown key" if kind == "extra_forbidden" else message.removeprefix("Value error, ")


def _bytes(folder: Path, path: str, where: Where) -> bytes:
    file = folder / path
    try:
        if not file.resolve(strict=True).is_relative_to(folder.resolve()):
            raise TaskError("the link leads out of the task", place=where.place(path))
        if file.stat().st_size > _MOST_BYTES:
            raise TaskError("too large to be read", place=where.place(path))
        return file.read_bytes()
    except OSError as error:
        raise TaskError(f"cannot be read: {error.strerror}", place=where.place(path)) from error


@dataclass(frozen=True)
class _File:
    """One file of tasks with what holds for all of them."""

    folder: Path
    path: str
    toml: _Toml[TasksToml]
    common: ConversationToml
    where: Where

    def made(self, number: int) -> Task:
        """One task. Raises TaskError, or LoadErrors."""
        table = self.toml.values.task[number]
        errors = [self._fault(number, message, remedy) for message, remedy in self._problems(table)]
        raise_all(errors, self.where.place(self.path))
        family = Path(self.path).stem
        conversation = self._conversation(table)
        steps = steps_of(table)
        return Task(
            id=f"{family}/{table.id}",
            family=family,
            instruction="\n\n".join(part for part in (self._policy, table.ticket) if part),
            image=ImagePin(reference=self._pin),
            budget=self._budget(table),
            limits=Limits(network=Network.NONE),
            solution=Solution(script=STEPS, files=FileTree(files=(TreeFile(path=STEPS, content=steps_text(steps)),))),
            mutations=mutations_of(table, steps),
            grading=Grading(grader=self._said("grader") or GRADER, timeout_s=self._said("grading_sec") or GRADING_S),
            conversation=conversation,
            requires_write=table.requires_write,
            difficulty=table.difficulty,
            tags=tuple(dict.fromkeys((*self.common.tags, *self.toml.values.tags, *table.tags))),
            source=self.where.place(self.path, nearest_line(self.toml.lines, ("task", number))),
        )

    def _problems(self, table: TaskTable) -> Iterable[tuple[str, str]]:
        for key in ("environment", "mode", "policy"):
            if self._said(key) is None:
                yield f"{key} is missing", f"set it here or in {CONVERSATION_TOML}"
        user = self._user(table)
        if user is None and table.ticket is None:
            yield "neither a user nor a ticket", "add [task.user] opening = …, or ticket = … for solo mode"
        if user is not None and (unknown := user.unknown_facts()):
            hint = near_match(unknown[0], user.facts)
            yield f"the user speaks of {{{unknown[0]}}}, which is no fact of the task", hint or "add it to user.facts"
        words = last_words(table)
        if user is not None and (unsaid := [output for output in table.outputs if output not in words]):
            yield f"the reference never says {unsaid[0]!r}", "name it in answer = …, or in a say of the solution"
        if table.requires_write and not any(not action.read for action in table.action):
            yield "requires_write, but no action changes anything", "add the action, or requires_write = false"

    def _fault(self, number: int, message: str, remedy: str) -> TaskError:
        table = self.toml.values.task[number]
        line = nearest_line(self.toml.lines, ("task", number))
        return TaskError(f"{table.id}: {message}", place=self.where.place(self.path, line), remedy=remedy)

    def _said(self, key: str) -> Any:
        here = getattr(self.toml.values, key)
        return here if here is not None else getattr(self.common, key)

    @cached_property
    def _policy(self) -> str:
        name = self._said("policy")
        return "" if name is None else _bytes(self.folder, name, self.where).decode("utf-8", "surrogateescape").strip()

    @cached_property
    def _data(self) -> Path | None:
        name = self._said("data_folder")
        if name is None:
            return None
        found = Path(self.folder, str(name)).resolve()
        if not found.is_dir() or not found.is_relative_to(self.folder.resolve()):
            place = self.where.place(self.path if self.toml.values.data_folder else CONVERSATION_TOML)
            raise TaskError(f"data_folder = {name!r} is no folder of the suite", place=place)
        return found

    @cached_property
    def _pin(self) -> str:
        """The environment, its data version, and the bytes of the data where they are the suite's own."""
        data = self._said("data")
        named = f"{ENVIRONMENT}{self._said('environment')}" + (f"/{data}" if data else "")
        if self._data is None:
            return named
        files = sorted(path for path in self._data.rglob("*") if path.is_file())
        content = {path.relative_to(self._data).as_posix(): sha256_of(path.read_bytes()) for path in files}
        return f"{named}#{digest_of(content)[7:23]}"

    def _budget(self, table: TaskTable) -> Budget:
        tables = (table.budget, self.toml.values.budget, self.common.budget)

        def first(key: str) -> Any:
            return next((value for one in tables if (value := getattr(one, key)) is not None), None)

        return Budget(
            wall_s=first("timeout_sec"), tokens=first("tokens"), steps=first("steps"), cost_usd=first("cost_usd")
        )

    def _conversation(self, table: TaskTable) -> Conversation:
        return Conversation(
            environment=self._said("environment"),
            mode=self._said("mode"),
            data=self._said("data") or "",
            folder=str(self._data) if self._data is not None else "",
            initial=table.initial,
            user=self._user(table),
            actions=tuple(action_of(action) for action in table.action),
            outputs=tuple(table.outputs),
        )

    def _user(self, table: TaskTable) -> UserScript | None:
        """The task's user, over what its file and the folder say of all users; their rules come after its own."""
        own = table.user
        if own is None or own.opening is None:
            return None
        shared = [settings.user for settings in (self.toml.values, self.common) if _has_user(settings)]
        layers = [own, *(user for user in shared if user is not None)]
        facts = {key: value for layer in reversed(layers) for key, value in layer.facts.items()}
        given: dict[str, Any] = {}
        for key in ("state", "patience", "most_turns"):
            value = next((value for layer in layers if (value := getattr(layer, key)) is not None), None)
            if value is not None:
                given[key] = value
        lost = next((layer.lost for layer in layers if layer.lost is not None), None)
        if lost is not None:
            given["lost"] = _texts(lost)
        rules = tuple(rule_of(rule) for layer in layers for rule in layer.rule)
        return UserScript(opening=own.opening, facts=facts, rules=rules, **given)


def _has_user(settings: Settings) -> bool:
    return isinstance(settings.user, UserTable)


def action_of(table: ActionTable) -> Action:
    """A tool call as the record has it: on the actor's own side unless it says another."""
    return Action(
        name=table.name, arguments=table.arguments, actor=table.actor, namespace=table.namespace or table.actor
    )


def rule_of(table: RuleTable) -> UserRule:
    """A rule of a scripted user."""
    call = table.call
    return UserRule(
        when=_texts(table.when),
        unless=_texts(table.unless),
        asks=table.asks,
        state=_texts(table.state),
        say=_texts(table.say),
        call=None if call is None else Action(name=call.name, arguments=call.arguments, actor="user", namespace="user"),
        to=table.to,
        ends=table.ends,
    )


def _texts(value: list[str] | str | None) -> tuple[str, ...]:
    return () if value is None else (value,) if isinstance(value, str) else tuple(value)
