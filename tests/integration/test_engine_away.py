"""The engine, or a container, goes away under a run."""

from __future__ import annotations

import time
from pathlib import Path

import docker
import pytest

from .engine_proxy import proxied
from .world import OBEDIENT, RIGHT, Started, TaskFiles, World, held_for

pytestmark = pytest.mark.docker


def test_a_run_whose_engine_goes_away_halts_and_can_be_taken_up(world: World, tmp_path: Path) -> None:
    world.tasks(
        a_passed=TaskFiles(),
        b_command=TaskFiles('sleep "$PAUSE"\n' + RIGHT, env={"PAUSE": "${ASSAY_TEST_PAUSE:-0}"}),
        c_thinking=TaskFiles("@gate\n" + RIGHT),
        d_waiting=TaskFiles(),
    )
    gate = ("--solver-option", f"gate={tmp_path / 'gate'}")
    with proxied(tmp_path) as proxy:
        env = {"DOCKER_HOST": proxy.url}
        options = world.run_options(OBEDIENT, "--json", "--concurrency", "2", *gate)
        with Started(world, *options, env={**env, "ASSAY_TEST_PAUSE": "60"}) as started:
            started.wait_for_states(a_passed="done", b_command="interacting", c_thinking="interacting")
            proxy.cut()
            (tmp_path / "gate").touch()
            done = started.end()
        assert done.code == 5
        assert done.json["halted"]
        found = {trial["task"]: (trial["outcome"], trial["reason"], trial["stop"]) for trial in done.json["trials"]}
        assert found["a-passed"] == ("passed", None, "finished")
        assert found["b-command"] == found["c-thinking"] == ("ungraded", "engine.unreachable", "infrastructure")
        assert "d-waiting" not in found  # nothing is started any more
        run = done.json["run"]
        assert f"assay resume {run}" in done.err
        assert world.verified(run)
        assert held_for(run)  # could not be removed: nobody to ask

        down = Started(world, "resume", run, "--store", str(world.store), env=env).end()
        assert down.code == 5
        assert "Traceback" not in down.err

        proxy.mend()
        with Started(world, "resume", run, "--json", "--store", str(world.store), env=env) as again:
            resumed = again.end()
    assert resumed.code == 0, resumed.err
    assert [(trial["task"], trial["outcome"]) for trial in resumed.json["trials"]] == [
        ("a-passed", "passed"),
        ("b-command", "passed"),
        ("c-thinking", "passed"),
        ("d-waiting", "passed"),
    ]
    assert len([row for row in world.trials(run) if row.task in ("a-passed", "d-waiting")]) == 2
    assert not held_for(run)
    assert world.verified(run)


def test_output_that_was_lost_on_the_way_is_said(world: World, tmp_path: Path) -> None:
    world.tasks(one=TaskFiles("echo on; sleep 6; echo off\n" + RIGHT))
    with (
        proxied(tmp_path) as proxy,
        Started(world, *world.run_options(), "--json", env={"DOCKER_HOST": proxy.url}) as started,
    ):
        started.wait_until(lambda states: any(path.endswith("/start") for _, path in proxy.requests if "exec" in path))
        time.sleep(1)
        assert proxy.lose_streams() == 1
        done = started.end()
    assert (done.code, done.json["outcomes"]["passed"]) == (0, 1), done.err
    (row,) = world.trials()
    first, second = world.events(row.trial, "exec")
    assert (first["exit_code"], first["stdout"]["text"], first["output_ended_early"]) == (0, "on\n", True)
    assert not second["output_ended_early"]
    assert not held_for(done.json["run"])
    assert world.verified()


def test_a_container_that_somebody_removes_is_an_infrastructure_fault_and_tried_again(
    world: World, tmp_path: Path
) -> None:
    world.tasks(one=TaskFiles("@gate\n" + RIGHT))
    gate = tmp_path / "gate"
    with Started(world, *world.run_options(), "--json", "--solver-option", f"gate={gate}") as started:
        started.wait_for_states(one="interacting")
        (name,) = held_for(world.trials()[0].run)
        with docker.APIClient(version="auto", timeout=60) as client:
            client.remove_container(name, force=True)
        gate.touch()
        done = started.end()
    assert (done.code, done.json["outcomes"]["passed"]) == (0, 1), done.err
    results = [row.result for row in world.trials() if row.result is not None]
    assert [(result.outcome, result.reason) for result in results] == [
        ("ungraded", "engine.container_lost"),
        ("passed", None),
    ]
    assert not held_for(done.json["run"])
