"""What a replay reads: the episodes of an archive, or of a run in the store, one by one, and as often as asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from harness.api.archive_gaps import Missing, TaskRepeat, missing_of, parts_of
from harness.api.archives import OWN
from harness.api.crosses_reading import LABEL, evidence_of
from harness.api.export_lines import is_export
from harness.api.regrades_reading import definitions_of, missing_in, relabelled, stored_episode
from harness.importers.container import Archive
from harness.importers.recognition import choose
from harness.records.archive import ArchiveEpisode, ArchiveError, ArchiveRun, Finding, ImportOptions
from harness.records.errors import ConfigError
from harness.records.replay import RecordedEpisode
from harness.replay.recorded import from_archive
from harness.report.summary import last_attempts
from harness.store.sqlite import SqliteStore


@dataclass(frozen=True, slots=True)
class SourceEpisode:
    """An episode, its trial in the store (None: not of a run there), and what contradicts the task that it is labelled
    as ("": nothing does)."""

    episode: RecordedEpisode
    trial: str | None = None
    label: str = ""


@dataclass(frozen=True)
class ReadingOptions:
    """How to read. `relabel`: an episode whose content names another task is read as that task's."""

    format: str | None = None
    options: ImportOptions = field(default_factory=ImportOptions)
    relabel: bool = False


class Source(Protocol):
    """Where episodes are read from. `identity`, `missing` and `unread` are complete once they have been read."""

    path: str
    format: str

    @property
    def identity(self) -> str: ...

    @property
    def missing(self) -> Missing: ...

    @property
    def suites(self) -> tuple[str, ...]:
        """What the episodes are of, in the source's words; known once the first has been read."""
        ...

    @property
    def unread(self) -> tuple[Finding, ...]: ...

    def evidence(self) -> Iterator[RecordedEpisode]:
        """The episodes, with as much of them as it takes to see in which mode they were recorded."""
        ...

    def episodes(self) -> Iterator[SourceEpisode]: ...


def source_of(archive: str, store: SqliteStore | None, reading: ReadingOptions) -> Source:
    """The archive at a path, or else the run of that name in the store.

    Raises ArchiveError, ConfigError, StoreError.
    """
    if Path(archive).exists():
        return ArchiveSource(archive, reading)
    if store is None:
        raise ConfigError(
            "there is no such file, and no store to look for a run in",
            place=archive,
            remedy="name an archive, or a run of the store that --store names",
        )
    return RunSource(store, archive, reading.relabel)


class ArchiveSource:
    """Episodes of an archive. Raises ArchiveError when it is none, or holds a run of our own that was exported."""

    def __init__(self, path: str, reading: ReadingOptions) -> None:
        self.path, self._options, self._relabel = path, reading.options, reading.relabel
        self._archive = Archive(path)
        if reading.format in (None, OWN) and is_export(self._archive):
            raise ArchiveError(
                "a run of Assay's own that was exported", place=path, remedy="`assay import` it, then replay the run"
            )
        self._importer, recognition = choose(self._archive, reading.format)
        self.format = recognition.format
        self._unread: list[Finding] = []
        self._found: dict[str, dict[TaskRepeat, TaskRepeat]] = {}  # by run: as labelled, as counted
        self._plans: dict[str, ArchiveRun] = {}
        self._definitions: dict[str, Any] = {}

    @property
    def identity(self) -> str:
        return self._archive.identity

    @property
    def suites(self) -> tuple[str, ...]:
        return tuple(run.suite for run in self._plans.values())

    @property
    def missing(self) -> Missing:
        return missing_of(self._plans.values(), self._found, parts_of(self.unread))

    @property
    def unread(self) -> tuple[Finding, ...]:
        return (*self._archive.problems, *self._unread)

    def evidence(self) -> Iterator[RecordedEpisode]:
        for item in self._importer.read(self._archive, self._options):
            if isinstance(item, ArchiveEpisode):
                if self._relabel:
                    self._definitions.setdefault(item.task.id, item.task.definition)
                yield evidence_of(item, self.format)

    def episodes(self) -> Iterator[SourceEpisode]:
        self._unread, self._found, self._plans = [], {}, {}
        for item in self._importer.read(self._archive, self._options):
            if isinstance(item, ArchiveEpisode):
                read = self._labelled(from_archive(item, self.format), item.findings)
                slot = (item.task.id, item.repeat)
                self._found.setdefault(item.run, {}).setdefault(slot, (read.episode.task, item.repeat))
                yield read
            elif isinstance(item, ArchiveRun):
                self._plans[item.key] = item
            elif item.unread:
                self._unread.append(item)
        if not self._found:
            raise ArchiveError(
                "holds no episode that could be read", place=self.path, remedy="`assay lint-archive` says why"
            )

    def _labelled(self, episode: RecordedEpisode, findings: Sequence[Finding]) -> SourceEpisode:
        wrong = next((found for found in findings if found.rule.startswith(LABEL)), None)
        if wrong is None:
            return SourceEpisode(episode)
        task = str(wrong.proposal.get("task_id", ""))
        if self._relabel and task in self._definitions:
            return SourceEpisode(replace(episode, task=task, definition=self._definitions[task]))
        return SourceEpisode(episode, label=f"{wrong.what}; --relabel grades it as the task that its content names")


@dataclass
class RunSource:
    """The last attempt at every slot of a run in the store. Raises StoreError."""

    store: SqliteStore
    name: str
    relabel: bool = False
    path: str = ""
    format: str = ""
    run: str = field(init=False)
    unread: tuple[Finding, ...] = ()
    _names: dict[str, str] = field(default_factory=dict)  # the store's of tasks, by the archive's
    _content: dict[str, str] = field(default_factory=dict)  # of trials that count as another task than their label's

    def __post_init__(self) -> None:
        row = self.store.run(self.name)
        self.run = self.path = row.run
        self._imported = row.config.extra.get("import")
        self.suites = (row.config.suite,)
        self.format = str(self._imported["format"]) if isinstance(self._imported, dict) else OWN

    @property
    def missing(self) -> Missing:
        names = self._names
        return missing_in(self.store, self.run, {trial: names[task] for trial, task in self._content.items()})

    @property
    def identity(self) -> str:
        """The digest of the archive it was imported from; of a run of ours, the hash that its stream ended with."""
        if isinstance(self._imported, dict):
            return str(self._imported["digest"])
        head = ""
        for event in self.store.events(self.run):
            head = event.hash
        return head

    def evidence(self) -> Iterator[RecordedEpisode]:
        return (found.episode for found in self.episodes())

    def episodes(self) -> Iterator[SourceEpisode]:
        trials = [trial for trial in last_attempts(self.store.trials(self.run)) if trial.result is not None]
        definitions = definitions_of(self.store, trials) if self.relabel else {}
        for trial in trials:
            stored = stored_episode(self.store, trial)
            found = relabelled(stored, definitions)
            self._names[stored.episode.task] = trial.task
            if found is not stored:
                self._content[trial.trial] = found.episode.task
            yield SourceEpisode(found.episode, trial=trial.trial, label=found.label)
