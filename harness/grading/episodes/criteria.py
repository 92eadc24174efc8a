"""What a task's definition asks for, read from either shape that benchmarks of this kind use.

tau-bench: `actions` [{name, kwargs}], `outputs`. tau2-bench: `evaluation_criteria` {actions [{name, arguments,
requestor, compare_args}], communicate_info, env_assertions, nl_assertions, reward_basis}. A conversation task of ours
(:class:`harness.records.conversation.Conversation`) has tau-bench's shape, with the namespace of each action.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.records.base import Record
from harness.records.errors import AssayError

_SIDES = {"assistant": "agent", "agent": "agent", "user": "user"}
DEFAULT_BASIS = ("DB", "COMMUNICATE")


class CriteriaFault(AssayError):
    """A task's definition cannot be read as criteria; `place` names the task's field."""


@dataclass(frozen=True)
class ReferenceAction:
    """An action that a task expects. `compare`: names of the arguments to compare; None: those of the call."""

    name: str
    arguments: Any
    namespace: str = "agent"
    compare: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Assertion:
    """A named check of one side's tools that must answer `expected`."""

    name: str
    arguments: Any
    namespace: str
    expected: bool


@dataclass(frozen=True)
class Criteria:
    """A task's criteria. None where the definition has no such field or null; `basis` None: it states none."""

    actions: tuple[ReferenceAction, ...] | None
    outputs: tuple[str, ...] | None
    assertions: tuple[Assertion, ...] | None = None
    judged: tuple[str, ...] | None = None
    basis: tuple[str, ...] | None = None


def criteria_of(definition: Any) -> Criteria:
    """The criteria of a task's definition. Raises CriteriaFault."""
    if isinstance(definition, Record):
        definition = definition.plain()
    if not isinstance(definition, Mapping):
        raise CriteriaFault("the task has no definition to grade by", remedy="name task data that has it")
    if "evaluation_criteria" not in definition:
        if "actions" not in definition:
            raise CriteriaFault("the definition has neither evaluation_criteria nor actions", place="task")
        return Criteria(_actions(definition["actions"]), _texts(definition.get("outputs"), "outputs"))
    stated = definition["evaluation_criteria"]
    if stated is None:
        return Criteria(None, None)
    if not isinstance(stated, Mapping):
        raise CriteriaFault("is no object", place="evaluation_criteria")
    return Criteria(
        actions=_actions(stated.get("actions")),
        outputs=_texts(stated.get("communicate_info"), "communicate_info"),
        assertions=_assertions(stated.get("env_assertions")),
        judged=_texts(stated.get("nl_assertions"), "nl_assertions"),
        basis=_texts(stated.get("reward_basis"), "reward_basis"),
    )


def initial_of(definition: Any) -> dict[str, Any]:
    """The task's own initial state, as :class:`harness.records.environment.Opening` takes it; empty: none."""
    if isinstance(definition, Record):
        definition = definition.plain()
    if not isinstance(definition, Mapping):
        return {}
    stated = definition.get("initial_state") or definition.get("initial")
    return dict(stated) if isinstance(stated, Mapping) else {}


def _actions(stated: Any) -> tuple[ReferenceAction, ...] | None:
    return None if stated is None else tuple(_action(entry, index) for index, entry in enumerate(_list(stated)))


def _action(entry: Any, index: int) -> ReferenceAction:
    place = f"actions[{index}]"
    if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
        raise CriteriaFault("has no name", place=place)
    side = str(entry.get("requestor") or entry.get("namespace") or "assistant")
    if side not in _SIDES:
        raise CriteriaFault(f"requestor {side!r} is neither assistant nor user", place=place)
    compare = entry.get("compare_args")
    arguments = entry["arguments"] if "arguments" in entry else entry.get("kwargs")
    return ReferenceAction(
        name=entry["name"],
        arguments={} if arguments is None else arguments,
        namespace=_SIDES[side],
        compare=None if compare is None else tuple(str(name) for name in _list(compare)),
    )


def _assertions(stated: Any) -> tuple[Assertion, ...] | None:
    return None if stated is None else tuple(_assertion(entry, index) for index, entry in enumerate(_list(stated)))


def _assertion(entry: Any, index: int) -> Assertion:
    side = str(entry.get("env_type") or "assistant") if isinstance(entry, Mapping) else ""
    if side not in _SIDES or not isinstance(entry.get("func_name"), str):
        raise CriteriaFault("has no func_name, or an unknown env_type", place=f"env_assertions[{index}]")
    return Assertion(
        name=entry["func_name"],
        arguments=entry.get("arguments") or {},
        namespace=_SIDES[side],
        expected=entry.get("assert_value") is not False,
    )


def _texts(stated: Any, field: str) -> tuple[str, ...] | None:
    if stated is None:
        return None
    if not isinstance(stated, (list, tuple)):
        raise CriteriaFault("is no list", place=field)
    return tuple(entry if isinstance(entry, str) else str(entry) for entry in stated)


def _list(stated: Any) -> list[Any]:
    if not isinstance(stated, (list, tuple)):
        raise CriteriaFault("is no list", place="actions")
    return list(stated)
