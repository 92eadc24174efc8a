"""Grading a stored run, or an archive, again: the old scores stay, the new ones link to them.

Two kinds of evidence, one command. Trials that happened in containers are graded from what their seals kept; episodes,
imported or conversations of our own, are replayed in an environment first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from harness.api.archives import import_archive
from harness.api.export_lines import is_export
from harness.api.inferring import Asked, shown_by
from harness.api.regrade_containers import ContainerRegrade, regrade_containers
from harness.api.regrades_episodes import EpisodeRegrade, regrade_episodes
from harness.api.regrades_reading import missing_in
from harness.api.regrades_writing import keep_regrade, regrades
from harness.importers.container import Archive
from harness.records.archive import ImportOptions
from harness.records.base import Record
from harness.records.cross import CrossEpisode, TransitionLine
from harness.records.errors import ConfigError
from harness.records.regrade import Regraded, RegradeHeader
from harness.records.vocabulary import Outcome
from harness.replay.effects import transition_of
from harness.report.summary import last_attempts
from harness.store.sqlite import SqliteStore

Notice = Callable[[str], None]
_MOST_MISSING = 10


class RegradeReport(Record):
    """A run graded again. `moved` are those of `grades` with another outcome than the record; `unfinished` trials have
    no result to begin with. `unread` parts of the archive that it was just imported from could not be read; `missing`
    trials were planned and are not there, `at_least` so many."""

    run: str
    header: RegradeHeader
    outcomes: dict[Outcome, int]
    transition: TransitionLine
    moved: int
    unfinished: int
    unread: int
    missing: int
    first_missing: tuple[str, ...]
    at_least: bool
    grades: tuple[Regraded, ...]

    @property
    def whole(self) -> bool:
        """Whether all was read and every trial has a grade now."""
        graded = all(grade.grade.outcome.graded for grade in self.grades)
        return graded and not (self.unfinished or self.unread or self.missing or self.at_least)


@dataclass(frozen=True)
class RegradeRequest:
    """What to grade again. `target`: a run of the store, or an archive, which is imported first.

    `suite`: for trials in containers, the suite whose tests are taken as they are now. `grader` may be left out for
    these alone: then it is the one that the tests name. The other fields are those of :class:`EpisodeRegrade`.
    """

    target: str
    grader: str | None = None
    suite: str | None = None
    data: str | None = None
    environment: str | None = None
    environment_data: Path | None = None
    mode: str | None = None
    task_map: Path | None = None
    relabel: bool = False
    format: str | None = None


def regrade(
    request: RegradeRequest, store: SqliteStore, notice: Notice = lambda line: None
) -> tuple[RegradeReport, ...]:
    """Grade again and keep it: a report for each run. Raises ArchiveError, ConfigError, EngineUnavailable,
    EnvironmentFault, StoreError."""
    request, options = _completed(request, store, notice)
    runs, unread = _runs(request, store, notice, options)
    return tuple(_regrade_run(run, request, store, notice, unread) for run in runs)


def _completed(
    request: RegradeRequest, store: SqliteStore, notice: Notice
) -> tuple[RegradeRequest, ImportOptions | None]:
    """The request with the environment that an archive of others shows, where none is named."""
    if request.environment is not None or request.suite is not None:
        return request, None
    if Path(request.target).exists():
        if is_export(Archive(request.target)):
            return request, None
    elif "import" not in store.run(store.run_id(request.target)).config.extra:
        return request, None
    asked = Asked(
        request.target,
        mode=request.mode or "",
        folder=request.environment_data,
        format=request.format,
        command="regrade",
        needs_mode=False,
    )
    shown = shown_by(asked, store)
    for note in shown.notes:
        notice(f"taken: {note}")
    return replace(request, environment=shown.environment, environment_data=shown.folder), shown.options


def _runs(
    request: RegradeRequest, store: SqliteStore, notice: Notice, options: ImportOptions | None
) -> tuple[tuple[str, ...], int]:
    """The runs, and how many parts of the archive they come from could not be read."""
    if not Path(request.target).exists():
        return (store.run_id(request.target),), 0
    report = import_archive(request.target, store, format=request.format, options=options)
    for run in report.runs:
        notice(f"{request.target} is run {run.run} of the store ({run.written} trials new, {run.already} known)")
    for finding in report.unread:
        notice(f"{finding.place}: not read: {finding.what}")
    return tuple(run.run for run in report.runs), len(report.unread)


def _regrade_run(run: str, request: RegradeRequest, store: SqliteStore, notice: Notice, unread: int) -> RegradeReport:
    if _of_episodes(store, run):
        header, grades = regrade_episodes(store, _episodes(run, request))
    else:
        header, grades = regrade_containers(store, _containers(run, request), notice)
    keep_regrade(store, run, header, grades)
    return _report(store, run, header, grades, unread)


def kept_regrades(store: SqliteStore, run: str) -> tuple[RegradeReport, ...]:
    """The reports of all that a run was graded again by, oldest first. Raises StoreError."""
    id_ = store.run_id(run)
    return tuple(_report(store, id_, header, grades) for header, grades in regrades(store, id_))


def _report(
    store: SqliteStore, run: str, header: RegradeHeader, grades: tuple[Regraded, ...], unread: int = 0
) -> RegradeReport:
    episodes = [CrossEpisode(one.trial, one.task, one.repeat, run, one.old) for one in grades]
    counts = Counter(one.grade.outcome for one in grades)
    old, new = [one.old for one in grades], [one.grade.outcome for one in grades]
    missing = missing_in(store, run)
    return RegradeReport(
        run=run,
        header=header,
        outcomes={outcome: counts[outcome] for outcome in Outcome},
        transition=transition_of(episodes, ("as recorded", old), (header.grader, new)),
        moved=sum(one.moved for one in grades),
        unfinished=sum(trial.result is None for trial in last_attempts(store.trials(run))),
        unread=unread,
        missing=missing.count,
        first_missing=missing.names[:_MOST_MISSING],
        at_least=missing.at_least,
        grades=grades,
    )


def _of_episodes(store: SqliteStore, run: str) -> bool:
    """Whether the run's trials are episodes of calls and answers, and not containers that were sealed."""
    if "import" in store.run(run).config.extra:
        return True
    first = next(iter(store.trials(run)), None)
    return first is not None and store.planned(first.trial).task.conversation is not None


def _episodes(run: str, request: RegradeRequest) -> EpisodeRegrade:
    if request.grader is None:
        raise ConfigError("no grader is named", place="--grader", remedy="name one, e.g. --grader tau-bench@718ffa1")
    if request.suite is not None:
        raise ConfigError(
            f"run {run} has no containers to run a suite's tests in", place="--suite", remedy="give --data instead"
        )
    return EpisodeRegrade(
        run=run,
        grader=request.grader,
        data=request.data,
        environment=request.environment,
        environment_data=request.environment_data,
        mode=request.mode,
        task_map=request.task_map,
        relabel=request.relabel,
    )


def _containers(run: str, request: RegradeRequest) -> ContainerRegrade:
    given = [name for name in ("environment", "mode", "task_map") if getattr(request, name) is not None]
    if given or request.relabel:
        option = f"--{(given or ['relabel'])[0].replace('_', '-')}"
        raise ConfigError(
            f"run {run} happened in containers: they are graded from what was sealed", remedy=f"leave {option} out"
        )
    return ContainerRegrade(run=run, suite=request.suite or request.data, grader=request.grader)
