"""Recorded episodes out of archives, one by one, with the agent they are of and what is wrong with their labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness.importers.container import Archive
from harness.importers.recognition import choose
from harness.records.archive import ArchiveEpisode, ArchiveError, ArchiveRun, Finding, ImportOptions
from harness.records.replay import RecordedEpisode
from harness.replay.recorded import from_archive

LABEL = "label."  # rules of findings that speak of an episode's task


@dataclass(frozen=True)
class ReadEpisode:
    """`label`: why the episode cannot be graded as the task that it is labelled as; empty: it can."""

    agent: str
    episode: RecordedEpisode
    label: str = ""


@dataclass
class Reading:
    """What to read. `relabel`: an episode whose content names another task is read as that task's.

    After the reading, `unread` has what could not be read, `relabelled` how many episodes changed their task.
    """

    paths: Sequence[str]
    format: str | None = None
    relabel: bool = False
    unread: list[Finding] = field(default_factory=list)
    relabelled: int = 0
    mislabelled: int = 0

    def episodes(self) -> Iterator[ReadEpisode]:
        """Archive by archive. Raises ArchiveError for what is no archive, and for one that holds no episode."""
        for path in self.paths:
            yield from self._archive(path)

    def _archive(self, path: str) -> Iterator[ReadEpisode]:
        archive = Archive(path)
        importer, recognition = choose(archive, self.format)
        definitions = _definitions(importer.read(archive, ImportOptions())) if self.relabel else {}
        runs: dict[str, ArchiveRun] = {}
        found = 0
        for item in importer.read(archive, ImportOptions()):
            if isinstance(item, ArchiveRun):
                runs[item.key] = item
            elif isinstance(item, Finding):
                self.unread += [item] if item.unread else []
            else:
                found += 1
                agent = _agent(runs.get(item.run), path, several=len(self.paths) > 1)
                read = ReadEpisode(agent, from_archive(item, recognition.format))
                yield self._labelled(read, item.findings, definitions)
        self.unread += archive.problems
        if not found:
            raise ArchiveError(
                "holds no episode that could be read", place=path, remedy="`assay lint-archive` says why"
            )

    def _labelled(self, read: ReadEpisode, findings: Sequence[Finding], definitions: dict[str, Any]) -> ReadEpisode:
        wrong = next((finding for finding in findings if finding.rule.startswith(LABEL)), None)
        if wrong is None:
            return read
        proposed = str(wrong.proposal.get("task_id", ""))
        if self.relabel and proposed in definitions:
            self.relabelled += 1
            episode = replace(read.episode, task=proposed, definition=definitions[proposed])
            return replace(read, episode=episode)
        self.mislabelled += 1
        return replace(read, label=wrong.what)


def _definitions(items: Iterator[object]) -> dict[str, Any]:
    """The tasks of an archive by the label they stand under."""
    return {item.task.id: item.task.definition for item in items if isinstance(item, ArchiveEpisode)}


def _agent(run: ArchiveRun | None, path: str, *, several: bool) -> str:
    """The agent's name as the archive has it; of several archives that do not say, the file tells them apart."""
    if run is None:
        return path
    name = run.agent or "/".join(part for part in (run.scaffold, run.model) if part)
    if not name:
        return path
    return f"{name} ({path})" if several and run.agent is None and run.model is None else name
