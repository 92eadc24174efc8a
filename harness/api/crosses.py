"""The cross table of archives: each episode replayed once for each mode and data version, and graded by every rule.

Episodes stream: one is read, replayed, graded in all cells and let go, so that an archive may be larger than memory.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from harness.api.carriers import environment
from harness.api.crosses_data import DataVersion, NoTask, data_versions, definition_digest, digest_with
from harness.api.crosses_reading import ReadEpisode, Reading
from harness.api.exports import write_pieces
from harness.api.inferring import Asked, shown_by
from harness.grading.episodes.criteria import initial_of
from harness.grading.episodes.registry import episode_grader, named
from harness.protocols import Environment, EpisodeCase, EpisodeGrader
from harness.records.archive import ImportOptions
from harness.records.cross import Cell, CellName, CrossEpisode, CrossTable
from harness.records.environment import Opening
from harness.records.errors import ConfigError
from harness.records.grade import Grade
from harness.records.replay import Invalid, RecordedEpisode, Replayed
from harness.records.vocabulary import Outcome, Reason
from harness.replay.cross import cross
from harness.replay.engine import Comparison, replay_episode
from harness.replay.modes import contradiction, mode_of
from harness.report.words import counted
from harness.runner.conversing import close_with

COLUMNS = ("agent", "task", "repeat", "recorded", "grader", "data", "mode", "outcome", "reason")
_MISLABELLED, _ABSENT = "label", "absent"


@dataclass(frozen=True)
class CrossRequest:
    """What to cross. The first of each axis is what the others are compared with; no `modes`: the recorded one.

    `data`: versions as :mod:`harness.api.crosses_data` reads them. `task_map`: a file that says under which name the
    data has a task of the archive. `relabel`: take the labels that an archive's content proposes.
    """

    archives: tuple[str, ...]
    environment: str  # "": the one that the first archive shows (:mod:`harness.api.inferring`)
    graders: tuple[str, ...]
    data: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    environment_data: Path | None = None
    task_map: Path | None = None
    format: str | None = None
    relabel: bool = False


@dataclass(frozen=True)
class Crossed:
    """The table, and what it was made from: the episodes, and each cell's outcomes in their order."""

    table: CrossTable
    episodes: tuple[CrossEpisode, ...]
    cells: tuple[Cell, ...]

    def write(self, out: Path) -> int:
        """Write a CSV, a row for each episode and cell, whole or not at all; returns how many. Raises StoreError."""
        return write_pieces(out, self._lines()) - 1

    def _lines(self) -> Iterator[bytes]:
        yield _csv_line(COLUMNS)
        for cell in self.cells:
            name = cell.name
            for episode, outcome, reason in zip(self.episodes, cell.outcomes, cell.reasons, strict=True):
                which = (episode.agent, episode.task, str(episode.repeat), episode.recorded.value)
                yield _csv_line((*which, name.grader, name.data, name.mode, outcome.value, reason))


def cross_archives(request: CrossRequest) -> CrossTable:
    """The table alone; see :func:`crossed`."""
    return crossed(request).table


def crossed(request: CrossRequest) -> Crossed:
    """Every episode in every cell.

    Raises ArchiveError, ConfigError, EnvironmentFault before the first step for what cannot be meant.
    """
    for place, what, given in (("ARCHIVE", "archive", request.archives), ("--graders", "grader", request.graders)):
        if not given:
            raise ConfigError(f"no {what} is named", place=place, remedy="name at least one: assay cross --help")
    shown = shown_by(
        Asked(
            request.archives[0],
            request.environment,
            folder=request.environment_data,
            format=request.format,
            command="cross",
            needs_mode=False,
        )
    )
    world = environment(shown.environment, shown.folder)
    with ExitStack() as stack:
        close_with(stack, world)
        return _crossed_in(world, request, [f"taken: {note}" for note in shown.notes], shown.options)


def _crossed_in(world: Environment, request: CrossRequest, notes: list[str], options: ImportOptions) -> Crossed:
    versions = data_versions(request.data, world.capabilities, request.task_map)
    graders = [episode_grader(name) for name in request.graders]
    for place, given in (("--graders", [named(grader) for grader in graders]), ("--mode", request.modes)):
        if len(set(given)) < len(given):
            raise ConfigError(f"one of {', '.join(given)} is named twice", place=place, remedy="name each once")
    for mode in request.modes:
        world.capabilities.check(Opening(mode))
    filling = _Filling(world, graders, versions, request.modes)
    reading = Reading(request.archives, request.format, request.relabel, filling.contradictions, options)
    for read in reading.episodes():
        filling.take(read)
        filling.wrong.update({f"not recorded in {mode}: {why}": None for mode, why in read.wrong.items()})
    cells = filling.cells()
    table = cross(filling.episodes, cells, notes + _notes(reading, filling), reading.unnamed)
    table = table.model_copy(update={"at_least": reading.at_least, "partial": bool(reading.unread)})
    return Crossed(table, tuple(filling.episodes), tuple(cells))


def replayed_in(recorded: RecordedEpisode, world: Environment, opening: Opening, made_in: str = "") -> Replayed:
    """The replay of an episode. Recorded states are of the data version that it was made in (empty: the environment's
    default): in another they differ by what the versions differ in, so that there the answers alone are compared.

    Raises EnvironmentFault.
    """
    default = next(iter(world.capabilities.data), "")
    same = (opening.data or default) == (made_in or default)
    return replay_episode(recorded, world, opening, Comparison(states=same))


