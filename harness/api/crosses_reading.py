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
    """`label`: why the episode cannot be graded as the task that it is labelled as; empty: it can. `absent`: it was
    planned, and the archive does not have it."""

    agent: str
    episode: RecordedEpisode
    label: str = ""
    absent: bool = False


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
    absent: int = 0

    def episodes(self) -> Iterator[ReadEpisode]:
        """Archive by archive. Raises ArchiveError for what is no archive, and for one that holds no episode."""
        for path in self.paths:
            yield from self._archive(path)

    def _archive(self, path: str) -> Iterator[ReadEpisode]:
        archive = Archive(path)
        importer, recognition = choose(archive, self.format)
        definitions = _definitions(importer.read(archive, ImportOptions())) if self.relabel else {}
        runs: dict[str, ArchiveRun] = {}
        found: dict[str, set[tuple[str, int]]] = {}
        for item in importer.read(archive, ImportOptions()):
            if isinstance(item, ArchiveRun):
                runs[item.key] = item
            elif isinstance(item, Finding):
                self.unread += [item] if item.unread else []
            else:
                read = ReadEpisode(self._agent(runs.get(item.run), path), from_archive(item, recognition.format))
                labelled = self._labelled(read, item.findings, definitions)
                found.setdefault(item.run, set()).add((labelled.episode.task, item.repeat))
                yield labelled
        for key, run in runs.items():
            yield from self._gaps(run, self._agent(run, path), found.get(key, set()))
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

    def _gaps(self, run: ArchiveRun, agent: str, found: set[tuple[str, int]]) -> Iterator[ReadEpisode]:
        """What a run's source says it planned, and does not have."""
        repeats = run.repeats or max((repeat + 1 for _, repeat in found), default=0)
        for task, repeat in ((task, repeat) for task in dict.fromkeys(run.tasks) for repeat in range(repeats)):
            if found and (task, repeat) not in found:
                self.absent += 1
                yield ReadEpisode(agent, RecordedEpisode(f"{task}/{repeat}", task, repeat, ()), absent=True)

    def _agent(self, run: ArchiveRun | None, path: str) -> str:
        """The agent's name as the archive has it; of several archives that do not say, the file tells them apart."""
        name = "" if run is None else run.agent or "/".join(part for part in (run.scaffold, run.model) if part)
        if run is None or not name:
            return path
        return f"{name} ({path})" if len(self.paths) > 1 and run.agent is None and run.model is None else name


def _definitions(items: Iterator[object]) -> dict[str, Any]:
    """The tasks of an archive by the label they stand under."""
    return {item.task.id: item.task.definition for item in items if isinstance(item, ArchiveEpisode)}
