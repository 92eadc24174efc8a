"""Grades the recorded episodes of a stored run again: each is replayed, and judged by a rule and its data."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from harness.api.carriers import environment
from harness.api.crosses import grade_episode, replayed_in
from harness.api.crosses_data import DataVersion, data_versions, definition_digest, digest_with
from harness.api.environments import environment_of
from harness.api.regrades_reading import StoredEpisode, definitions_of, relabelled, stored_episode
from harness.api.regrades_writing import next_regrade
from harness.grading.episodes.criteria import initial_of
from harness.grading.episodes.registry import episode_grader, named
from harness.protocols import Environment, EpisodeGrader
from harness.records.base import digest_of
from harness.records.environment import Opening
from harness.records.errors import ConfigError
from harness.records.grade import Grade
from harness.records.regrade import Regraded, RegradeHeader
from harness.records.run import RunRow
from harness.records.vocabulary import Outcome
from harness.replay.modes import contradiction, mode_of
from harness.report.summary import last_attempts
from harness.runner.conversing import close_with
from harness.runner.journal import utc_now
from harness.store.sqlite import SqliteStore


@dataclass(frozen=True)
class EpisodeRegrade:
    """What is graded again, and by what. `environment` None: that of each task (conversations of our own have one).

    `data`, `task_map`, `relabel`: as for the cross table; `mode` None: as recorded.
    """

    run: str
    grader: str
    data: str | None = None
    environment: str | None = None
    environment_data: Path | None = None
    mode: str | None = None
    task_map: Path | None = None
    relabel: bool = False


def regrade_episodes(store: SqliteStore, asked: EpisodeRegrade) -> tuple[RegradeHeader, tuple[Regraded, ...]]:
    """The last attempt at every slot, graded again, in order of slot; the caller keeps what is returned.

    Raises ConfigError, EnvironmentFault and StoreError before the first step for what cannot be meant.
    """
    with ExitStack() as stack:
        return _Regrading(store, asked, store.run(asked.run), stack).carry_out()


@dataclass
class _World:
    """An environment with the data version to grade by."""

    environment: Environment
    version: DataVersion
    definitions: set[tuple[str, str]] = field(default_factory=set)


class _Regrading:
    def __init__(self, store: SqliteStore, asked: EpisodeRegrade, row: RunRow, stack: ExitStack) -> None:
        self.store, self.asked, self.row, self._stack = store, asked, row, stack
        self.grader: EpisodeGrader = episode_grader(asked.grader)
        self.id = next_regrade(store, row.run)
        self.worlds: dict[str, _World] = {}
        self.modes: dict[str, None] = {}
        self.wrong = ""
        if asked.environment is not None:
            world = self._world(asked.environment, environment(asked.environment, asked.environment_data))
            if asked.mode is not None:
                world.environment.capabilities.check(Opening(asked.mode))

    def carry_out(self) -> tuple[RegradeHeader, tuple[Regraded, ...]]:
        trials = [trial for trial in last_attempts(self.store.trials(self.row.run)) if trial.result is not None]
        definitions = definitions_of(self.store, trials) if self.asked.relabel else {}
        if self.asked.mode is not None:
            self.wrong = next(
                filter(None, (self._contradiction(stored_episode(self.store, one)) for one in trials)), ""
            )
        grades = []
        for trial in trials:
            stored = stored_episode(self.store, trial)
            grades.append(self._regrade(relabelled(stored, definitions)))
        return self._header(), tuple(grades)

    def _contradiction(self, stored: StoredEpisode) -> str:
        """Why the episode was not recorded in the asked mode; then none of the run was."""
        world, mode = self._world_of(stored).environment, self.asked.mode or ""
        world.capabilities.check(Opening(mode))
        why = contradiction(stored.episode, world.capabilities, mode)
        return f"not recorded in {mode}: trial {stored.trial.trial}: {why}" if why else ""

    def _world(self, name: str, made: Environment) -> _World:
        if name not in self.worlds:
            close_with(self._stack, made)
            texts = () if self.asked.data is None else (self.asked.data,)
            self.worlds[name] = _World(made, data_versions(texts, made.capabilities, self.asked.task_map)[0])
        return self.worlds[name]

    def _world_of(self, stored: StoredEpisode) -> _World:
        if self.asked.environment is not None:
            return self.worlds[self.asked.environment]
        conversation = stored.plan.task.conversation
        if conversation is None:
            raise ConfigError(
                f"run {self.row.run} was imported: its archive does not say in which environment to replay it",
                place="--environment",
                remedy="name one, e.g. --environment airline@v1",
            )
        key = f"{conversation.environment} {conversation.folder}"
        return self.worlds[key] if key in self.worlds else self._world(key, environment_of(conversation))

    def _regrade(self, stored: StoredEpisode) -> Regraded:
        world, recorded = self._world_of(stored), stored.episode
        version = world.version
        world.definitions.add((recorded.task, definition_digest(recorded.definition)))
        grade, end_state = self._grade(stored, world)
        task = (
            recorded.definition
            if version.tasks is None
            else version.tasks.get(version.ids.get(recorded.task, recorded.task))
        )
        return Regraded(
            regrade=self.id,
            trial=stored.trial.trial,
            task=stored.trial.task,
            repeat=stored.trial.repeat,
            old=recorded.outcome,
            old_reward=recorded.reward,
            old_grader=stored.grader,
            grade=grade,
            evidence=digest_of({"stream": stored.head, "task": definition_digest(task), "end_state": end_state}),
            why=self._why(stored, grade, version),
        )

    def _grade(self, stored: StoredEpisode, world: _World) -> tuple[Grade, str | None]:
        recorded, conversation = stored.episode, stored.plan.task.conversation
        if self.wrong:
            return Grade(grader=named(self.grader), outcome=Outcome.INVALID, detail=f"mode: {self.wrong}"), None
        if stored.label:
            detail = f"label: {stored.label}; --relabel grades it as the task that its content names"
            return Grade(grader=named(self.grader), outcome=Outcome.INVALID, detail=detail), None
        mode = self.asked.mode or mode_of(recorded, world.environment.capabilities)
        self.modes[mode] = None
        made_in = conversation.data if conversation is not None else ""
        opening = Opening(mode, world.version.environment or made_in, initial_of(recorded.definition))
        replayed = replayed_in(recorded, world.environment, opening, made_in)
        return grade_episode(self.grader, world.version, opening, replayed, world.environment), replayed.end_state

    def _why(self, stored: StoredEpisode, grade: Grade, version: DataVersion) -> str:
        if grade.outcome is stored.episode.outcome:
            return ""
        by = f"{named(self.grader)} on {version.name}"
        return f"{by}: {grade.detail or 'all that the rule asks for is there'}"

    def _header(self) -> RegradeHeader:
        worlds = list(self.worlds.values())
        digests = [digest_with(world.version, world.definitions, world.environment.capabilities) for world in worlds]
        capabilities = [world.environment.capabilities for world in worlds]
        codes = [one.code for one in capabilities]
        source = self.row.config.extra.get("import")
        return RegradeHeader(
            regrade=self.id,
            grader=named(self.grader),
            code=self.grader.code,
            rule=self.grader.rule,
            data=", ".join(dict.fromkeys(world.version.name for world in worlds)),
            data_digest=digests[0] if len(digests) == 1 else digest_of(digests),
            environment=", ".join(dict.fromkeys(one.environment for one in capabilities)),
            environment_code=codes[0] if len(codes) == 1 else digest_of(codes),
            mode=", ".join(self.modes),
            archive=str(source["digest"]) if isinstance(source, dict) else self._run_head(),
            at=utc_now(),
        )

    def _run_head(self) -> str:
        head = ""
        for event in self.store.events(self.row.run):
            head = event.hash
        return head
