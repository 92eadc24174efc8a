"""Replaying an archive, or a run of the store: every episode in a fresh environment, compared, graded, and kept.

The mode is the user's to say. It is held against the evidence of the whole archive before the first step: where any
episode was recorded in another one, none of the file counts. Episodes stream; what is kept of each is a row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.api.archive_gaps import Missing
from harness.api.crosses import grade_episode
from harness.api.crosses_data import AS_RECORDED, DataVersion
from harness.api.inferring import Asked, shown_by
from harness.api.inferring_rules import SAMPLE, recorded_rule
from harness.api.replays_reading import ReadingOptions, Source, SourceEpisode, source_of
from harness.api.replays_worlds import Place, Places
from harness.api.restoring import restored
from harness.grading.episodes.registry import episode_grader, named
from harness.protocols import EpisodeGrader
from harness.records.archive import ImportOptions
from harness.records.grade import Grade
from harness.records.replay import Fidelity, Invalid, Match, Replayed
from harness.records.replays import EpisodeReplay, ReplayHeader, ReplayReport, Reproduced
from harness.records.vocabulary import Outcome
from harness.replay.determinism import unsteady_steps
from harness.replay.engine import Comparison, replay_episode
from harness.replay.modes import contradiction, needed
from harness.replay.normalise import normalisations
from harness.replay.restore import MATCHED, NONE_RECORDED, PARTLY, THRESHOLD
from harness.report.words import counted
from harness.runner.journal import utc_now
from harness.stats import valid_share
from harness.store.sqlite import SqliteStore

Notice = Callable[[int], None]  # how many episodes are done
_COUNTS = ("steps", "compared", "same", "cosmetic", "key", "missing", "required", "required_done")


@dataclass(frozen=True)
class ReplayRequest:
    """What to replay, and how strictly. `archive`: a path, or a run of the store. `environment` and `mode` of a run of
    ours may be `recorded`; left empty, they are what the archive shows (:mod:`harness.api.inferring`).

    `data`: a version of the task data as for the cross table: `recorded`, a data version of the environment, a file of
    tasks. `normalise`: names of normalisations, none: the standard ones. `states` False: recorded digests of states are
    not compared (they are of the data that was recorded). `twice`: replay every episode twice and compare the two.
    `relabel`: an episode whose content names another task is that task's.
    `restore`: Algorithm 1 of SOURCES S2, for strata whose fidelity reaches `threshold`.
    """

    archive: str
    environment: str = ""
    mode: str = ""
    data: str = AS_RECORDED
    grader: str | None = None
    environment_data: Path | None = None
    task_map: Path | None = None
    format: str | None = None
    options: ImportOptions | None = None
    normalise: tuple[str, ...] = ()
    states: bool = True
    twice: bool = False
    limit: int | None = None
    restore: bool = False
    threshold: float = THRESHOLD
    relabel: bool = False

    @property
    def reading(self) -> ReadingOptions:
        return ReadingOptions(self.format, self.options or ImportOptions(), self.relabel)

    def places(self) -> Places:
        """Where to replay: to be entered, which raises ConfigError, and EnvironmentFault for a mode not offered."""
        return Places(self.environment, self.mode, self.data, self.environment_data, self.task_map)


def replay_archive(
    request: ReplayRequest, store: SqliteStore | None = None, notice: Notice = lambda done: None
) -> ReplayReport:
    """Replay and report; nothing is written. Raises ArchiveError, ConfigError, EnvironmentFault (before the first step)
    and StoreError."""
    needs_rule = request.restore and request.grader is None
    request, notes = (graded if needs_rule else completed)(request, store=store)
    return _Replaying(request, store, notice).carry_out().model_copy(update={"taken": notes})


def graded(
    request: ReplayRequest, command: str = "replay", store: SqliteStore | None = None
) -> tuple[ReplayRequest, tuple[str, ...]]:
    """:func:`completed`, with the rule that gives the recorded verdicts again where no grader is named. Raises the
    same, and ConfigError where no known rule does."""
    request, notes = completed(request, command, store)
    if request.grader is not None:
        return request, notes
    asked = replace(request, restore=False, twice=False, limit=min(request.limit or SAMPLE, SAMPLE))
    format = source_of(request.archive, store, request.reading).format
    rule = recorded_rule(
        format, lambda name: _Replaying(replace(asked, grader=name), store).carry_out(), restoring=request.restore
    )
    return replace(request, grader=rule.grader), (*notes, rule.note)


def completed(
    request: ReplayRequest, command: str = "replay", store: SqliteStore | None = None
) -> tuple[ReplayRequest, tuple[str, ...]]:
    """The request with what the archive shows in place of what was not said, and the evidence of each. Raises
    ArchiveError, ConfigError, StoreError."""
    asked = Asked(
        request.archive,
        request.environment,
        request.mode,
        folder=request.environment_data,
        format=request.format,
        options=request.options or ImportOptions(),
        command=command,
    )
    shown = shown_by(asked, store)
    whole = replace(
        request,
        environment=shown.environment,
        mode=shown.mode,
        environment_data=shown.folder,
        options=shown.options,
    )
    return whole, shown.notes


@dataclass
class _Replaying:
    request: ReplayRequest
    store: SqliteStore | None
    notice: Notice = lambda done: None
    rows: list[EpisodeReplay] = field(default_factory=list)
    strata: dict[str, tuple[str, bool, str]] = field(default_factory=dict)
    conflicts: set[str] = field(default_factory=set)  # episodes of which there are records with different outcomes
    records: int = 0  # second records of an episode
    counts: Counter[str] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)

    def carry_out(self) -> ReplayReport:
        request = self.request
        self.grader: EpisodeGrader | None = episode_grader(request.grader) if request.grader is not None else None
        self.comparison = Comparison(normalisations(request.normalise), states=request.states)
        with request.places() as self.places:
            return self._through(source_of(request.archive, self.store, request.reading))

    def _through(self, source: Source) -> ReplayReport:
        wrong = self._contradicted(source)
        for read in source.episodes():
            if self.request.limit is not None and len(self.rows) >= self.request.limit:
                break
            if read.episode.id in self.strata:  # the archive's second record of a trial
                continue
            if read.episode.id in self.conflicts:
                read = replace(read, label="the archive has another record of this trial, with another outcome")
            self.rows.append(self._refused(read, wrong) if wrong else self._replayed(read))
            self.notice(len(self.rows))
        return self._report(source, wrong)

    def _contradicted(self, source: Source) -> str:
        """Why the archive was not recorded in the mode, from all of its episodes; empty: nothing says so."""
        seen: dict[str, Outcome] = {}
        wrong = ""
        for episode in source.evidence():
            if seen.setdefault(episode.id, episode.outcome) is not episode.outcome:
                self.conflicts.add(episode.id)
            self.records += 1
            if wrong:
                continue
            place = self.places.of(episode)
            found = contradiction(episode, place.world.capabilities, place.opening.mode)
            if found:
                wrong = f"the archive was not recorded in {place.opening.mode}: episode {episode.id}: {found}"
        self.records -= len(seen)
        return wrong

    def _refused(self, read: SourceEpisode, wrong: str) -> EpisodeReplay:
        """The row of an episode that is not replayed, since the archive's mode is another one."""
        self.strata[read.episode.id] = ("", False, NONE_RECORDED)
        fidelity = Fidelity(
            steps=0, compared=0, same=0, cosmetic=0, key=0, missing=0, invalid=Invalid.MODE, invalid_at=0, detail=wrong
        )
        return self._row(read, fidelity, None)

    def _replayed(self, read: SourceEpisode) -> EpisodeReplay:
        place = self.places.of(read.episode)
        found = replay_episode(read.episode, place.world, place.opening_of(read.episode), self.comparison)
        flags: tuple[str, ...] = ()
        if self.request.twice:
            found, flags = self._again(found, place)
        self._count(found)
        grade = self._grade(read, found, place)
        self.strata[read.episode.id] = _stratum(found, place)
        return self._row(read, found.fidelity, found.end_state, grade, flags)

    def _again(self, first: Replayed, place: Place) -> tuple[Replayed, tuple[str, ...]]:
        """The first of two replays, invalid where they differ and nothing declares that they may."""
        opening = place.opening_of(first.episode)
        second = replay_episode(first.episode, place.world, opening, self.comparison)
        found = unsteady_steps(first, second, place.world.capabilities)
        flags = tuple(f"step {one.at}: {one.name or 'the end state'} is not deterministic" for one in found)
        undeclared = next((one for one in found if not one.declared), None)
        if undeclared is None or not first.valid:
            return first, flags
        what = f"{undeclared.name or 'the end state'} is not the same twice, and no tool is declared to be so"
        fidelity = first.fidelity.model_copy(
            update={"invalid": Invalid.DIVERGED, "invalid_at": undeclared.at, "detail": what}
        )
        return replace(first, fidelity=fidelity, end_state=None), flags

    def _grade(self, read: SourceEpisode, found: Replayed, place: Place) -> Grade | None:
        if self.grader is None:
            return None
        if read.label:
            detail = f"label: {read.label}"
            return Grade(grader=named(self.grader), outcome=Outcome.INVALID, detail=detail)
        return grade_episode(self.grader, place.version, place.opening_of(read.episode), found, place.world)

    def _count(self, found: Replayed) -> None:
        fidelity = found.fidelity
        self.counts.update({name: getattr(fidelity, name) for name in _COUNTS})
        self.counts.update(checkpoints=fidelity.checkpoints, checkpoints_same=fidelity.checkpoints_same)
        self.counts["unchecked"] += fidelity.steps - fidelity.compared
        self.rules.update(step.rule for step in found.steps if step.match is Match.COSMETIC)

    def _row(
        self,
        read: SourceEpisode,
        fidelity: Fidelity,
        end_state: str | None,
        grade: Grade | None = None,
        flags: tuple[str, ...] = (),
    ) -> EpisodeReplay:
        episode = read.episode
        return EpisodeReplay(
            episode=episode.id,
            task=episode.task,
            repeat=episode.repeat,
            recorded=episode.outcome,
            reward=episode.reward,
            fidelity=fidelity,
            end_state=end_state,
            grade=grade,
            trial=read.trial,
            flags=flags,
        )

    def _report(self, source: Source, wrong: str) -> ReplayReport:
        limited = self.request.limit is not None and len(self.rows) >= self.request.limit
        missing = Missing() if limited else source.missing
        planned = len(self.rows) + missing.count
        rows, outcome = self.rows, None
        if self.request.restore:
            outcome, rows = restored(rows, self.strata, planned, self.request.threshold)
        replayed = [row for row in rows if row.valid]
        verdicts = [row.verdict for row in replayed if row.verdict is not None]
        valid = len(verdicts) if self.grader is not None else len(replayed)
        passed = verdicts.count(Outcome.PASSED) if self.grader is not None else None
        share = valid_share(planned, valid, passed) if passed is not None and planned else None
        notes = []
        if self.records:
            second = counted(self.records, "second record")
            notes.append(f"{second} of a trial, {counted(len(self.conflicts), 'trial')} with another outcome")
        notes += [f"the first {counted(len(rows), 'episode')}, as asked"] if limited else []
        return ReplayReport(
            header=self._header(source),
            planned=planned,
            read=len(rows),
            counts=dict(self.counts),
            rules=dict(self.rules.most_common()),
            replayed=len(replayed),
            invalid=dict(Counter(row.fidelity.invalid for row in rows if row.fidelity.invalid is not None)),
            valid=valid,
            passed=passed,
            rate=share.rate if share is not None else None,
            bounds=(share.bounds.lower, share.bounds.upper) if share is not None else None,
            reproduced=_reproduced(rows) if self.grader is not None else None,
            restored=outcome,
            episodes=tuple(rows),
            unread=source.unread,
            missing=missing.names,
            at_least=missing.at_least,
            refused=wrong,
            notes=tuple(notes),
        )

    def _header(self, source: Source) -> ReplayHeader:
        places, grader = self.places, self.grader
        names = [place.opening.data or next(iter(place.world.capabilities.data), "") for place in places.used]
        tasks = [place.version.name for place in places.used if place.version.tasks is not None]
        return ReplayHeader(
            path=source.path,
            format=source.format,
            archive=source.identity,
            environment=places.environments,
            environment_code=places.code,
            data=", ".join(dict.fromkeys(filter(None, names))),
            mode=places.modes,
            normalisations=tuple(rule.name for rule in self.comparison.rules),
            states=self.comparison.states,
            grader=named(grader) if grader is not None else "",
            grader_code=grader.code if grader is not None else "",
            rule=grader.rule if grader is not None else "",
            tasks=", ".join(dict.fromkeys(tasks)),
            at=utc_now(),
        )


