"""Recorded episodes out of an archive, one by one, with the agent they are of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.importers.container import Archive
from harness.importers.recognition import choose
from harness.records.archive import ArchiveEpisode, ArchiveError, ArchiveRun, Finding, ImportOptions
from harness.records.replay import RecordedEpisode

Unread = list[Finding]


def recorded_episode(episode: ArchiveEpisode) -> RecordedEpisode:
    """An episode as replays and graders read it."""
    return RecordedEpisode(
        id=f"{episode.task.id}/{episode.repeat}",
        task=episode.task.id,
        repeat=episode.repeat,
        steps=tuple(episode.steps()),
        mode=episode.mode.value,
        definition=episode.task.definition,
        outcome=episode.outcome,
        reward=episode.reward,
        end=episode.termination.value or "",
        stated=episode.stated,
    )


def read_archives(
    paths: Sequence[str], unread: Unread, format: str | None = None
) -> Iterator[tuple[str, RecordedEpisode]]:
    """The agent and the episode, archive by archive. What cannot be read is added to `unread`.

    Raises ArchiveError for what is no archive, and for one that holds no episode.
    """
    for path in paths:
        archive = Archive(path)
        importer, _ = choose(archive, format)
        runs: dict[str, ArchiveRun] = {}
        found = 0
        for item in importer.read(archive, ImportOptions()):
            if isinstance(item, ArchiveRun):
                runs[item.key] = item
            elif isinstance(item, Finding):
                if item.unread:
                    unread.append(item)
            else:
                found += 1
                yield _agent(runs.get(item.run), path, several=len(paths) > 1), recorded_episode(item)
        unread += archive.problems
        if not found:
            raise ArchiveError(
                "holds no episode that could be read", place=path, remedy="`assay lint-archive` says why"
            )


def _agent(run: ArchiveRun | None, path: str, *, several: bool) -> str:
    """The agent's name as the archive has it; of several archives that do not say, the file tells them apart."""
    if run is None:
        return path
    name = run.agent or "/".join(part for part in (run.scaffold, run.model) if part)
    if not name:
        return path
    return f"{name} ({path})" if several and run.agent is None and run.model is None else name
