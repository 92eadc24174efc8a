"""Two tasks of the bundled suite in real containers: what the simulated agent is known to do is what is graded."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.api import run
from harness.api.request import RunRequest, SimulationRequest
from harness.formats.suite import find_suite, load_suite
from harness.records.vocabulary import Outcome
from harness.simulation.population import Behaviour, SimulatedPopulation
from harness.store.sqlite import SqliteStore

FAMILY = str(find_suite("terminal") / "csv-join")
AGENT = "sim-042"


@pytest.mark.docker
def test_the_graded_outcomes_are_the_known_truth(tmp_path: Path) -> None:
    tasks = load_suite(FAMILY).tasks
    population = SimulatedPopulation(tasks)
    wanted = {
        behaviour: next(task.id for task in tasks if population.behaviour(AGENT, task.id) is behaviour)
        for behaviour in (Behaviour.REFERENCE, Behaviour.WRONG)
    }
    summary = run(
        RunRequest(
            suite=FAMILY,
            solver="agent",
            model=AGENT,
            tasks=tuple(wanted.values()),
            simulation=SimulationRequest(),
            store=str(tmp_path / "store"),
            concurrency=2,
        )
    )
    assert summary.complete
    with SqliteStore(tmp_path / "store") as store:
        results = {row.task: row.result for row in store.trials(summary.run)}
    passing, failing = results[wanted[Behaviour.REFERENCE]], results[wanted[Behaviour.WRONG]]
    assert passing is not None
    assert failing is not None
    assert (passing.outcome, failing.outcome) == (Outcome.PASSED, Outcome.FAILED)
    for result in (passing, failing):
        assert result.steps is not None
        assert 4 <= result.steps <= 7
        assert result.cost_usd is not None
        assert result.calls_without_usage == 0
