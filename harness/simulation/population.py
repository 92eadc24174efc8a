"""Agents of known ability on the tasks of a suite: who passes what is settled by the seed before anything runs.

    P(pass) = σ(α·θ − β)

after :mod:`harness.adaptive.populations.simulate`, with two things that a suite knows about its tasks: β rises with
the declared difficulty, and the tasks of a family share a part of β and the specific ability that they load on. The
outcome of each (agent, task) is one draw that depends on the seed and the two names alone, so every process knows the
same truth and can serve any part of it. A task without a reference solution is passed by nobody."""

from __future__ import annotations

import csv
import difflib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path

import numpy as np

from harness.adaptive.arrays import FloatArray, IntArray, KeyArray, frozen, normal_quantile
from harness.adaptive.keys import mix, name_keys, seeded_keys, uniforms
from harness.adaptive.populations.simulate import Population, simulate_population
from harness.records.errors import ConfigError
from harness.records.task import Task

DIFFICULTY = {"easy": -1.2, "medium": 0.0, "hard": 1.2}  # mean β; a task that declares none is medium
FAMILY_SD = 0.6
TASK_SD = 0.6
MISSING = 0.1  # of the history's cells
WANDERING = 0.12  # of the failures; the others are wrong answers
COLUMNS = ("agent", "scaffold", "model", "date", "task", "trial", "outcome", "cost_usd", "tokens", "steps", "seconds")
SCAFFOLD = "simulated"
HISTORY_USD_PER_TOKEN = 1e-6


class Behaviour(StrEnum):
    """What an agent does on a task."""

    REFERENCE = "reference"  # carries out the reference solution: it passes
    WRONG = "wrong"  # carries out a declared wrong one
    WANDER = "wander"  # looks around until its budget is used up


