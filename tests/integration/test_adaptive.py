"""Adaptive runs through the command: calibrated on an export, killed in the middle, taken up without repeating."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from harness.store.sqlite import SqliteStore

from .world import OBEDIENT, RIGHT, WRONG, Started, TaskFiles, World, held_for

pytestmark = pytest.mark.docker

TASKS = {f"t{number}": TaskFiles("@gate\n" + (RIGHT if number % 3 else WRONG)) for number in range(8)}


def test_an_adaptive_run_on_an_exported_history_goes_on_where_it_was_killed(world: World, tmp_path: Path) -> None:
    world.tasks(**TASKS)
    (tmp_path / "gate").touch()
    gate = ("--solver-option", f"gate={tmp_path / 'gate'}")
    assert world.run(OBEDIENT, *gate, "--concurrency", "8", "--agent", "before").code == 0
    assert world.run("noop", "--concurrency", "8").code == 0
    runs = [row["run"] for row in world.on_store("runs", "--json").json["runs"]]
    exports = [world.on_store("export", run).out for run in runs]
    history = tmp_path / "runs.csv"
    history.write_text(exports[0] + exports[1].partition("\n")[2])
    (tmp_path / "gate").unlink()

    options = world.run_options(OBEDIENT, "--adaptive", "--stop", "5", "--history", str(history), *gate, "--json")
    with Started(world, *options, "--concurrency", "2") as killed:
        killed.wait_until(lambda states: len(world.trials()) == 2 and set(states.values()) == {"interacting"})
        first = {row.task for row in world.trials()}
        (tmp_path / "gate").touch()
        killed.wait_until(lambda states: list(states.values()).count("done") >= 2, 0.01)
        killed.end(signal.SIGKILL)
    run = world.trials()[0].run
    before = [(row.task, row.attempt, row.result is not None) for row in world.trials(run)]
    assert len(before) < 5
    done = world.on_store("resume", run, "--json")
    assert done.code == 0, done.err
    found = done.json
    assert (found["planned"], len(found["trials"])) == (5, 5)
    assert found["interval"][0] <= found["score"] <= found["interval"][1]
    rows = world.trials(run)
    assert first <= {row.task for row in rows}
    attempts: dict[str, int] = {}
    for row in rows:
        attempts[row.task] = max(row.attempt, attempts.get(row.task, 0))
    # Graded tasks are not chosen again; those under way get their second attempt.
    assert attempts == {task: 2 if (task, 1, False) in before else 1 for task in attempts}
    with SqliteStore(world.store) as store:
        choices = [event.payload["item"] for event in store.events(run, ["adaptive.choice"])]
    assert len(choices) == len(set(choices)) == 5
    assert set(choices) == set(attempts)
    assert not held_for(run)
    assert world.verified(run)
