"""Where episodes are replayed: in one environment, as the user says, or, of our own runs, each in the recorded one."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from harness.api.carriers import environment
from harness.api.crosses_data import AS_RECORDED, DataVersion, data_versions
from harness.api.environments import environment_of
from harness.grading.episodes.criteria import initial_of
from harness.protocols import Environment
from harness.records.base import digest_of
from harness.records.conversation import Conversation
from harness.records.environment import Opening
from harness.records.errors import ConfigError
from harness.records.replay import RecordedEpisode
from harness.runner.conversing import close_with


@dataclass(frozen=True)
class Place:
    """An environment, the version of the data, and how instances are opened but for a task's own initial state."""

    world: Environment
    version: DataVersion
    opening: Opening

    def opening_of(self, episode: RecordedEpisode) -> Opening:
        """The opening with what the episode's task begins with."""
        conversation = episode.definition
        recorded = conversation.data if isinstance(conversation, Conversation) else ""
        return replace(self.opening, initial=initial_of(conversation), data=self.opening.data or recorded)


@dataclass
class Places:
    """Opens environments once, and closes them at the end of its block. `environment` and `mode` may be `recorded`: of
    conversations of ours, that each name theirs.

    Raises ConfigError, and EnvironmentFault for a mode or data version that is not offered.
    """

    environment: str
    mode: str
    data: str = AS_RECORDED
    folder: Path | None = None
    task_map: Path | None = None
    _worlds: dict[tuple[str, str], Environment] = field(default_factory=dict)
    _places: dict[tuple[str, str, str], Place] = field(default_factory=dict)
    _stack: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        try:
            if AS_RECORDED not in (self.environment, self.mode):
                self._open((self.environment, ""), self.mode)
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def of(self, episode: RecordedEpisode) -> Place:
        """Where an episode is replayed."""
        name, mode, folder = self.environment, self.mode, ""
        if AS_RECORDED in (name, mode):
            conversation = episode.definition
            if not isinstance(conversation, Conversation):
                raise ConfigError(
                    "`recorded` is for runs of ours: an archive does not name its environment, or its mode for certain",
                    place="--environment" if name == AS_RECORDED else "--mode",
                    remedy="name it",
                )
            mode = conversation.mode if mode == AS_RECORDED else mode
            if name == AS_RECORDED:
                name, folder = conversation.environment, conversation.folder
                if (name, folder) not in self._worlds:
                    self._know((name, folder), environment_of(conversation))
        return self._open((name, folder), mode)

    @property
    def used(self) -> tuple[Place, ...]:
        """All places so far."""
        return tuple(self._places.values())

    @property
    def environments(self) -> str:
        return ", ".join(dict.fromkeys(place.world.capabilities.environment for place in self.used))

    @property
    def modes(self) -> str:
        return ", ".join(dict.fromkeys(place.opening.mode for place in self.used))

    @property
    def code(self) -> str:
        codes = list(dict.fromkeys(place.world.capabilities.code for place in self.used))
        return codes[0] if len(codes) == 1 else digest_of(codes)

    def _know(self, key: tuple[str, str], world: Environment) -> None:
        close_with(self._stack, world)
        self._worlds[key] = world

    def _open(self, key: tuple[str, str], mode: str) -> Place:
        found = self._places.get((*key, mode))
        if found is not None:
            return found
        if key not in self._worlds:
            self._know(key, environment(key[0], self.folder))
        world = self._worlds[key]
        (version,) = data_versions((self.data,), world.capabilities, self.task_map)
        opening = Opening(mode, version.environment)
        world.capabilities.check(opening)
        self._places[(*key, mode)] = made = Place(world, version, opening)
        return made