@dataclass
class _Filling:
    """Fills the columns of the table, episode by episode."""

    world: Environment
    graders: Sequence[EpisodeGrader]
    versions: Sequence[DataVersion]
    modes: tuple[str, ...]
    episodes: list[CrossEpisode] = field(default_factory=list)
    _columns: dict[CellName, list[tuple[Outcome, str]]] = field(default_factory=dict)
    _definitions: set[tuple[str, str]] = field(default_factory=set)
    flags: Counter[str] = field(default_factory=Counter)
    wrong: dict[str, None] = field(default_factory=dict)  # why archives are in no cell of a mode

    def contradictions(self, recorded: RecordedEpisode) -> dict[str, str]:
        """Modes of the table in which the episode was not recorded, and why. Without any, the first episode's is the
        table's. Raises ConfigError."""
        if not self.modes:
            self.modes = (mode_of(recorded, self.world.capabilities),)
        found = {mode: contradiction(recorded, self.world.capabilities, mode) for mode in self.modes}
        return {mode: why for mode, why in found.items() if why}

    def take(self, read: ReadEpisode) -> None:
        """Replay and grade an episode in every cell. Raises EnvironmentFault, ConfigError."""
        recorded = read.episode
        self.episodes.append(CrossEpisode(recorded.id, recorded.task, recorded.repeat, read.agent, recorded.outcome))
        usable = not read.label and not read.absent
        if usable:
            self._definitions.add((recorded.task, definition_digest(recorded.definition)))
        replays: dict[tuple[str, str], Replayed] = {}
        for mode, version in product(self.modes, self.versions):
            opening = Opening(mode, version.environment, initial_of(recorded.definition))
            if usable and mode not in read.wrong and (mode, version.environment) not in replays:
                replays[mode, version.environment] = replayed_in(recorded, self.world, opening)
            for grader in self.graders:
                name = CellName(grader=named(grader), data=version.name, mode=mode)
                column = self._columns.setdefault(name, [])
                if read.absent:
                    column.append((Outcome.UNGRADED, _ABSENT))
                elif mode in read.wrong:
                    column.append((Outcome.INVALID, Invalid.MODE.value))
                elif read.label:
                    column.append((Outcome.INVALID, _MISLABELLED))
                else:
                    column.append(self._verdict(grader, version, opening, replays[mode, version.environment]))

    def _verdict(
        self, grader: EpisodeGrader, version: DataVersion, opening: Opening, replayed: Replayed
    ) -> tuple[Outcome, str]:
        grade = grade_episode(grader, version, opening, replayed, self.world)
        task = replayed.episode.task
        self.flags.update(f"{named(grader)}, task {task}: {flag}" for flag in grade.flags)
        return grade.outcome, reason_of(grade, replayed)

    def cells(self) -> list[Cell]:
        """The columns as cells, in the order of the axes."""
        digests = {
            version.name: digest_with(version, self._definitions, self.world.capabilities) for version in self.versions
        }
        cells = []
        for mode, version, grader in product(self.modes, self.versions, self.graders):
            name = CellName(grader=named(grader), data=version.name, mode=mode)
            outcomes, reasons = zip(*self._columns[name], strict=True)
            cells.append(Cell(name, outcomes, reasons, grader.code, digests[version.name], grader.rule))
        return cells


def grade_episode(
    grader: EpisodeGrader, version: DataVersion, opening: Opening, replayed: Replayed, world: Environment
) -> Grade:
    """The grade of a replayed episode by the tasks of a data version. `opening` is the episode's own.

    A grader that raises has no verdict, by its own fault.
    """
    name = named(grader)
    try:
        task = version.task(replayed.episode)
    except NoTask as lacking:
        return Grade(grader=name, outcome=Outcome.UNGRADED, reason=Reason.EVIDENCE_MISSING, detail=str(lacking))
    initial = initial_of(task) if version.tasks is not None else opening.initial
    case = EpisodeCase(replayed, task, world, Opening(opening.mode, opening.data, initial))
    try:
        return grader.grade(case)
    except Exception as error:  # noqa: BLE001  # a plug-in may raise anything
        detail = f"{type(error).__name__}: {error}"
        return Grade(grader=name, outcome=Outcome.UNGRADED, reason=Reason.GRADER_CRASHED, detail=detail[:2000])


def reason_of(grade: Grade, replayed: Replayed) -> str:
    """Why a grade is no verdict, in a word; empty where it is one."""
    if grade.outcome.graded:
        return ""
    if grade.outcome is Outcome.INVALID and replayed.fidelity.invalid is not None:
        return replayed.fidelity.invalid.value
    return grade.reason.value if grade.reason is not None else grade.outcome.value


def _csv_line(words: Sequence[str]) -> bytes:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(words)
    return line.getvalue().encode("utf-8", "surrogatepass")


def _notes(reading: Reading, filling: _Filling) -> list[str]:
    notes = [f"{finding.place}: not read: {finding.what}" for finding in reading.unread]
    notes += list(filling.wrong)
    if reading.doubled:
        notes.append(f"left out: {counted(reading.doubled, 'second record')} of a trial")
    if reading.absent or reading.at_least:
        missing = f"{'at least ' * reading.at_least}{counted(reading.absent + reading.unnamed, 'planned episode')}"
        notes.append(f"{missing} not in the archive: absent in every cell")
    if reading.relabelled:
        notes.append(
            f"graded as the task that its content names, not its label's: {counted(reading.relabelled, 'episode')}"
        )
    if reading.mislabelled:
        remedy = "" if reading.relabel else "; --relabel grades it as the task that its content names"
        what = counted(reading.mislabelled, "episode")
        notes.append(f"labelled as another task than its content's, and invalid: {what}{remedy}")
    default = next(iter(filling.world.capabilities.data), "")
    notes += [
        f"{version.name}: answers alone are compared, recorded states are of the data {default}"
        for version in filling.versions
        if version.environment not in ("", default)
    ]
    notes += [f"{flag} ({count} times)" for flag, count in filling.flags.most_common(10)]
    return notes
