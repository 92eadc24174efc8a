"""A scheduler on a real store with a clock moved by hand: missed times, deaths, rivals, clocks set back."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.records.errors import StoreError
from harness.records.schedule import Findings, FiringState, JobKind, Missed, Result, Ruling

from .scenes import Processes, World, begun, job, kill


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_job_fires_when_it_is_due_and_not_before(world: World) -> None:
    scheduler = world.scheduler(job())
    scheduler.tick()  # new: times count from here
    assert begun(scheduler) == []
    world.clock.go(minutes=59, seconds=59)
    scheduler.tick()
    assert begun(scheduler) == []
    assert scheduler.next_wake(world.clock(), 15).isoformat() == "2026-03-01T07:00:00+00:00"
    world.clock.go(seconds=3)
    scheduler.tick()
    scheduler.tick()
    [firing] = begun(scheduler)
    assert (firing.due[:19], firing.ruling, firing.missed) == ("2026-03-01T07:00:00", Ruling.ON_TIME, 0)
    world.finish(scheduler)
    world.clock.go(hours=1)
    scheduler.tick()
    assert [one.due[11:16] for one in begun(scheduler)] == ["07:00", "08:00"]


def test_many_missed_times_are_one_firing_with_its_lateness(world: World) -> None:
    world.scheduler(job()).tick()
    world.clock.go(hours=9, minutes=20)
    scheduler = world.scheduler(job())  # a new process, after nine hours of none
    scheduler.tick()
    scheduler.tick()
    [firing] = begun(scheduler)
    assert firing.ruling is Ruling.LATE
    assert (firing.first_due[11:16], firing.due[11:16], firing.missed) == ("07:00", "15:00", 8)
    world.finish(scheduler)
    scheduler.tick()
    assert len(begun(scheduler)) == 1


def test_a_job_that_skips_writes_down_what_it_skipped(world: World) -> None:
    skips = job(missed=Missed.SKIP)
    world.scheduler(skips).tick()
    world.clock.go(hours=3, minutes=20)
    scheduler = world.scheduler(skips)
    scheduler.tick()
    assert begun(scheduler) == []
    [skipped] = world.table.history()
    assert (skipped.result, skipped.ruling, skipped.missed) == (Result.SKIPPED, Ruling.SKIPPED, 2)
    world.clock.go(hours=2, minutes=-20, seconds=30)  # one more was missed, one is due just now
    scheduler.tick()
    [fired, before] = world.table.history(limit=2)
    assert (fired.due[11:16], fired.ruling, fired.missed) == ("11:00", Ruling.ON_TIME, 0)
    assert (before.due[11:16], before.result) == ("10:00", Result.SKIPPED)


def test_a_job_under_way_is_not_begun_again_and_catches_up_once(world: World) -> None:
    scheduler = world.scheduler(job())
    scheduler.tick()
    world.clock.go(hours=1)
    scheduler.tick()
    world.clock.go(hours=3, minutes=30)
    scheduler.tick()
    assert len(begun(scheduler)) == 1
    world.finish(scheduler)
    scheduler.tick()
    assert [(one.due[11:16], one.missed) for one in begun(scheduler)] == [("07:00", 0), ("10:00", 2)]


def test_of_two_schedulers_on_a_store_one_fires(world: World) -> None:
    one, other = world.scheduler(job()), world.scheduler(job())
    one.tick()
    world.clock.go(hours=1)
    for _ in range(3):
        other.tick()
        one.tick()
    assert (len(begun(one)), len(begun(other))) == (0, 1)
    world.finish(other)
    one.tick()
    assert len(world.table.history()) == 1
    world.clock.go(hours=1)
    one.tick()
    other.tick()
    assert (len(begun(one)), len(begun(other))) == (1, 1)


@settings(max_examples=25)  # each writes a database
@given(order=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40)), max_size=25))
def test_whatever_the_order_no_time_fires_twice_and_no_job_runs_twice(
    order: list[tuple[int, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    world = World(tmp_path_factory.mktemp("store"))
    jobs = (job("a", cron="*/20 * * * *"), job("b", cron="*/30 * * * *", missed=Missed.SKIP))
    schedulers = [world.scheduler(*jobs) for _ in range(3)]
    for who, minutes in order:
        world.clock.go(minutes=minutes)
        schedulers[who].tick()
        under_way = [number for one in schedulers if isinstance(one.starter, Processes) for number in one.starter.locks]
        names = [world.table.firing(number).job.name for number in under_way]
        assert len(names) == len(set(names))
        if minutes % 3 == 0:
            world.finish(schedulers[who])
        elif minutes % 3 == 1:
            kill(schedulers[who])
    fired = [(one.job.name, one.due) for one in world.table.history(limit=1000)]
    assert len(fired) == len(set(fired))


def test_a_firing_whose_process_died_is_taken_up_once_and_then_lost(world: World) -> None:
    scheduler = world.scheduler(job())
    scheduler.tick()
    world.clock.go(hours=1)
    scheduler.tick()
    scheduler.tick()
    assert len(begun(scheduler)) == 1  # alive: left alone
    kill(scheduler)
    rival = world.scheduler(job())
    rival.tick()
    assert [(one.number, one.deaths) for one in begun(rival)] == [(1, 1)]
    kill(rival)
    scheduler.tick()
    assert len(begun(scheduler)) == 1
    lost = world.table.firing(1)
    assert (lost.result, lost.deaths, lost.found.message) == (Result.LOST, 2, "its process died 2 times")


def test_a_run_that_can_be_resumed_is_taken_up_more_often(world: World) -> None:
    scheduler = world.scheduler(job(kind=JobKind.CALIBRATION_RUN))
    scheduler.tick()
    world.clock.go(hours=1)
    scheduler.tick()
    world.change(begun(scheduler)[0], state=FiringState.RUNNING, found=Findings(runs=("20260301-070000-aaaaaa",)))
    for _ in range(10):
        kill(scheduler)
        scheduler.tick()
    assert [one.deaths for one in begun(scheduler)] == [0, 1, 2, 3, 4]
    assert world.table.firing(1).result is Result.LOST


def test_a_dead_firing_of_a_job_that_skips_is_lost(world: World) -> None:
    scheduler = world.scheduler(job(missed=Missed.SKIP))
    scheduler.tick()
    world.clock.go(hours=1)
    scheduler.tick()
    kill(scheduler)
    scheduler.tick()
    assert world.table.firing(1).result is Result.LOST
    world.clock.go(hours=1)
    scheduler.tick()
    assert [one.number for one in begun(scheduler)] == [1, 2]


def test_one_that_died_before_its_process_began_is_taken_up(world: World) -> None:
    """The claim is written, the lock goes with the claimant: SIGKILL between the two and the start."""
    scheduler = world.scheduler(job())
    scheduler.tick()
    world.clock.go(hours=1)

    class Dying(Processes):
        def start(self, firing: object, lock: int) -> None:
            raise KeyboardInterrupt

    dying = world.scheduler(job())
    dying.starter = Dying()
    with pytest.raises(KeyboardInterrupt):
        dying.tick()
    assert world.table.firing(1).state is FiringState.CLAIMED
    scheduler.tick()
    assert [one.number for one in begun(scheduler)] == [1]


def test_an_interrupted_firing_is_taken_up_and_was_no_death(world: World) -> None:
    scheduler = world.scheduler(job(missed=Missed.SKIP))
    scheduler.tick()
    world.clock.go(hours=1)
    scheduler.tick()
    world.change(begun(scheduler)[0], state=FiringState.INTERRUPTED)
    kill(scheduler)
    scheduler.tick()
    assert [(one.number, one.deaths) for one in begun(scheduler)] == [(1, 0), (1, 0)]


def test_a_firing_waits_while_the_suite_is_audited(world: World) -> None:
    busy = [True]
    scheduler = world.scheduler(job(), busy=lambda job: busy[0])
    scheduler.tick()
    world.clock.go(hours=1)
    scheduler.tick()
    world.wait(begun(scheduler)[0], 15)
    kill(scheduler)
    for seconds in (1, 10, 10, 10):
        world.clock.go(seconds=seconds)
        scheduler.tick()
    assert len(begun(scheduler)) == 1
    busy[0] = False
    scheduler.tick()
    assert [one.deaths for one in begun(scheduler)] == [0, 0]


@pytest.mark.parametrize("back_s", [30.0, 1800.0, 86_400.0])
def test_a_clock_that_goes_back_fires_nothing_twice(world: World, back_s: float) -> None:
    scheduler = world.scheduler(job())
    scheduler.tick()
    for _ in range(3):
        world.clock.go(hours=1, seconds=1)
        scheduler.tick()
        world.finish(scheduler)
    world.clock.go(seconds=-back_s)
    scheduler.tick()
    assert (scheduler.clock_back_s > 0) == (back_s > 60)
    later = world.scheduler(job())  # a process that has not seen it
    for _ in range(200):
        world.clock.go(minutes=20)
        later.tick()
        world.finish(later)
    dues = [one.due for one in world.table.history(limit=1000)]
    assert len(dues) == len(set(dues))
    assert {due[11:16] for due in dues} >= {"10:00", "11:00", "12:00"}  # and it goes on afterwards


def test_a_new_line_counts_from_now(world: World) -> None:
    world.scheduler(job(cron="0 0 1 1 *")).tick()
    world.clock.go(days=30)
    scheduler = world.scheduler(job(cron="* * * * *"))
    scheduler.tick()
    assert begun(scheduler) == []
    world.clock.go(minutes=1)
    scheduler.tick()
    assert len(begun(scheduler)) == 1


def test_no_more_processes_than_there_is_room_for(world: World) -> None:
    scheduler = world.scheduler(*(job(name) for name in "abc"), most=2)
    scheduler.tick()
    world.clock.go(hours=1)
    scheduler.tick()
    assert [one.job.name for one in begun(scheduler)] == ["a", "b"]
    world.finish(scheduler)
    scheduler.tick()
    assert [one.job.name for one in begun(scheduler)] == ["a", "b", "c"]


def open_locks(folder: Path) -> int:
    """How many lock files of this store this process has open."""
    links = []
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # the descriptor that lists the folder is gone by now
            links.append(os.readlink(entry))
    return sum(link.startswith(str(folder.resolve())) and link.endswith(".lock") for link in links)


def test_the_lock_is_held_by_the_process_alone(world: World) -> None:
    scheduler = world.scheduler(job())
    scheduler.tick()
    world.clock.go(hours=1)
    assert open_locks(world.folder) == 0
    scheduler.tick()
    assert open_locks(world.folder) == 1  # the copy that stands for the child's
    assert world.table.held("nightly") is not None
    kill(scheduler)
    assert world.table.held("nightly") is None


def test_the_store_refuses_a_second_end(world: World) -> None:
    scheduler = world.scheduler(job())
    scheduler.tick()
    world.clock.go(hours=1)
    scheduler.tick()
    firing = begun(scheduler)[0]
    world.finish(scheduler)
    with pytest.raises(StoreError, match="firing 1 is over already"):
        world.change(firing, state=FiringState.RUNNING)