class SimulatedPopulation:
    """`agents` named `sim-000` and on, for these tasks. `dims` abilities: a general one and specific ones."""

    def __init__(self, tasks: Sequence[Task], agents: int = 300, seed: int = 7, *, dims: int = 3) -> None:
        """Raises ConfigError without tasks or agents."""
        if not tasks or agents < 1:
            raise ConfigError(
                f"a population of {agents} agents for {len(tasks)} tasks", remedy="both must be 1 or more"
            )
        self.seed = seed
        self.task_ids = tuple(task.id for task in tasks)
        width = max(3, len(str(agents - 1)))
        self.agents = tuple(f"sim-{number:0{width}d}" for number in range(agents))
        self.law = _law(tasks, simulate_population(seed, agents, self.task_ids, d=dims, prefix="sim"))
        self._agent_at = {name: number for number, name in enumerate(self.agents)}
        self._task_at = {name: number for number, name in enumerate(self.task_ids)}
        self._solvable = np.array([bool(task.solution.files) for task in tasks], dtype=np.int64)

    @cached_property
    def outcomes(self) -> IntArray:
        """1 for passed and 0 for failed, (agents, tasks)."""
        drawn = np.array([self.law.draw(agent) for agent in range(len(self.agents))], dtype=np.int64) * self._solvable
        drawn.setflags(write=False)
        return drawn

    def probability(self, agent: str) -> FloatArray:
        """P(pass) of one agent on every task, (tasks,): the law of which its outcomes are one draw."""
        return self.law.probability(self._agent(agent)) * self._solvable

    def passes(self, agent: str, task_id: str) -> bool:
        """Whether the agent passes the task. Raises ConfigError for an unknown name, as all that follow."""
        return bool(self.outcomes[self._agent(agent), self._task(task_id)])

    def truth(self, agent: str, task_ids: Iterable[str] | None = None) -> float:
        """The share of tasks (all, or those given) that the agent passes."""
        row = self.outcomes[self._agent(agent)]
        chosen = row if task_ids is None else row[[self._task(task_id) for task_id in task_ids]]
        if not len(chosen):
            raise ConfigError("the truth over no task at all", remedy="name at least one")
        return float(chosen.mean())

    def behaviour(self, agent: str, task_id: str) -> Behaviour:
        """What the agent does on the task: it never fails by accident, nor passes by one."""
        if self.passes(agent, task_id):
            return Behaviour.REFERENCE
        return Behaviour.WANDER if self.chance("behaviour", agent, task_id) < WANDERING else Behaviour.WRONG

    def chance(self, purpose: str, agent: str, detail: str) -> float:
        """A number in (0, 1) that belongs to these names and the seed."""
        return float(uniforms(mix(seeded_keys(self.seed, purpose, [agent]), name_keys([detail])))[0])

    def write_history(self, path: str | Path, exclude: Collection[str] = ()) -> None:
        """Write past runs of all agents but the excluded, one each, as a flat CSV; a tenth of the cells is missing."""
        for name in exclude:
            self._agent(name)
        tasks = name_keys(self.task_ids)
        try:
            with Path(path).open("w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file, lineterminator="\n")
                writer.writerow(COLUMNS)
                for number, agent in enumerate(self.agents):
                    if agent not in exclude:
                        writer.writerows(self._run_of(number, agent, tasks))
        except OSError as error:
            raise ConfigError(f"cannot be written: {error.strerror or error}", place=str(path)) from error

    def _run_of(self, number: int, agent: str, tasks: KeyArray) -> list[tuple[object, ...]]:
        def of(purpose: str) -> FloatArray:
            return uniforms(mix(seeded_keys(self.seed, f"history {purpose}", [agent]), tasks))

        kept = np.flatnonzero(of("missing") >= MISSING)
        steps = 4 + np.floor(3 * of("steps")).astype(np.int64)
        tokens = steps * (900 + np.floor(900 * of("tokens")).astype(np.int64))
        seconds = np.round(steps * (1.0 + 2.0 * of("seconds")), 2)
        cost_usd = np.round(tokens * HISTORY_USD_PER_TOKEN, 6)
        date = f"2025-{1 + number % 12:02d}-{1 + number // 12 % 28:02d}"
        outcomes = self.outcomes[number]
        columns = (column[kept].tolist() for column in (outcomes, cost_usd, tokens, steps, seconds))
        return [
            (agent, SCAFFOLD, agent, date, self.task_ids[task], 1, "passed" if passed else "failed", *spent)
            for task, passed, *spent in zip(kept.tolist(), *columns, strict=True)
        ]

    def knows(self, agent: str) -> bool:
        """Whether there is an agent of that name."""
        return agent in self._agent_at

    def _agent(self, name: str) -> int:
        if name not in self._agent_at:
            raise ConfigError(f"no simulated agent is called {name!r}", remedy=self.near_agents(name))
        return self._agent_at[name]

    def near_agents(self, name: str) -> str:
        """Which agents there are, with a near match for a name that is none."""
        near = difflib.get_close_matches(name, self.agents, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        return f"{hint}they are {self.agents[0]} … {self.agents[-1]}"

    def _task(self, task_id: str) -> int:
        if task_id not in self._task_at:
            near = difflib.get_close_matches(task_id, self.task_ids, n=1)
            raise ConfigError(f"no task is called {task_id!r}", remedy=f"did you mean {near[0]!r}?" if near else "")
        return self._task_at[task_id]


def _law(tasks: Sequence[Task], drawn: Population) -> Population:
    """The drawn population with β by difficulty, family and task, and specific abilities by family."""
    families = [task.family for task in tasks]
    offsets = np.array([DIFFICULTY.get(task.difficulty or "medium", 0.0) for task in tasks])
    beta = (
        offsets
        + FAMILY_SD * normal_quantile(uniforms(seeded_keys(drawn.seed, "family difficulty", families)))
        + TASK_SD * normal_quantile(uniforms(seeded_keys(drawn.seed, "task difficulty", drawn.item_ids)))
    )
    alpha = drawn.alpha.copy()
    specific = alpha.shape[1] - 1
    if specific:
        loading = alpha[:, 1:].sum(axis=1)  # one of them is not zero
        pick = uniforms(seeded_keys(drawn.seed, "family axis", families))
        alpha[:, 1:] = 0.0
        alpha[np.arange(len(tasks)), 1 + np.floor(pick * specific).astype(np.int64)] = loading
    return replace(drawn, alpha=frozen(alpha), beta=frozen(beta))
