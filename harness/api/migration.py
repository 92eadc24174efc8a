"""Converting an archive into a format that Assay writes, and proof that the conversion moves no score.

The first of the two checks that SOURCES S2 asks for before a rule is changed: the same record before and after,
replayed and graded under the same old rule. Only what passes it may be said of a rule afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory

from harness.api.archives import import_archive
from harness.api.exports import ExportFormat, export_run
from harness.api.replays import ReplayRequest, graded, replay_archive
from harness.api.replays_keeping import linked
from harness.api.replays_reading import SourceEpisode, source_of
from harness.records.base import canonical_json
from harness.records.errors import ConfigError
from harness.records.migration import MigrationDifference, MigrationReport
from harness.records.replays import EpisodeReplay, ReplayReport
from harness.store.sqlite import SqliteStore

_WITHOUT_SCORE = frozenset({"calls"})


class MigrationFormat(StrEnum):
    """Formats with a place for what was done."""

    JSONL = "jsonl"  # everything, to be imported again
    ATIF = "atif"  # a folder of trajectories: no verdict, no task


@dataclass(frozen=True)
class MigrationRequest:
    """What to convert. `out`: a file (jsonl) or folder to write; None: only the check is wanted.

    `check`: how both sides are replayed and graded; its archive is the one to convert.
    """

    archive: str
    to: MigrationFormat
    out: Path | None = None
    format: str | None = None
    check: ReplayRequest | None = None


def migrate(request: MigrationRequest) -> MigrationReport:
    """Convert, and check when asked. Raises ArchiveError, ConfigError, EnvironmentFault, StoreError."""
    if request.out is None and request.check is None:
        raise ConfigError("nothing to do", place="assay migrate", remedy="name --out, --check, or both")
    if not Path(request.archive).exists():
        raise ConfigError("there is no such file", place=request.archive, remedy="name an archive; a run is exported")
    with TemporaryDirectory(prefix="assay-migrate-") as folder:
        return _Migration(request, Path(folder)).carry_out()


class _Migration:
    def __init__(self, request: MigrationRequest, scratch: Path) -> None:
        self.request, self.scratch = request, scratch

    def carry_out(self) -> MigrationReport:
        request = self.request
        with SqliteStore(self.scratch / "before") as store:
            imported = import_archive(request.archive, store, format=request.format)
            runs = tuple(run.run for run in imported.runs)
            written = tuple(self._write(store, run, several=len(runs) > 1) for run in runs)
            report = MigrationReport(
                path=request.archive,
                format=imported.format,
                to=request.to.value,
                written=() if request.out is None else tuple(map(str, written)),
                checked=request.check is not None,
                notes=tuple(f"{found.place}: not read: {found.what}" for found in imported.unread),
            )
            if request.check is None:
                return report
            return self._checked(report, store, dict(zip(runs, written, strict=True)), request.check)

    def _write(self, store: SqliteStore, run: str, *, several: bool) -> Path:
        out = self.request.out or self.scratch / "after"
        atif = self.request.to is MigrationFormat.ATIF
        if several or self.request.out is None:
            out.mkdir(parents=True, exist_ok=True)
            out = out / (run if atif else f"{run}.jsonl")
        export_run(store, run, ExportFormat(self.request.to.value), out)
        return out

    def _checked(
        self, report: MigrationReport, store: SqliteStore, written: Mapping[str, Path], check: ReplayRequest
    ) -> MigrationReport:
        differences: list[MigrationDifference] = []
        episodes = unread = 0
        check, taken = graded(replace(check, archive=self.request.archive, format=self.request.format), "migrate")
        before = replay_archive(check)
        for run, path in written.items():
            # The original's own bytes, not what an import made of them, are what the converted one is held against.
            mine = _of_run(before, store, run)
            old = {read.trial or "": calls_of(read) for read in source_of(run, store, check.reading).episodes()}
            with self._opened(path) as (name, other):
                request = replace(check, archive=name, format=None)
                after = replay_archive(request, other)
                new = {_key(read): calls_of(read) for read in source_of(name, other, request.reading).episodes()}
            rows = {row.trial or row.task: row for row in after.episodes}
            episodes, unread = episodes + len(mine), unread + len(after.unread)
            differences += _differences(mine, rows, old, new)
        moved = {one.episode for one in differences if one.what not in _WITHOUT_SCORE}
        return report.model_copy(
            update={
                "grader": before.header.grader,
                "environment": before.header.environment,
                "mode": before.header.mode,
                "episodes": episodes,
                "taken": taken,
                "unread_before": len(before.unread),
                "unread_after": unread + len(before.unread),
                "moved": len(moved),
                "differences": tuple(differences),
            }
        )

    @contextmanager
    def _opened(self, path: Path) -> Iterator[tuple[str, SqliteStore | None]]:
        """The converted archive as something to replay: JSON lines are imported into a store of their own."""
        if self.request.to is MigrationFormat.ATIF:
            yield str(path), None
            return
        with SqliteStore(self.scratch / f"again-{path.stem}") as store:
            report = import_archive(path, store)
            yield report.runs[0].run, store


def calls_of(read: SourceEpisode) -> str:
    """The calls of an episode as text: who called what, with which arguments, and what came back."""
    said = ("gen_ai.tool.name", "arguments", "content")
    parts = [
        [step.kind, step.actor.value, *(step.payload.get(key) for key in said)]
        for step in read.episode.steps
        if step.kind in ("tool.call", "tool.result")
    ]
    return canonical_json(parts).decode()


def _key(read: SourceEpisode) -> str:
    return read.trial or read.episode.task  # a trajectory is called like the trial that it was


def _of_run(before: ReplayReport, store: SqliteStore, run: str) -> dict[str, EpisodeReplay]:
    """The replay of the original, by the trials that its episodes became."""
    return {row.trial or "": row for row in linked(store, run, before)}


def _differences(
    before: Mapping[str, EpisodeReplay],
    after: Mapping[str, EpisodeReplay],
    old: Mapping[str, str],
    new: Mapping[str, str],
) -> Iterator[MigrationDifference]:
    for trial, row in before.items():
        other = after.get(trial)
        if other is None:
            yield MigrationDifference(episode=row.episode, what="missing", before="there", after=None)
            continue
        facts, others = facts_of(row), facts_of(other)
        for what, value in facts.items():
            if others[what] != value:
                yield MigrationDifference(episode=row.episode, what=what, before=value, after=others[what])
        if old.get(trial) != new.get(trial):
            yield MigrationDifference(episode=row.episode, what="calls", before=old.get(trial), after=new.get(trial))
    for trial, row in after.items():
        if trial not in before:
            yield MigrationDifference(episode=row.episode, what="added", before=None, after="there")


def facts_of(row: EpisodeReplay) -> dict[str, str | None]:
    """What must not move, as text: the recorded verdict, the replay, the state it ended in, the grade."""
    fidelity, grade = row.fidelity, row.grade
    invalid = fidelity.invalid
    return {
        "recorded": f"{row.recorded.value} {row.reward}",
        "replay": "valid" if invalid is None else f"{invalid.value}: {fidelity.detail}",
        "end state": row.end_state,
        "outcome": None if grade is None else grade.outcome.value,
        "reward": None if grade is None or grade.reward is None else f"{grade.reward:g}",
        "criteria": None if grade is None else canonical_json(grade.criteria).decode(),
    }
