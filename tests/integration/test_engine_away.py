"""The engine goes away under a run, and comes back."""

from __future__ import annotations

from pathlib import Path

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
