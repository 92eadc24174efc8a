"""Bringing archives of other harnesses into a store, and asking whether they contradict themselves.

An archive is read once, for its inventory: which runs, tasks and trials, what contradicts what, a digest of all that
was read. Its episodes wait in a temporary file in the store's folder until then, and are written. The run's id is made
from that digest, so importing again finds what is there already and goes on where it was cut off; every batch of
episodes is one transaction.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from harness.api.archive_inventory import RunInventory
from harness.api.archive_reading import suite_version
from harness.api.archive_spool import Kept, Spool, spooling
from harness.api.archive_writing import Writer
from harness.api.export_lines import Restoring, is_export
from harness.importers.consistency import Consistency, instant
from harness.importers.container import Archive
from harness.importers.recognition import choose
from harness.protocols import Importer
from harness.records.archive import (
    CUT,
    ArchiveEpisode,
    ArchiveError,
    ArchiveItem,
    ArchiveRun,
    Finding,
    ImportOptions,
    Recognition,
)
from harness.records.base import Record, digest_of
from harness.records.errors import ConfigError, StoreError
from harness.records.run import RunConfig, RunRow
from harness.records.trial import SolverSpec
from harness.records.vocabulary import Outcome
from harness.store.encoding import UnstorableError, storable
from harness.store.ended import EndedWriter, writing
from harness.store.sqlite import SqliteStore

OWN = "assay"  # the format of `assay export --to jsonl`
IMPORTED = "imported"  # the solver's name of an imported run
_MOST_GAPS = 50


class ImportedRun(Record):
    """One run that was imported. `written` episodes are new, `already` were there; `gaps` are planned and not there."""

    run: str
    suite: str
    agent: str | None
    model: str | None
    planned: int
    written: int
    already: int
    outcomes: dict[Outcome, int]
    gaps: int
    first_gaps: tuple[str, ...]
    at_least: bool = False  # the archive was cut off, and does not say what it planned: there may be more gaps


class ImportReport(Record):
    """What an archive is, what came in, and what did not. `digest` is of everything that was read."""

    path: str
    format: str
    what: str
    digest: str
    runs: tuple[ImportedRun, ...]
    missing: tuple[str, ...]  # what the archive does not say
    unread: tuple[Finding, ...]  # what could not be read or used
    findings: tuple[Finding, ...]  # what was read and contradicts itself

    @property
    def whole(self) -> bool:
        """Whether everything was read and every planned trial has a verdict."""
        graded = all(sum(run.outcomes[o] for o in (Outcome.PASSED, Outcome.FAILED)) >= run.planned for run in self.runs)
        return graded and not self.unread


class LintReport(Record):
    """Where an archive contradicts itself. Nothing was changed, and nothing is by importing it."""

    path: str
    format: str
    what: str
    episodes: int
    missing: tuple[str, ...]
    findings: tuple[Finding, ...]


def lint_archive(path: str | Path, *, format: str | None = None, options: ImportOptions | None = None) -> LintReport:
    """Read an archive and say where it contradicts itself. Raises ArchiveError, ConfigError."""
    archive = Archive(path)
    importer, recognition = choose(archive, format)
    checks = Consistency()
    for item in importer.read(archive, options or ImportOptions()):
        checks.take(item)
    return LintReport(
        path=str(path),
        format=recognition.format,
        what=recognition.what,
        episodes=checks.episodes,
        missing=recognition.missing,
        findings=(*archive.problems, *checks.findings()),
    )


def import_archive(
    path: str | Path,
    store: SqliteStore,
    *,
    format: str | None = None,
    run: str | None = None,
    options: ImportOptions | None = None,
) -> ImportReport:
    """Bring an archive into a store; `run` is the id to give it. Raises ArchiveError, ConfigError, StoreError."""
    archive = Archive(path)
    if format in (None, OWN) and is_export(archive):
        return _restored(archive, store, run)
    importer, recognition = choose(archive, format)
    return _Import(archive, importer, recognition, options or ImportOptions(), run).into(store)


def _restored(archive: Archive, store: SqliteStore, asked: str | None) -> ImportReport:
    """A run of ours from its own export, under its own id."""
    if asked is not None:
        raise ConfigError("an exported run keeps its id", place="--as", remedy="leave --as out")
    restoring = Restoring(archive, store)
    restoring.restore()
    row, trials = store.run(restoring.run), store.trials(restoring.run)
    outcomes = Counter(trial.result.outcome for trial in trials if trial.result is not None)
    run = ImportedRun(
        run=row.run,
        suite=row.config.suite,
        agent=row.config.agent,
        model=row.config.model,
        planned=len(row.config.tasks) * row.config.repeats,
        written=restoring.trials - restoring.already,
        already=restoring.already,
        outcomes={outcome: outcomes[outcome] for outcome in Outcome},
        gaps=0,
        first_gaps=(),
    )
    return ImportReport(
        path=str(archive.path),
        format=OWN,
        what="a run of Assay, exported whole; every hash was derived again",
        digest=archive.identity,
        runs=(run,),
        missing=(),
        unread=(),
        findings=(),
    )


class _Import:
    """One import: the inventory, then the writing."""

    def __init__(
        self, archive: Archive, importer: Importer, recognition: Recognition, options: ImportOptions, run: str | None
    ) -> None:
        self.archive, self.importer, self.recognition, self.options = archive, importer, recognition, options
        self.asked = run
        self.checks = Consistency()
        self.runs: dict[str, RunInventory] = {}
        self.refused: list[Finding] = []  # episodes that were read and cannot be stored

    def into(self, store: SqliteStore) -> ImportReport:
        with spooling(store.folder) as spool, _collecting_seldom():
            return self._into(store, spool)

    def _into(self, store: SqliteStore, spool: Spool) -> ImportReport:
        self._read(spool)
        unread = [*self.archive.problems, *(f for f in self.checks.findings() if f.unread), *self.refused]
        self.refused = []
        if not any(found.first_attempts for found in self.runs.values()):
            first = f": {unread[0].place}: {unread[0].what}" if unread else ""
            raise ArchiveError(f"no episode could be read{first}", place=str(self.archive.path), remedy="see above")
        found = {key: inventory for key, inventory in self.runs.items() if inventory.first_attempts}
        for inventory in found.values():
            inventory.cut = any(finding.rule == CUT for finding in unread)
        names = self._names(found)
        reports = []
        writers: dict[str, Writer] = {}
        with _owning(store, names.values()):
            with writing(store) as ended:
                for key, inventory in found.items():
                    writers[key] = self._open(store, ended, names[key], inventory)
                for kept in spool:
                    self._write(writers[kept.run], kept)
            reports += [self._report(writer, found[key]) for key, writer in writers.items()]
        return ImportReport(
            path=str(self.archive.path),
            format=self.recognition.format,
            what=self.recognition.what,
            digest=self.archive.identity,
            runs=tuple(reports),
            missing=self.recognition.missing,
            unread=(*unread, *self.refused),
            findings=tuple(f for f in self.checks.findings() if not f.unread),
        )

    def _read(self, spool: Spool) -> None:
        # In a frame of its own: an episode holds on to its importer, which may know a hundred thousand tasks.
        for item in self.importer.read(self.archive, self.options):
            self._count(item, spool)

    def _write(self, writer: Writer, kept: Kept) -> None:
        try:
            writer.take(kept)
        except UnstorableError as error:
            self.refused.append(_refused(kept.place, error))

    def _count(self, item: ArchiveItem, spool: Spool) -> None:
        if not isinstance(item, ArchiveEpisode):
            self.checks.take(item)
            if isinstance(item, ArchiveRun):
                self.runs.setdefault(item.key, RunInventory(self._named(item)))
            return
        steps = item.steps()
        self.checks.take(item, steps)
        inventory = self.runs.setdefault(item.run, RunInventory(ArchiveRun(item.run, item.run)))
        suite = inventory.run.suite
        task = spool.task(item.task, suite)
        known = inventory.counted((task.id, item.repeat, item.attempt))
        if known is not None:
            known.conflict = known.conflict or known.outcome is not item.outcome
            return
        try:
            spool.take(item, steps, suite)
        except UnstorableError as error:
            self.refused.append(_refused(item.place, error))
        else:
            inventory.add(task, item)

    def _named(self, run: ArchiveRun) -> ArchiveRun:
        """The run with the labels that the user stated."""
        given = {name: getattr(self.options, name) for name in ("agent", "scaffold", "model")}
        return replace(run, **{name: value for name, value in given.items() if value is not None})

    def _names(self, found: dict[str, RunInventory]) -> dict[str, str]:
        """Ids of ours for the archive's runs: kept ones, the asked one, or made from the archive's digest."""
        base = self.asked or f"{self.recognition.format}-{self.archive.identity[7:17]}"
        several = len(found) > 1
        return {
            key: (inventory.run.run if self.asked is None and inventory.run.run else None)
            or (f"{base}-{number}" if several else base)
            for number, (key, inventory) in enumerate(found.items(), start=1)
        }

    def _open(self, store: SqliteStore, ended: EndedWriter, name: str, inventory: RunInventory) -> Writer:
        config, run = self._config(inventory), inventory.run
        created = instant(run.created)
        existing = next((row for row in store.runs() if row.run == name), None)
        if existing is None:
            moment = created or datetime.now(UTC)
            row = RunRow(run=name, created=moment.isoformat(), config=config, config_digest=digest_of(config))
            store.create_run(row)
        elif existing.config != config:
            raise StoreError(
                f"run {name!r} is in the store already, and is not this import",
                place=str(store.path),
                remedy="give another id with --as",
            )
        return Writer(store, ended, name, run, inventory.counted)

    def _config(self, inventory: RunInventory) -> RunConfig:
        run = inventory.run
        planned, repeats = inventory.plan
        source = {"format": self.recognition.format, "digest": self.archive.identity, "file": self.archive.path.name}
        missing = run.missing or self.recognition.missing
        notes = [f"imported from {self.archive.path.name}: {self.recognition.what}"]
        notes += [f"the archive does not say: {', '.join(missing)}"] if missing else []
        return RunConfig(
            suite=run.suite,
            suite_version=run.suite_version or suite_version(inventory.tasks),
            suite_source=self.archive.path.name,
            tasks=planned,
            solver=SolverSpec(name=IMPORTED, version="1"),
            model=run.model,
            scaffold=run.scaffold,
            agent=run.agent,
            repeats=repeats,
            retries=0,
            extra={
                "import": source
                | {"key": run.key, "stated": storable(run.stated)}
                | ({"cut": True} if inventory.cut and not inventory.run.states_plan else {}),
                "undated": instant(run.created) is None,
                "notes": notes,
            },
        )

    def _report(self, writer: Writer, inventory: RunInventory) -> ImportedRun:
        (planned, repeats), gaps = inventory.plan, inventory.gaps
        return ImportedRun(
            run=writer.run,
            suite=inventory.run.suite,
            agent=inventory.run.agent,
            model=inventory.run.model,
            planned=len(planned) * repeats,
            written=writer.written,
            already=writer.already,
            outcomes={outcome: writer.outcomes[outcome] for outcome in Outcome},
            gaps=len(gaps),
            first_gaps=tuple(gaps[:_MOST_GAPS]),
            at_least=inventory.cut and not inventory.run.states_plan,
        )


def _refused(place: str, error: UnstorableError) -> Finding:
    what = f"cannot be stored: {error.message} ({error.place})"
    return Finding(rule="archive.unreadable", place=place, what=what, unread=True)


@contextmanager
def _collecting_seldom() -> Iterator[None]:
    """Look for cyclic garbage every 50,000 objects: decoding makes millions, and none of them in cycles."""
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], 50_000) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def _owning(store: SqliteStore, runs: Iterable[str]) -> Iterator[None]:
    """Own several runs at once."""
    with ExitStack() as stack:
        for run in runs:
            stack.enter_context(store.own(run))
        yield
