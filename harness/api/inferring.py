"""What an archive itself shows of where and how it is to be replayed, each answer with its evidence.

Nothing is assumed. Where a domain is stated, or one known environment alone has all the tools that were called, that is
the environment; its data is where the user says, or lies beside the archive; the mode is what the episodes themselves
show, and is held against all of them afterwards like one that was named. What is not shown is asked for, with the
command that says it.
"""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from harness.api.carriers import COMMAND, CONTAINER, environment
from harness.api.crosses_data import AS_RECORDED
from harness.api.replays_reading import ReadingOptions, Source, source_of
from harness.environments.folder import VARIABLE
from harness.environments.registry import names
from harness.importers.hal_sources import references_of
from harness.protocols import Environment
from harness.records.archive import ArchiveError, ImportOptions
from harness.records.calls import OWN_SIDE
from harness.records.conversation import Conversation
from harness.records.environment import EnvironmentFault
from harness.records.errors import ConfigError
from harness.records.replay import RecordedEpisode
from harness.replay.modes import mode_of, needed
from harness.replay.order import of_interaction
from harness.report.words import counted
from harness.runner.conversing import close_with
from harness.store.sqlite import SqliteStore

_VERSIONS = {"tau-bench": "v1", "hal": "v1", "tau2": "tau2"}  # whose environments a format's episodes happened in
_LOOKED_AT = 100  # episodes
_FOLDERS_UP = 2
_TASKS = ("tasks.json", "v1/tasks.json", "tasks.json.gz", "v1/tasks.json.gz")


@dataclass(frozen=True)
class Asked:
    """What the user says of a replay: "" and None are left to the archive. `command` is for messages; `needs_mode`
    False: each episode is taken in its own."""

    archive: str
    environment: str = ""
    mode: str = ""
    folder: Path | None = None
    format: str | None = None
    options: ImportOptions = field(default_factory=ImportOptions)
    command: str = "replay"
    needs_mode: bool = True


@dataclass(frozen=True)
class Shown:
    """The same, whole. `notes`: what was not said, what it is taken as, and the evidence."""

    environment: str
    mode: str
    folder: Path | None
    options: ImportOptions
    notes: tuple[str, ...] = ()


def shown_by(asked: Asked, store: SqliteStore | None = None) -> Shown:
    """Complete what was asked by what the archive shows. Raises ArchiveError, StoreError, and ConfigError, with the
    command to give, where it does not show it."""
    given = Shown(asked.environment, asked.mode, asked.folder, asked.options)
    if asked.environment and (asked.mode or not asked.needs_mode):
        return _with_folder(given, asked)
    source = source_of(asked.archive, store, ReadingOptions(asked.format, asked.options))
    some = [read.episode for read in islice(source.episodes(), _LOOKED_AT)]
    if some and all(isinstance(episode.definition, Conversation) for episode in some):
        return _own(given)
    with ExitStack() as stack:
        return _Inferring(asked, source, some, stack).shown(given)


def _with_folder(given: Shown, asked: Asked) -> Shown:
    """All is said but where the environment's data is; it may lie beside the archive. What cannot be opened is told by
    whoever opens it."""
    if given.environment == AS_RECORDED or given.environment.startswith((COMMAND, CONTAINER)):
        return given
    with ExitStack() as stack:
        opened = _opened(given.environment, asked, stack, [])
    if opened is None or not opened[2]:
        return given
    _, folder, why = opened
    return replace(given, folder=folder, notes=(f"--environment-data {folder}: {why}",))


def _opened(
    name: str, asked: Asked, stack: ExitStack, faults: list[str]
) -> tuple[Environment, Path | None, str] | None:
    """An environment with the first folder that has its data, and why that folder; None: nowhere."""
    for folder, why in _folders(asked):
        try:
            made = environment(name, folder)
            made.capabilities  # noqa: B018  # what has its data elsewhere says so here
        except EnvironmentFault as fault:
            faults.append(str(fault))
        else:
            close_with(stack, made)
            return made, folder, why
    return None


