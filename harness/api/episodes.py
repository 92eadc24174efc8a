"""What a run's slots came to, for bounds and comparisons: outcome, version and cost of each planned episode."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from harness.protocols import EvidenceStore
from harness.records.run import RunRow, TrialRow
from harness.records.vocabulary import Outcome
from harness.report.summary import last_attempts
from harness.store.flat import agent_name


@dataclass(frozen=True)
class PlannedEpisode:
    """One planned slot: its outcome (NaN: no verdict), the reason where there is none, and what its attempts cost."""

    task: str
    version: str
    value: float
    why: str
    cost_usd: float | None
    cost_at_least_usd: float


@dataclass(frozen=True)
class RunEpisodes:
    row: RunRow
    episodes: tuple[PlannedEpisode, ...]

    @property
    def agent(self) -> str:
        return agent_name(self.row.config)


def read_episodes(store: EvidenceStore, run: str) -> RunEpisodes:
    row = store.run(run)
    trials = store.trials(row.run)
    spent: dict[int, list[TrialRow]] = {}
    for trial in trials:
        spent.setdefault(trial.slot, []).append(trial)
    episodes = [_episode(last, spent[last.slot]) for last in last_attempts(trials)]
    begun = Counter(episode.task for episode in episodes)
    for task in row.config.tasks:
        lacking = row.config.repeats - begun[task]
        episodes += [PlannedEpisode(task, "", math.nan, "never begun", 0.0, 0.0)] * max(0, lacking)
    return RunEpisodes(row, tuple(episodes))


def _episode(last: TrialRow, attempts: Sequence[TrialRow]) -> PlannedEpisode:
    result = last.result
    graded = result is not None and result.outcome.graded
    value = float(result.outcome is Outcome.PASSED) if result is not None and graded else math.nan
    why = "unfinished" if result is None else result.reason.value if result.reason else result.outcome.value
    results = [attempt.result for attempt in attempts if attempt.result is not None]
    costs = [one.cost_usd for one in results]
    known = [cost for cost in costs if cost is not None]
    complete = len(known) == len(attempts)
    least = sum(one.cost_at_least_usd if one.cost_usd is None else one.cost_usd for one in results)
    return PlannedEpisode(
        last.task, last.task_version, value, "" if graded else why, math.fsum(known) if complete else None, least
    )


def same_versions(sides: Sequence[Sequence[RunEpisodes]], notes: list[str]) -> set[str]:
    """Tasks of one version on both sides; what has changed in between is left out and said."""
    versions = [_versions(side) for side in sides]
    common = versions[0].keys() & versions[1].keys()
    changed = {task for task in common if len(versions[0][task] | versions[1][task]) > 1}
    if changed:
        notes.append(f"{len(changed)} tasks that have changed in between are left out")
    return {task for side in versions for task in side if task not in changed}


def _versions(side: Sequence[RunEpisodes]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for run in side:
        for episode in run.episodes:
            found.setdefault(episode.task, set()).update({episode.version} - {""})
    return found


def family(task: str) -> str:
    return task.partition("/")[0]
