"""What an environment with tools is asked and answers, and what it can do.

An environment is a named, versioned world of tools over a state: a benchmark's database, a simulated device. Calls and
answers are plain slotted values, not validated records: an archive has millions of them, and they live for a moment.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.records.base import Record
from harness.records.errors import AssayError
from harness.records.vocabulary import Actor


class EnvironmentFault(AssayError):
    """An environment cannot be opened as asked: an unknown mode or data version, a carrier that does not answer."""


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call: by `actor` (agent or user in an episode, reference in a grader's own run), in its `namespace`.

    `namespace` is the side whose tool is meant, "agent" or "user": in solo mode the agent calls tools of the
    user's side.
    """

    actor: Actor
    name: str
    arguments: Any  # as parsed from JSON: an object, unless the model wrote something else
    namespace: str = "agent"
    id: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call returned, as text. `missing`: the environment has no such tool for that actor in this mode."""

    content: str
    error: bool = False
    missing: bool = False


class ToolSpec(Record):
    """A tool of one side. `parameters` is a JSON schema, as a model would be shown it."""

    name: str
    namespace: str = "agent"
    writes: bool = False
    ends: bool = False  # a call of it ends the episode
    deterministic: bool = True
    description: str = ""
    parameters: dict[str, Any] = {}


class Capabilities(Record):
    """What an environment declares before its first step. A tool outside `access` of a mode is missing there."""

    environment: str  # name@version
    code: str  # digest of what it is made of: source files, or the image it runs in
    modes: dict[str, dict[str, tuple[str, ...]]]  # mode -> actor ("agent", "user") -> namespaces it may call
    tools: tuple[ToolSpec, ...]
    data: tuple[str, ...] = ()  # names of its data versions; the first is the default
    digest: str = ""  # how its state digest is made, in words; empty: it has none
    snapshots: bool = False

    def check(self, opening: Opening) -> None:
        """Raises EnvironmentFault, naming what there is, for a mode or data version that is not declared."""
        self._declared("mode", opening.mode, self.modes)
        if opening.data:
            self._declared("data version", opening.data, self.data)

    def _declared(self, what: str, asked: str, known: Collection[str]) -> None:
        if asked not in known:
            raise EnvironmentFault(
                f"there is no {what} {asked!r}",
                place=self.environment,
                remedy=f"its {what}s are: {', '.join(known) or 'none'}",
            )

    def data_of(self, opening: Opening) -> str:
        """The data version that an opening means; "" where none is declared. Raises EnvironmentFault as `check`."""
        self.check(opening)
        return opening.data or next(iter(self.data), "")

    def tool(self, name: str, namespace: str) -> ToolSpec | None:
        """The tool of that name on that side."""
        return next((tool for tool in self.tools if (tool.name, tool.namespace) == (name, namespace)), None)

    def callable(self, mode: str, actor: Actor) -> tuple[ToolSpec, ...]:
        """The tools that an actor has in a mode."""
        spaces = self.modes[mode].get(actor.value, ())
        return tuple(tool for tool in self.tools if tool.namespace in spaces)


@dataclass(frozen=True, slots=True)
class Opening:
    """How an environment is opened: always explicit. `initial` is the task's own initial state, in its words."""

    mode: str
    data: str = ""  # a data version by name; empty: the default
    initial: Mapping[str, Any] = field(default_factory=dict)