def _folders(asked: Asked) -> Iterator[tuple[Path | None, str]]:
    """Where an environment's data may be: where the user says, else nowhere, else with the archive."""
    if asked.folder is not None or os.environ.get(VARIABLE):
        yield asked.folder, ""
        return
    yield None, ""
    path = Path(asked.archive).resolve()
    if path.exists():
        for folder in ([path] if path.is_dir() else []) + list(path.parents)[: _FOLDERS_UP + 1]:
            yield folder, "its data lies there, beside the archive"


def _own(given: Shown) -> Shown:
    """Conversations of ours name where they happened."""
    parts = [name for name in ("environment", "mode") if not getattr(given, name)]
    notes = tuple(f"--{name} recorded: its tasks name theirs" for name in parts)
    return replace(given, environment=given.environment or AS_RECORDED, mode=given.mode or AS_RECORDED, notes=notes)


class _Inferring:
    def __init__(self, asked: Asked, source: Source, episodes: list[RecordedEpisode], stack: ExitStack) -> None:
        self.asked, self.source, self.episodes, self._stack = asked, source, episodes, stack
        self.tools = tuple(dict.fromkeys(name for episode in episodes for name in _tools_of(episode)))
        self.notes: list[str] = []
        self.faults: list[str] = []
        self.unfit: list[str] = []  # environments that have not all tools

    def shown(self, given: Shown) -> Shown:
        world, name, folder = self._world()
        mode = given.mode or (self._mode(world) if self.asked.needs_mode else "")
        options = self._options(folder or given.folder)
        return Shown(name, mode, folder, options, tuple(self.notes))

    def _world(self) -> tuple[Environment, str, Path | None]:
        """The environment, opened, its name and its folder."""
        if self.asked.environment:
            return self._named(self.asked.environment)
        candidates = list(self._candidates())
        found: list[tuple[Environment, str, Path | None, str]] = []
        unopened: list[str] = []
        for name in candidates:
            opened = _opened(name, self.asked, self._stack, self.faults)
            if opened is None:
                unopened.append(name)
            elif self._covers(opened[0]):
                found.append((opened[0], name, *opened[1:]))
            else:
                self.unfit.append(name)
        if len(found) != 1:
            raise self._unknown(candidates, [name for _, name, *_ in found])
        world, name, folder, where = found[0]
        self.notes.append(f"--environment {name}: {self._evidence(len(candidates), unopened)}")
        self._note_folder(folder, where)
        return world, name, folder

    def _named(self, name: str) -> tuple[Environment, str, Path | None]:
        """The environment that the user names; its data may lie beside the archive. Raises EnvironmentFault."""
        carried = name.startswith((COMMAND, CONTAINER))
        opened = None if carried else _opened(name, self.asked, self._stack, self.faults)
        if opened is None:
            made = environment(name, self.asked.folder)
            close_with(self._stack, made)
            made.capabilities  # noqa: B018  # what it cannot do without, it says here
            return made, name, self.asked.folder
        world, folder, where = opened
        self._note_folder(folder, where)
        return world, name, folder

    def _note_folder(self, folder: Path | None, where: str) -> None:
        if where:
            self.notes.append(f"--environment-data {folder}: {where}")

    def _candidates(self) -> Iterator[str]:
        """Known environments of the format's kind; where the source states a domain, that one's alone."""
        version = _VERSIONS.get(self.source.format)
        known = [name for name in names() if version is None or name.endswith(f"@{version}")]
        domain = self._domain()
        stated = [name for name in known if domain and name.split("@")[0] == domain]
        yield from stated or ([] if domain else known)

    def _domain(self) -> str:
        """`airline` of "tau2 airline", "taubench_airline"; "" where the source states none."""
        words = [part for suite in self.source.suites for part in suite.replace("_", " ").split()]
        return words[-1].removesuffix("-workflow") if len(words) > 1 and words[0] in ("tau2", "taubench") else ""

    def _covers(self, world: Environment) -> bool:
        """Whether the environment has every tool that was called. Of a domain that is stated that is not asked: agents
        call tools that there are not."""
        known = {tool.name for tool in world.capabilities.tools}
        return bool(self._domain()) or (bool(self.tools) and known.issuperset(self.tools))

    def _evidence(self, candidates: int, unopened: list[str]) -> str:
        """Why it is that environment: of those that could be opened, which are the ones whose tools are known."""
        domain = self._domain()
        if domain:
            return f"the source states the domain {domain} ({self.source.format})"
        opened = candidates - len(unopened)
        others = f", of {opened} environments it alone" if opened > 1 else ""
        others += f", and without data, so not looked at: {', '.join(unopened)}" if unopened else ""
        tools = counted(len(self.tools), "tool")
        return f"it has all that is called, {tools}{others} ({self.source.format})"

    def _mode(self, world: Environment) -> str:
        modes = Counter(mode_of(episode, world.capabilities) for episode in self.episodes)
        if len(modes) != 1:
            told = ", ".join(f"{mode} ({count})" for mode, count in modes.items())
            raise ConfigError(
                f"its episodes were not all recorded in one mode: {told}",
                place=self.asked.archive,
                remedy="say which is meant with --mode; episodes of another are invalid",
            )
        (mode,) = modes
        recorded = {episode.mode for episode in self.episodes}
        only = f"{world.capabilities.environment} has no other"
        told = ", ".join(sorted("not said" if word is None else word for word in recorded))
        why = only if recorded == {None} else f"its episodes show it ({told}); held against every one of them"
        self.notes.append(f"--mode {mode}: {why}")
        return mode

    def _options(self, folder: Path | None) -> ImportOptions:
        """Reference actions of bare action lists, from the tasks that lie with the environment's data."""
        options = self.asked.options
        bare = self.source.format == "hal" and any(episode.definition is None for episode in self.episodes)
        if not bare or options.reference is not None or folder is None:
            return options
        wanted = {episode.task for episode in self.episodes}
        for name in _TASKS:
            file = folder / name
            try:
                known = references_of(ImportOptions(reference=str(file))) if file.is_file() else {}
            except ArchiveError as error:
                self.notes.append(f"no --reference: {error}")
                continue
            if known and wanted <= known.keys():
                self.notes.append(f"--reference {file}: all {len(wanted)} tasks of the archive are in it, by their ids")
                return replace(options, reference=str(file))
        return options

    def _unknown(self, candidates: list[str], several: list[str]) -> ConfigError:
        """The one message, with the command to give."""
        calls = f"calls {', '.join(self.tools[:3])}" + ", …" * (len(self.tools) > 3) if self.tools else "calls no tool"
        name = next(iter(several or candidates), "NAME@VERSION")
        if several:
            what = f"several environments have the tools of this archive: {', '.join(several)}"
        elif self.unfit:
            what = f"in what to replay it cannot be told: it {calls}; {', '.join(self.unfit)} has not all of its tools"
        elif candidates and self.faults and self.asked.folder is None and not os.environ.get(VARIABLE):
            kind = f"{self.source.format} archives are replayed in {' or '.join(candidates)}"
            what = (
                f"{kind}, whose data is not part of Assay: it does not lie beside the archive, and no folder is named"
            )
        elif candidates and self.faults:
            what = f"{name} cannot be opened: {self.faults[-1]}"
        else:
            what = f"in what to replay it cannot be told: it {calls}, and is of no domain that is known here"
        folder = "" if several or self.asked.folder else " --environment-data FOLDER"
        mode = f" --mode {self.asked.mode}" if self.asked.mode else ""
        command = f"assay {self.asked.command} {shlex.quote(self.asked.archive)} --environment {name}{folder}{mode} …"
        return ConfigError(what, place=self.asked.archive, remedy=f"say it: {command}")


def _tools_of(episode: RecordedEpisode) -> Iterator[str]:
    """The tools that were called, and that the task's reference calls."""
    for step in episode.steps:
        if step.kind == "tool.call" and step.actor in OWN_SIDE and of_interaction(step):
            yield str(step.payload.get("gen_ai.tool.name"))
    yield from needed(episode)
