"""`assay serve` with real processes and containers: two on one store, killed with all they started, and taken up."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from harness.api.schedule_request import read_schedule
from harness.audit.schedule.decide import stamp
from harness.records.schedule import FiringState, JobTimes, Result, Ruling
from harness.store.firings import FiringTable
from harness.store.sqlite import SqliteStore

from .world import PATIENCE_S, Started, TaskFiles, World, held_for

pytestmark = pytest.mark.docker


def schedule(world: World) -> Path:
    """A job that was due on every New Year's Day of two years in which nobody served."""
    world.tasks(slow=TaskFiles())
    (world.suite / "slow" / "solution" / "solve.sh").write_text("sleep 3\necho 42 > /app/answer\n")
    world.lock()
    file = world.root / "schedule.toml"
    file.write_text(
        f'store = "{world.store}"\n[[job]]\nname = "gold"\ncron = "0 0 1 1 *"\nkind = "gold"\nsuite = "{world.suite}"\n'
        "[server]\nport = 0\n"
    )
    [job] = read_schedule(file).jobs
    long_ago = stamp(datetime.now(UTC) - timedelta(days=731))
    with SqliteStore(world.store) as store, FiringTable(store).changing() as changing:
        changing.decide(JobTimes(job=job.name, line=job.line, decided=long_ago))
    return file


def wait_for(holds: Callable[[], bool], serving: Started) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert serving.process.poll() is None, serving.said
        assert time.monotonic() < deadline, serving.said
        time.sleep(0.05)


def test_a_firing_whose_processes_are_killed_is_taken_up_once_by_one_of_two_and_drained(world: World) -> None:
    file = schedule(world)
    with SqliteStore(world.store) as store:
        table = FiringTable(store)
        with Started(world, "serve", str(file)) as serving:
            serving.wait_for_states(slow="interacting")
            [firing] = table.open_firings()
            assert (firing.state, firing.ruling, firing.missed) == (FiringState.RUNNING, Ruling.LATE, 1)
            worker = table.held("gold")
            assert worker is not None
            assert worker["pid"] != serving.process.pid
            [killed] = [row.run for row in store.runs()]
            assert held_for(killed) != []
            serving.process.kill()
            os.kill(int(str(worker["pid"])), signal.SIGKILL)
        with Started(world, "serve", str(file)) as one, Started(world, "serve", str(file)) as other:
            wait_for(lambda: len(store.runs()) == 2, one)
            drained = [serving.end(signal.SIGTERM) for serving in (one, other)]
        assert [done.code for done in drained] == [0, 0], [done.err for done in drained]
        assert "Traceback" not in drained[0].err + drained[1].err
        [firing] = table.history()
        assert (firing.state, firing.deaths, firing.found.tasks) == (FiringState.OVER, 1, 1)
        assert firing.result is Result.ALERT  # gold alone is no whole cycle: null is absent
        assert held_for(killed) == []


def test_a_second_signal_leaves_what_is_under_way_to_the_next(world: World) -> None:
    file = schedule(world)
    with Started(world, "serve", str(file)) as serving:
        serving.wait_for_states(slow="interacting")
        serving.process.send_signal(signal.SIGTERM)
        wait_for(lambda: "schedule.draining" in serving.said, serving)
        done = serving.end(signal.SIGTERM)
    assert done.code == 130
    assert "taken up by the next" in done.err
    with SqliteStore(world.store) as store:
        [firing] = FiringTable(store).open_firings()
        assert (firing.state, firing.deaths) == (FiringState.INTERRUPTED, 0)
        assert held_for(store.runs()[0].run) == []
    taken = world.on_store("schedule", "run-now", "gold", "--json")
    assert (taken.code, taken.json["number"], taken.json["state"]) == (3, 1, "over")
