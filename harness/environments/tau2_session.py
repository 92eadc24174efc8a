"""A session of a tau2-bench domain: one database and one set of tools per side, agent and user.

Facts: `tau2/format.md` of the airline data (tau2-bench, MIT, © 2025 Sierra Research). A side's functions that are no
tools, for setting a task up and for checking its end, stand in namespaces of their own that only a reference may call.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.environments.digests import SORTED_JSON, DatabaseDigest
from harness.environments.overlay import Database, Overlay, copy_of
from harness.environments.session import AGENT, REFERENCE, USER, Access, packed, unpacked
from harness.records.environment import Answer, Call, Capabilities, EnvironmentFault, Opening
from harness.records.vocabulary import Actor

FUNCTIONS = ".function"  # follows the namespace of a side: "agent.function"
DIGEST = "sha256 of the validated database as JSON with sorted keys (tau2-bench)"
_SIDES = {"assistant": AGENT, "agent": AGENT, "user": USER}


class Side:
    """One side's shared database. `validate` takes a table and a record to the record's valid form."""

    def __init__(self, tables: Database, validate: Callable[[str, Any], Any]) -> None:
        self.tables = tables
        self.validate = validate
        self._digest: DatabaseDigest | None = None

    @property
    def digest(self) -> DatabaseDigest:
        if self._digest is None:
            self._digest = DatabaseDigest(self.tables, SORTED_JSON)
        return self._digest


@dataclass(frozen=True)
class Domain:
    """What a session is made of. `toolkits` makes each side's tools over the records of all sides."""

    capabilities: Capabilities
    data: str
    sides: Mapping[str, Side]
    toolkits: Callable[[Mapping[str, Overlay]], Mapping[str, object]]


class Tau2Session:
    """An :class:`harness.protocols.EnvironmentSession`. The caller's arguments are copied and never touched."""

    def __init__(self, domain: Domain, opening: Opening) -> None:
        self._domain, self._mode = domain, opening.mode
        self._name = domain.capabilities.environment
        self._access = Access(domain.capabilities, opening.mode)
        self.records = {name: Overlay(side.tables) for name, side in domain.sides.items()}
        self._toolkits = domain.toolkits(self.records)
        self._digests: dict[str, tuple[int, str]] = {}
        self._set_up(opening.initial)

    def call(self, call: Call) -> Answer:
        if not self._access.allows(call.actor, call.namespace, call.name):
            solo = call.actor is Actor.USER and not self._domain.capabilities.modes[self._mode].get(USER)
            refused = solo and USER in self._domain.sides
            text = "User tool calls are not allowed in solo mode" if refused else f"Tool '{call.name}' not found."
            return Answer(f"Error: {text}", error=True, missing=True)
        if not isinstance(call.arguments, dict):
            return Answer("Error: the arguments are not an object", error=True)
        toolkit = self._toolkits[call.namespace.removesuffix(FUNCTIONS)]
        try:
            returned = getattr(toolkit, call.name)(**copy_of(call.arguments))
            content = returned if isinstance(returned, str) else json.dumps(returned)
        except Exception as error:  # noqa: BLE001  whatever a tool raises is what its caller is told
            return Answer(f"Error: {error}", error=True)
        return Answer(content)

    def digest(self) -> str:
        """The digest of the only database, or `agent:… user:…` where there are two."""
        for name, records in self.records.items():
            if name not in self._digests or self._digests[name][0] != records.version:
                self._digests[name] = (records.version, self._domain.sides[name].digest.of(records))
        if len(self.records) == 1:
            return next(iter(self._digests.values()))[1]
        return " ".join(f"{name}:{self._digests[name][1]}" for name in self.records)

    def snapshot(self) -> bytes:
        own = {name: records.own for name, records in self.records.items()}
        return packed(self._name, self._domain.data, self._mode, own)

    def restore(self, state: bytes) -> None:
        found = unpacked(self._name, self._domain.data, self._mode, state)
        kept = {name: records.own for name, records in self.records.items()}
        try:
            for name, records in self.records.items():
                records.load(found.get(name))
        except EnvironmentFault:
            for name, own in kept.items():  # all of it or nothing
                self.records[name].load(own)
            raise

    def _set_up(self, initial: Mapping[str, Any]) -> None:
        """A task's `initial_state`: data first, then actions. Its message history is for the replay to carry out.

        Raises EnvironmentFault for what cannot be done: the task's initial state is not reached.
        """
        if strange := initial.keys() - {"initialization_data", "initialization_actions", "message_history"}:
            raise EnvironmentFault(
                f"the initial state has {', '.join(sorted(strange))}, which nothing here understands",
                place=self._name,
                remedy="give initialization_data and initialization_actions",
            )
        for side, update in (initial.get("initialization_data") or {}).items():
            if update:
                self._update(side.removesuffix("_data"), update)
        for number, action in enumerate(initial.get("initialization_actions") or ()):
            self._initialise(number, action)

    def _update(self, side: str, update: Mapping[str, Mapping[str, Any]]) -> None:
        records, place = self.records.get(side), f"{self._name}: initialization_data/{side}_data"
        if records is None:
            raise EnvironmentFault("there is no such side", place=place, remedy=f"sides: {', '.join(self.records)}")
        for table, changes in update.items():
            if table not in records.base or not isinstance(changes, dict):
                raise EnvironmentFault(f"{table} is no table of records", place=place, remedy="see the database")
            for key, change in changes.items():
                old = records.read(table, key) if records.has(table, key) else {}
                try:
                    record = self._domain.sides[side].validate(table, _merged(old, change))
                except ValueError as error:  # pydantic's own error is one
                    raise EnvironmentFault(f"{table}/{key}: {error}", place=place, remedy="mend the task") from error
                records.put(table, key, record)

    def _initialise(self, number: int, action: Any) -> None:
        place = f"{self._name}: initialization_actions/{number}"
        try:
            side, name, arguments = _SIDES[action["env_type"]], action["func_name"], action.get("arguments") or {}
        except (KeyError, TypeError, AttributeError) as error:
            raise EnvironmentFault(f"it is no action: {error!r}", place=place, remedy="mend the task") from error
        tools = self._domain.capabilities
        space = side if tools.tool(name, side) else side + FUNCTIONS
        answer = self.call(Call(Actor.REFERENCE, name, arguments, namespace=space))
        if answer.error:
            raise EnvironmentFault(f"{name}: {answer.content}", place=place, remedy="mend the task")


def reference_access(*sides: str) -> dict[str, tuple[str, ...]]:
    """What a reference run may call: every side's tools and functions."""
    return {REFERENCE: tuple(space for side in sides for space in (side, side + FUNCTIONS))}


def _merged(old: Any, new: Any) -> Any:
    """Objects merge key by key; anything else is replaced."""
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return copy_of(new)
    return {**copy_of(old), **{key: _merged(old.get(key), value) for key, value in new.items()}}
