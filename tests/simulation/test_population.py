"""The population: the law it follows, the truth it knows, the history it leaves."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from harness.records.errors import ConfigError
from harness.records.task import Solution
from harness.simulation.population import COLUMNS, MISSING, WANDERING, Behaviour, SimulatedPopulation
from harness.store.history import read_history
from tests.simulation.worlds import LEVELS, make_task, make_tasks

TASKS = make_tasks(240)
POPULATION = SimulatedPopulation(TASKS)


def test_outcomes_follow_the_two_parameter_logistic_law() -> None:
    """In each tenth of predicted probability, the share that passed is what was predicted; so it is for each agent."""
    predicted = np.array([POPULATION.probability(agent) for agent in POPULATION.agents])
    law = POPULATION.law
    np.testing.assert_allclose(predicted, 1 / (1 + np.exp(-(law.theta @ law.alpha.T - law.beta))))
    passed = POPULATION.outcomes
    for low in np.arange(0, 1, 0.1):
        cells = (predicted >= low) & (predicted < low + 0.1)
        spread = np.sqrt((predicted[cells] * (1 - predicted[cells])).sum()) / cells.sum()
        assert cells.sum() > 1000
        assert abs(passed[cells].mean() - predicted[cells].mean()) < 4 * spread
    spread_by_agent = np.sqrt((predicted * (1 - predicted)).sum(axis=1)) / len(TASKS)
    z = (passed.mean(axis=1) - predicted.mean(axis=1)) / spread_by_agent
    assert abs(z.mean()) < 4 / np.sqrt(len(z))
    assert 0.85 < z.std() < 1.15


def test_agents_differ_and_difficulty_is_as_declared() -> None:
    rates = POPULATION.outcomes.mean(axis=1)
    assert rates.min() < 0.2
    assert rates.max() > 0.8
    by_level = [POPULATION.outcomes[:, np.arange(len(TASKS)) % 3 == level].mean() for level in range(len(LEVELS))]
    assert by_level[0] - by_level[1] > 0.08
    assert by_level[1] - by_level[2] > 0.08


def test_tasks_of_a_family_resemble_each_other() -> None:
    residual = POPULATION.law.beta - np.array(
        [{"easy": -1.2, "medium": 0, "hard": 1.2}[t.difficulty or ""] for t in TASKS]
    )
    families = np.array([task.family for task in TASKS])
    within = np.mean([residual[families == family].std() for family in set(families)])
    assert within < 0.85 * residual.std()
    for family in set(families):
        assert (np.count_nonzero(POPULATION.law.alpha[families == family, 1:], axis=0) > 0).sum() == 1


def test_the_truth_is_what_the_agent_passes() -> None:
    agent = "sim-042"
    passes = [POPULATION.passes(agent, task.id) for task in TASKS]
    assert POPULATION.truth(agent) == pytest.approx(np.mean(passes))
    some = [task.id for task in TASKS[:10]]
    assert POPULATION.truth(agent, some) == pytest.approx(np.mean(passes[:10]))


def test_behaviour_agrees_with_the_outcome_and_some_failures_wander() -> None:
    seen = {}
    for agent in POPULATION.agents[::30]:
        for task in TASKS:
            seen[agent, task.id] = POPULATION.behaviour(agent, task.id)
            assert (seen[agent, task.id] is Behaviour.REFERENCE) == POPULATION.passes(agent, task.id)
    failing = [behaviour for behaviour in seen.values() if behaviour is not Behaviour.REFERENCE]
    wandering = failing.count(Behaviour.WANDER) / len(failing)
    assert abs(wandering - WANDERING) < 4 * np.sqrt(WANDERING / len(failing))


def test_a_task_without_a_solution_is_passed_by_nobody() -> None:
    tasks = (make_task(0), make_task(1, solution=Solution(), mutations=()))
    population = SimulatedPopulation(tasks, agents=50)
    assert population.outcomes[:, 0].any()
    assert not population.outcomes[:, 1].any()
    assert population.probability("sim-000")[1] == 0


def test_other_tasks_and_their_order_change_nothing_for_a_task() -> None:
    fewer = SimulatedPopulation(TASKS[99:9:-1])
    for agent in POPULATION.agents[::50]:
        for task in TASKS[10:100]:
            assert fewer.behaviour(agent, task.id) is POPULATION.behaviour(agent, task.id)
    assert (SimulatedPopulation(TASKS, seed=8).outcomes != POPULATION.outcomes).mean() > 0.2


def test_another_process_knows_the_same_truth() -> None:
    code = (
        "from tests.simulation.worlds import make_tasks\n"
        "from harness.simulation.population import SimulatedPopulation\n"
        "population = SimulatedPopulation(make_tasks(240))\n"
        "print(population.truth('sim-042'), [population.behaviour('sim-042', t).value for t in population.task_ids])\n"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "12345"}
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    here = [POPULATION.behaviour("sim-042", task.id).value for task in TASKS]
    assert told.stdout.strip() == f"{POPULATION.truth('sim-042')} {here}"


def test_the_history_is_read_back_as_the_outcomes(tmp_path: Path) -> None:
    file = tmp_path / "history.csv"
    POPULATION.write_history(file, exclude=("sim-042", "sim-007"))
    history = read_history(file)
    kept = [agent for agent in POPULATION.agents if agent not in ("sim-042", "sim-007")]
    assert history.agents == tuple(kept)
    assert set(history.tasks) == set(POPULATION.task_ids)
    assert abs(1 - history.coverage - MISSING) < 0.01
    order = [history.tasks.index(task) for task in POPULATION.task_ids]
    expected = POPULATION.outcomes[[POPULATION.agents.index(agent) for agent in kept]]
    there = history.trials[:, order] == 1
    assert (history.passes[:, order][there] == expected[there]).all()
    again = tmp_path / "again.csv"
    SimulatedPopulation(TASKS).write_history(again, exclude=("sim-042", "sim-007"))
    assert again.read_bytes() == file.read_bytes()


def test_the_history_has_spendings_of_a_plausible_size(tmp_path: Path) -> None:
    file = tmp_path / "history.csv"
    SimulatedPopulation(TASKS[:20], agents=5).write_history(file)
    with file.open(newline="") as opened:
        rows = list(csv.DictReader(opened))
    assert tuple(rows[0]) == COLUMNS
    for row in rows:
        assert row["agent"] == row["model"]
        assert 4 <= int(row["steps"]) <= 6
        assert 3600 <= int(row["tokens"]) <= 6 * 1800
        assert float(row["cost_usd"]) > 0


def test_names_are_of_one_width() -> None:
    assert SimulatedPopulation(TASKS[:2], agents=3).agents == ("sim-000", "sim-001", "sim-002")
    assert SimulatedPopulation(TASKS[:2], agents=1001).agents[-1] == "sim-1000"


def test_what_is_unknown_is_said_with_what_is_near(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no simulated agent is called 'sim-42'.*did you mean 'sim-.42'"):
        POPULATION.truth("sim-42")
    with pytest.raises(ConfigError, match="did you mean 'family-0/010'"):
        POPULATION.passes("sim-042", "family-0/01")
    with pytest.raises(ConfigError, match="no task at all"):
        POPULATION.truth("sim-042", ())
    with pytest.raises(ConfigError, match="sim-999"):
        POPULATION.write_history(tmp_path / "h.csv", exclude=("sim-999",))
    assert not (tmp_path / "h.csv").exists()
    with pytest.raises(ConfigError, match="cannot be written"):
        POPULATION.write_history(tmp_path / "no" / "h.csv")
    for tasks, agents in ((TASKS, 0), ((), 5)):
        with pytest.raises(ConfigError, match="must be 1 or more"):
            SimulatedPopulation(tasks, agents=agents)
