"""`telecom@tau2`: the telecom domain of tau2-bench as far as it is described: which side has which tools in which mode.

What the tools do is not described, so a call of one that exists is a fault, `unimplemented`, and a replay that needs it
is invalid. What can be told without them is told: a mode that is not offered, a tool that the caller has not got.
The names are read from `tools_by_side.json` in the data folder. A whole environment comes in through a carrier
(docs/environments.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from harness.environments.folder import find, needed, read_json
from harness.environments.session import AGENT, USER, Access, code_of
from harness.environments.tau2_session import reference_access
from harness.records.base import sha256_of
from harness.records.environment import Answer, Call, Capabilities, EnvironmentFault, Opening, ToolSpec

NAME = "telecom@tau2"
_DOMAIN = "telecom"
_REMEDY = "carry tau2's own code: docs/carriers/carry_tau2.py, as docs/environments.md says"


class TelecomTau2:
    """An :class:`harness.protocols.Environment` with the modes "normal" and "solo", without digest or snapshots.

    Raises EnvironmentFault when the folder has no list of tools by side.
    """

    def __init__(self, data_folder: Path | None) -> None:
        self._path = find(needed(data_folder, NAME), ("tools_by_side.json",), below=("tau2",))
        self._tools = _declared(self._path)

    @cached_property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            environment=NAME,
            code=sha256_of((code_of([__name__]) + sha256_of(self._path.read_bytes())).encode()),
            modes={
                "normal": {AGENT: (AGENT,), USER: (USER,), **reference_access(AGENT, USER)},
                "solo": {AGENT: (AGENT, USER), **reference_access(AGENT, USER)},
            },
            tools=self._tools,
        )

    @contextmanager
    def open(self, opening: Opening) -> Iterator[TelecomSession]:
        """A session that knows who has which tool. Raises EnvironmentFault for an unknown mode.

        An initial state is the tools' affair, and none of them will be carried out: it is not looked at.
        """
        self.capabilities.check(opening)
        yield TelecomSession(Access(self.capabilities, opening.mode), len(self._tools))


class TelecomSession:
    """An :class:`harness.protocols.EnvironmentSession` whose tools are names."""

    def __init__(self, access: Access, tools: int) -> None:
        self._access, self._tools = access, tools

    def call(self, call: Call) -> Answer:
        if not self._access.allows(call.actor, call.namespace, call.name):
            return Answer(f"Error: Tool '{call.name}' not found.", error=True, missing=True)
        listed = f"the data lists the names of {self._tools} tools"
        raise EnvironmentFault(f"unimplemented: {listed}, not what {call.name} does", place=NAME, remedy=_REMEDY)

    def digest(self) -> str:
        raise EnvironmentFault("unimplemented: it has no state to digest", place=NAME, remedy=_REMEDY)

    def snapshot(self) -> bytes:
        raise EnvironmentFault("unimplemented: it has no state to keep", place=NAME, remedy=_REMEDY)

    def restore(self, state: bytes) -> None:
        raise EnvironmentFault("unimplemented: it has no state to restore", place=NAME, remedy=_REMEDY)


def _declared(path: Path) -> tuple[ToolSpec, ...]:
    found = read_json(path)
    try:
        return tuple(
            _tool(name, space, about)
            for side, space in (("assistant", AGENT), ("user", USER))
            for name, about in found[_DOMAIN][side].items()
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise EnvironmentFault(
            f"lists no tools of {_DOMAIN}: {error!r}", place=str(path), remedy="get the file again"
        ) from error


def _tool(name: str, space: str, about: Any) -> ToolSpec:
    properties: dict[str, Any] = {argument: {} for argument in about["args"]}
    schema = {"type": "object", "properties": properties}
    return ToolSpec(name=name, namespace=space, writes=about["mutates_state"], parameters=schema)
