"""Recorded episodes out of archives, one by one, with the agent they are of and what speaks against grading them.

An archive is read twice: first for what only all of it can say (in which mode it was recorded, which trials it records
twice, which definition each task has), then episode by episode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness.api.archive_gaps import TaskRepeat, missing_of, parts_of
from harness.importers.container import Archive
from harness.importers.recognition import choose
from harness.records.archive import ArchiveEpisode, ArchiveError, ArchiveRun, Basis, Finding, ImportOptions
from harness.records.replay import RecordedEpisode
from harness.records.vocabulary import Outcome
from harness.replay.recorded import from_archive, name_of

LABEL = "label."  # rules of findings that speak of an episode's task
CONFLICT = "the archive has another record of this trial, with another outcome"
Contradictions = Callable[[RecordedEpisode], Mapping[str, str]]  # mode -> why it was not recorded in that mode


@dataclass(frozen=True)
class ReadEpisode:
    """`label`: why the episode cannot be graded as the trial that it is labelled as; empty: it can. `absent`: it was
    planned, and the archive does not have it. `wrong`: modes that the archive was not recorded in, and why."""

    agent: str
    episode: RecordedEpisode
    label: str = ""
    absent: bool = False
    wrong: Mapping[str, str] = field(default_factory=dict)


@dataclass
class _Survey:
    """What the whole of an archive says."""

    definitions: dict[str, Any] = field(default_factory=dict)
    wrong: dict[str, str] = field(default_factory=dict)
    seen: dict[str, Outcome] = field(default_factory=dict)
    conflicts: set[str] = field(default_factory=set)
    records: int = 0


@dataclass
class Reading:
    """What to read. `contradictions` is asked about every episode before the first is read, with as much of it as it
    takes to see its mode. `relabel`: an episode whose content names another task is read as that task's.

    After the reading the counts say how many episodes changed their task, cannot be graded as what they are labelled
    as, were planned and are not there (`absent` by name, `unnamed` without; `at_least`: or more), and were the second
    record of a trial.
    """

    paths: Sequence[str]
    format: str | None = None
    relabel: bool = False
    contradictions: Contradictions = lambda episode: {}
    options: ImportOptions = field(default_factory=ImportOptions)
    unread: list[Finding] = field(default_factory=list)
    relabelled: int = 0
    mislabelled: int = 0
    absent: int = 0
    unnamed: int = 0
    at_least: bool = False
    doubled: int = 0

    def episodes(self) -> Iterator[ReadEpisode]:
        """Archive by archive. Raises ArchiveError for what is no archive, and for one that holds no episode."""
        for path in self.paths:
            yield from self._archive(path)

    def _archive(self, path: str) -> Iterator[ReadEpisode]:
        archive = Archive(path)
        importer, recognition = choose(archive, self.format)
        survey = self._survey(importer.read(archive, self.options), recognition.format)
        if not survey.records:
            raise ArchiveError(
                "holds no episode that could be read", place=path, remedy="`assay lint-archive` says why"
            )
        self.doubled += survey.records - len(survey.seen)
        runs: dict[str, ArchiveRun] = {}
        found: dict[str, dict[TaskRepeat, TaskRepeat]] = {}
        unread: list[Finding] = []
        for item in importer.read(archive, self.options):
            if isinstance(item, ArchiveRun):
                runs[item.key] = item
            elif isinstance(item, Finding):
                unread += [item] if item.unread else []
            elif survey.seen.pop(name_of(item), None) is not None:  # not the second record of a trial
                agent = self._agent(runs.get(item.run), path)
                read = ReadEpisode(agent, from_archive(item, recognition.format), wrong=survey.wrong)
                labelled = self._labelled(read, item.findings, survey)
                found.setdefault(item.run, {})[item.task.id, item.repeat] = (labelled.episode.task, item.repeat)
                yield labelled
        unread += archive.problems
        self.unread += unread
        missing = missing_of(runs.values(), found, parts_of(unread))
        self.absent += len(missing.named)
        self.unnamed += missing.unnamed
        self.at_least = self.at_least or missing.at_least
        for name, (key, (task, repeat)) in zip(missing.names, missing.named, strict=True):
            gap = RecordedEpisode(name, task, repeat, ())
            yield ReadEpisode(self._agent(runs[key], path), gap, absent=True)

    def _survey(self, items: Iterable[object], format: str) -> _Survey:
        survey = _Survey()
        for item in items:
            if not isinstance(item, ArchiveEpisode):
                continue
            survey.records += 1
            name = name_of(item)
            if survey.seen.setdefault(name, item.outcome) is not item.outcome:
                survey.conflicts.add(name)
            if self.relabel:
                survey.definitions.setdefault(item.task.id, item.task.definition)
            for mode, why in self.contradictions(evidence_of(item, format)).items():
                survey.wrong.setdefault(mode, f"episode {name}: {why}")
        return survey

    def _labelled(self, read: ReadEpisode, findings: Sequence[Finding], survey: _Survey) -> ReadEpisode:
        wrong = next((finding for finding in findings if finding.rule.startswith(LABEL)), None)
        proposed = "" if wrong is None else str(wrong.proposal.get("task_id", ""))
        known = self.relabel and wrong is not None and proposed in survey.definitions
        if known:
            episode = replace(read.episode, task=proposed, definition=survey.definitions[proposed])
            read = replace(read, episode=episode)
        if read.episode.id in survey.conflicts:
            self.mislabelled += 1
            return replace(read, label=CONFLICT)
        self.relabelled += known
        if known or wrong is None:
            return read
        self.mislabelled += 1
        return replace(read, label=wrong.what)

    def _agent(self, run: ArchiveRun | None, path: str) -> str:
        """The agent's name as the archive has it; of several archives that do not say, the file tells them apart."""
        name = "" if run is None else run.agent or "/".join(part for part in (run.scaffold, run.model) if part)
        if run is None or not name:
            return path
        return f"{name} ({path})" if len(self.paths) > 1 and run.agent is None and run.model is None else name


def evidence_of(item: ArchiveEpisode, format: str) -> RecordedEpisode:
    """As much of an episode as says in which mode it was recorded: its steps are read only where the importer's own
    evidence leaves that open."""
    if item.mode.value is None or item.mode.basis is Basis.AMBIGUOUS:
        return from_archive(item, format)
    return RecordedEpisode(name_of(item), item.task.id, item.repeat, (), mode=item.mode.value, outcome=item.outcome)