def _stratum(found: Replayed, place: Place) -> tuple[str, bool, str]:
    """How it ended, whether its task requires a write, and how much of what was recorded was matched."""
    writing = {tool.name for tool in place.world.capabilities.tools if tool.writes}
    actions = needed(found.episode) or _named(place.version, found)
    fidelity = found.fidelity
    part = PARTLY if fidelity.compared else NONE_RECORDED
    checkpoint = MATCHED if fidelity.compared == fidelity.steps else part
    return found.episode.end, any(name in writing for name in actions), checkpoint


def _named(version: DataVersion, found: Replayed) -> tuple[str, ...]:
    """Names of the actions that the task data lists, where the record itself has none."""
    if version.tasks is None:
        return ()
    task = version.tasks.get(version.ids.get(found.episode.task, found.episode.task))
    actions = task.get("actions") if isinstance(task, dict) else None
    return tuple(str(one["name"]) for one in actions or () if isinstance(one, dict) and "name" in one)


def _reproduced(rows: list[EpisodeReplay]) -> Reproduced:
    recorded = [row for row in rows if row.recorded.graded]
    compared = [(row, row.verdict) for row in recorded if row.verdict is not None]
    moved = {row.episode: f"{row.recorded.value} → {now.value}" for row, now in compared if now is not row.recorded}
    return Reproduced(recorded=len(recorded), compared=len(compared), same=len(compared) - len(moved), moved=moved)
