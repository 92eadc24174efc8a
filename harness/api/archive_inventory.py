"""What an archive has of one run, counted while it is read: a hundred thousand trials in little memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.api.archive_gaps import TaskRepeat, unfinished_row
from harness.api.archive_reading import legal_task_id
from harness.records.archive import ArchiveEpisode, ArchiveRun
from harness.records.task import Task
from harness.records.vocabulary import Outcome

AttemptKey = tuple[str, int, int]  # task, repeat, attempt


@dataclass(slots=True)
class CountedTrial:
    """What is kept of a trial of the archive; `slot` is its place in the plan."""

    slot: int
    attempt: int
    outcome: Outcome
    conflict: bool = False  # another record of it has another outcome


@dataclass
class RunInventory:
    """A run of the archive before it is written."""

    run: ArchiveRun
    first_attempts: dict[TaskRepeat, CountedTrial] = field(default_factory=dict)  # by the task's id of ours
    later_attempts: dict[AttemptKey, CountedTrial] = field(default_factory=dict)
    tasks: dict[str, str] = field(default_factory=dict)  # id of ours -> version
    repeats: int = 1
    cut: bool = False  # the archive ends too early

    def counted(self, key: AttemptKey) -> CountedTrial | None:
        """The trial of a task, repeat and attempt, if it is there."""
        first = self.first_attempts.get(key[:2])
        return first if first is None or first.attempt == key[2] else self.later_attempts.get(key)

    def add(self, task: Task, episode: ArchiveEpisode) -> None:
        """Count a trial that is not there yet."""
        first = self.first_attempts.get((task.id, episode.repeat))
        slot = episode.slot if episode.slot is not None else len(self.first_attempts) if first is None else first.slot
        trial = CountedTrial(slot, episode.attempt, episode.outcome)
        if first is None:
            self.first_attempts[task.id, episode.repeat] = trial
        else:
            self.later_attempts[task.id, episode.repeat, episode.attempt] = trial
        self.tasks.setdefault(task.id, task.version)
        self.repeats = max(self.repeats, episode.repeat + 1)

    @property
    def plan(self) -> tuple[tuple[str, ...], int]:
        """Planned task ids and repeats: as the source states them, or else what is there, an id for every trial of it
        where tasks have unequal numbers of trials. Of a file that was cut off, the row that it breaks off in is
        planned whole."""
        tasks = dict.fromkeys((*(legal_task_id(task) for task in self.run.tasks), *self.tasks))
        repeats = max(self.run.repeats or 1, self.repeats)
        stated = bool(self.run.tasks) or self.run.repeats is not None
        row = len(unfinished_row(self.first_attempts)) if self.cut else 0
        if stated or len(tasks) * repeats == len(self.first_attempts) + row:
            return tuple(tasks), repeats
        return tuple(task for task, _ in self.first_attempts), 1

    @property
    def gaps(self) -> list[str]:
        """Planned trials that are not there."""
        tasks, repeats = self.plan
        if len(set(tasks)) < len(tasks):
            return []
        return [
            f"{task}/{number}"
            for task in tasks
            for number in range(repeats)
            if (task, number) not in self.first_attempts
        ]
