"""Ctrl-C once and twice; two runs at once; a run that is taken up while it is alive."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from .world import CHECK, RIGHT, Started, TaskFiles, World, held_for

pytestmark = pytest.mark.docker

STAGES = {
    "a_passed": TaskFiles(),
    "b_preparing": TaskFiles(setup='sleep "$PAUSE"\n', env={"PAUSE": "${ASSAY_TEST_SETUP:-0}"}),
    "c_interacting": TaskFiles("@gate\n" + RIGHT),
    "d_grading": TaskFiles(check='sleep "$PAUSE"\n' + CHECK, env={"PAUSE": "${ASSAY_TEST_GRADING:-0}"}),
    "e_waiting": TaskFiles(),
}


def interrupted(world: World, gate: Path, grading_s: int, times: int) -> str:
    """Run until something is at every stage, interrupt, and check what must hold however often it was; the run's id."""
    world.tasks(**STAGES)
    options = world.run_options()
    options += ("--json", "--concurrency", "3", "--solver-option", f"gate={gate}")
    with Started(world, *options, env={"ASSAY_TEST_SETUP": "60", "ASSAY_TEST_GRADING": str(grading_s)}) as started:
        started.wait_for_states(b_preparing="preparing", c_interacting="interacting", d_grading="grading")
        if times == 2:
            started.process.send_signal(signal.SIGINT)
            started.wait_until(lambda states: "once more" in started.said)
        done = started.end(signal.SIGINT)
    run = world.trials()[0].run
    assert done.code == 130
    assert f"assay resume {run} --store {world.store}" in done.err
    assert "Traceback" not in done.err
    assert not held_for(run)
    assert world.verified(run)
    assert done.json["run"] == run
    by_task = {trial["task"]: (trial["outcome"], trial["stop"]) for trial in done.json["trials"]}
    assert by_task["a-passed"] == ("passed", "finished")
    assert by_task["b-preparing"] == by_task["c-interacting"] == ("ungraded", "cancelled")
    assert "e-waiting" not in by_task
    return run


def resumed(world: World, run: str) -> dict[str, int]:
    """Resume to the end; attempts by task."""
    done = world.on_store("resume", run, "--json")
    assert (done.code, done.json["outcomes"]["passed"]) == (0, 5), done.err
    assert world.verified(run)
    assert not held_for(run)
    return {row.task: row.attempt for row in world.trials(run)}


def test_an_interrupt_lets_grading_finish_and_resume_does_the_rest(world: World, tmp_path: Path) -> None:
    run = interrupted(world, tmp_path / "gate", grading_s=3, times=1)
    assert {row.task: row.result.outcome for row in world.trials(run) if row.result}["d-grading"] == "passed"
    (tmp_path / "gate").touch()
    attempts = {"a-passed": 1, "b-preparing": 2, "c-interacting": 2, "d-grading": 1, "e-waiting": 1}
    assert resumed(world, run) == attempts


def test_a_second_interrupt_cuts_grading_and_loses_nothing_stored(world: World, tmp_path: Path) -> None:
    run = interrupted(world, tmp_path / "gate", grading_s=60, times=2)
    assert {row.task: row.result.outcome for row in world.trials(run) if row.result}["d-grading"] == "ungraded"
    (tmp_path / "gate").touch()
    attempts = {"a-passed": 1, "b-preparing": 2, "c-interacting": 2, "d-grading": 2, "e-waiting": 1}
    assert resumed(world, run) == attempts


def test_two_runs_of_a_task_at_once_do_not_collide_and_a_live_run_is_not_taken_up(world: World, tmp_path: Path) -> None:
    world.tasks(same=TaskFiles("@gate\n" + RIGHT))
    gate = ("--solver-option", f"gate={tmp_path / 'gate'}")
    with Started(world, *world.run_options(), "--json", *gate) as one:
        one.wait_for_states(same="interacting")
        first = world.trials()[0].run
        with Started(world, *world.run_options(), "--json", *gate) as other:
            other.wait_until(lambda states: states == {"same": "interacting"} and world.trials()[0].run != first)
            second = world.trials()[0].run
            assert (len(held_for(first)), len(held_for(second))) == (1, 1)
            refused = world.on_store("resume", first)
            assert refused.code == 2
            assert f"process {one.process.pid} on " in refused.err
            listed = world.on_store("runs", "--json").json["runs"]
            assert {row["run"]: row["running"] for row in listed} == {first: True, second: True}
            (tmp_path / "gate").touch()
            ended = [one.end(), other.end()]
    assert [(done.code, done.json["outcomes"]["passed"]) for done in ended] == [(0, 1), (0, 1)]
    assert not held_for(first)
    assert not held_for(second)
    assert world.verified(first)
    assert world.verified(second)
