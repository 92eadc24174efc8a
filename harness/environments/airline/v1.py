"""`airline@v1`: the airline of tau-bench, its tools, its data versions and its rule for a state's digest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from harness.environments.airline.database import DataVersion, airline_data
from harness.environments.airline.schema import V1
from harness.environments.airline.v1_tools import TOOLS
from harness.environments.folder import needed
from harness.environments.overlay import Overlay, copy_of
from harness.environments.session import AGENT, REFERENCE, Access, code_of, packed, unpacked
from harness.records.environment import Answer, Call, Capabilities, EnvironmentFault, Opening

NAME = "airline@v1"
_MODULES = (
    "airline.database",
    "airline.schema",
    "airline.v1",
    "airline.v1_rules",
    "airline.v1_tools",
    "arithmetic",
    "digests",
    "overlay",
    "variants",
)


class AirlineV1:
    """An :class:`harness.protocols.Environment`. Its one mode, "normal", has the agent call all tools.

    Raises EnvironmentFault when no folder is named or it holds no airline database.
    """

    def __init__(self, data_folder: Path | None) -> None:
        self._data = airline_data(needed(data_folder, NAME))

    @cached_property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            environment=NAME,
            code=code_of(f"harness.environments.{name}" for name in _MODULES),
            modes={"normal": {AGENT: ("agent",), REFERENCE: ("agent",)}},
            tools=V1,
            data=tuple(self._data.variants),
            digest="sha256 of str() of the database as nested tuples, objects sorted by key (tau-bench)",
            snapshots=True,
        )

    @contextmanager
    def open(self, opening: Opening) -> Iterator[AirlineV1Session]:
        """A fresh database. Raises EnvironmentFault; the tasks of this benchmark have no initial state of their own."""
        data = self.capabilities.data_of(opening)
        if opening.initial:
            raise EnvironmentFault(
                f"a task of tau-bench has no initial state: {', '.join(opening.initial)}",
                place=NAME,
                remedy="open it without one",
            )
        yield AirlineV1Session(self._data.version(data), data, opening.mode, Access(self.capabilities, opening.mode))


class AirlineV1Session:
    """An :class:`harness.protocols.EnvironmentSession`.

    `log` is the action log that tau-bench keeps, {"name", "kwargs"} each, failing and unknown calls included. It is
    aliased by the database as it is there: cancelling a reservation booked in this session lengthens the payment list
    of the logged booking. The arguments of the caller are copied and never touched.
    """

    def __init__(self, version: DataVersion, data: str, mode: str, access: Access) -> None:
        self.version = version
        self.records = Overlay(version.tables)
        self.log: list[dict[str, Any]] = []
        self._data, self._mode, self._access = data, mode, access
        self._digest: tuple[int, str] | None = None

    def call(self, call: Call) -> Answer:
        try:
            arguments = copy_of(call.arguments)
        except RecursionError as error:
            return Answer(f"Error: {error}", error=True)
        self.log.append({"name": call.name, "kwargs": arguments})
        if not self._access.allows(call.actor, call.namespace, call.name):
            return Answer(f"Unknown action {call.name}", error=True, missing=True)
        if not isinstance(arguments, dict):
            return Answer("Error: the arguments are not an object", error=True)
        try:
            content = TOOLS[call.name].invoke(self, **arguments)
        except Exception as error:  # noqa: BLE001  whatever a tool raises is what the agent is told
            return Answer(f"Error: {error}", error=True)
        if content is None:
            raise EnvironmentFault(
                "the user holds all three certificates that can be sent; tau-bench crashes here",
                place=f"{NAME}: {call.name}",
                remedy="the episode ends here: it has no grade",
            )
        return Answer(content)

    def digest(self) -> str:
        """The state hash of tau-bench, 64 hexadecimal digits."""
        if self._digest is None or self._digest[0] != self.records.version:
            self._digest = (self.records.version, self.version.digest.of(self.records))
        return self._digest[1]

    def snapshot(self) -> bytes:
        own = self.records.own
        shared = [
            [number, name, reservation_id, field]
            for number, entry in enumerate(self.log)
            if isinstance(entry["kwargs"], dict)
            for name, value in entry["kwargs"].items()
            for reservation_id, reservation in own["reservations"].items()
            for field in ("passengers", "payment_history")
            if isinstance(value, list) and reservation[field] is value
        ]
        return packed(NAME, self._data, self._mode, {"own": own, "log": self.log, "shared": shared})

    def restore(self, state: bytes) -> None:
        found = unpacked(NAME, self._data, self._mode, state)
        try:
            own, log = found["own"], list(found["log"])
            for number, name, reservation_id, field in found["shared"]:
                own["reservations"][reservation_id][field] = log[number]["kwargs"][name]
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise EnvironmentFault(
                f"this is no snapshot: {error!r}", place=NAME, remedy="restore what snapshot() returned"
            ) from error
        self.records.load(own)
        self.log = log
