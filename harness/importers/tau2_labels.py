"""Whether the label of a tau2 simulation agrees with what it holds. Pure.

Four things in a simulation say which task it was, none of them written by whoever labelled it: the reference actions
that the grader echoed, their ids, the assertions that it judged, and the user ids in the conversation. Each allows a
set of the embedded tasks. A label outside their intersection contradicts the content; a single task inside is proposed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.importers.reports import listed, mapping
from harness.records.archive import Finding

_USER_ID = re.compile(r"\b[a-z]+_[a-z]+_[0-9]{4}\b")


@dataclass(frozen=True, slots=True)
class _Task:
    actions: tuple[str, ...]
    assertions: tuple[str, ...]
    said: tuple[str, ...]
    users: frozenset[str]


class Labels:
    """The embedded tasks of a results file, by what can be seen of each in a simulation."""

    def __init__(self, tasks: Iterable[Any]) -> None:
        self._tasks: dict[str, _Task] = {}
        for task in tasks:
            if isinstance(task, Mapping) and "id" in task:
                self._tasks[str(task["id"])] = _seen(task)

    def check(self, label: str, simulation: Mapping[str, Any], place: str) -> Finding | None:
        """What is wrong with the label of a simulation, or None."""
        if not self._tasks:
            return None
        evidence = self._evidence(simulation)
        allowed = self._allowed([ids for _, ids in evidence])
        if label in allowed or not evidence:
            return self._unknown(label, place) if label not in self._tasks else None
        told = [f"{what}: {_names(ids)}" for what, ids in evidence if label not in ids]
        proposal = {"task_id": next(iter(allowed))} if len(allowed) == 1 else {}
        agree = sum(allowed <= ids for _, ids in evidence)
        return Finding(
            rule="label.task",
            place=place,
            what=f"labelled task {label}, but its content is not that task's",
            remedy="relabel it, or ask whoever published it; the stated label was kept",
            proposal=proposal,
            evidence="; ".join(told) + (f"; {agree} of {len(evidence)} signs agree on it" if proposal else ""),
        )

    def _unknown(self, label: str, place: str) -> Finding:
        return Finding(
            rule="label.unknown",
            place=place,
            what=f"labelled task {label}, which is not among the embedded tasks",
            remedy="its criteria are not in this archive",
        )

    def _evidence(self, simulation: Mapping[str, Any]) -> list[tuple[str, frozenset[str]]]:
        reward_info = mapping(simulation.get("reward_info"))
        checks = [mapping(mapping(check).get("action")) for check in listed(reward_info.get("action_checks"))]
        found: list[tuple[str, frozenset[str]]] = []
        if checks:
            actions = tuple(_key(action) for action in checks)
            found.append(("reference actions are those of", self._where(lambda task: task.actions == actions)))
            ids = {str(action.get("action_id", "")).rpartition("_")[0] for action in checks}
            if len(ids) == 1 and ids <= self._tasks.keys():
                found.append(("action ids begin with", frozenset(ids)))
        assertions = tuple(
            str(mapping(check).get("nl_assertion")) for check in listed(reward_info.get("nl_assertions"))
        )
        if assertions:
            found.append(("judged assertions are those of", self._where(lambda task: task.assertions == assertions)))
        said = tuple(str(mapping(check).get("info")) for check in listed(reward_info.get("communicate_checks")))
        if said:
            found.append(("required strings are those of", self._where(lambda task: task.said == said)))
        users = _users(_user_text(simulation))
        if users:
            found.append(("the user is that of", self._where(lambda task: bool(task.users & users))))
        return [(what, ids) for what, ids in found if ids]

    def _where(self, holds: Any) -> frozenset[str]:
        return frozenset(id_ for id_, task in self._tasks.items() if holds(task))

    @staticmethod
    def _allowed(sets: list[frozenset[str]]) -> frozenset[str]:
        """The tasks that all signs allow; where signs contradict each other, those that most of them allow."""
        if not sets:
            return frozenset()
        votes = {id_: sum(id_ in ids for ids in sets) for id_ in frozenset().union(*sets)}
        most = max(votes.values())
        return frozenset(id_ for id_, count in votes.items() if count == most)


def _seen(task: Mapping[str, Any]) -> _Task:
    criteria = mapping(task.get("evaluation_criteria"))
    return _Task(
        tuple(_key(mapping(action)) for action in listed(criteria.get("actions"))),
        tuple(str(text) for text in listed(criteria.get("nl_assertions"))),
        tuple(str(text) for text in listed(criteria.get("communicate_info"))),
        _users(json.dumps(task, ensure_ascii=False)),
    )


def _users(text: str) -> frozenset[str]:
    """User ids in a text. Most lines hold no underscore, and are not searched."""
    lines = (line for line in text.split("\n") if "_" in line)
    return frozenset(found for line in lines for found in _USER_ID.findall(line))


def _user_text(simulation: Mapping[str, Any]) -> str:
    return "\n".join(
        str(message.get("content"))
        for entry in listed(simulation.get("messages"))
        if (message := mapping(entry)).get("role") == "user"
    )


def _key(action: Mapping[str, Any]) -> str:
    return json.dumps([action.get("name"), action.get("requestor"), action.get("arguments")], sort_keys=True)


def _names(ids: frozenset[str]) -> str:
    ordered = sorted(ids, key=lambda id_: (len(id_), id_))
    return ", ".join(f"task {id_}" for id_ in ordered[:4]) + (" …" if len(ordered) > 4 else "")
