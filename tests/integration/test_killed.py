"""SIGKILL at any moment, then `assay gc`, then `assay resume`: nothing lost, nothing leaked, nobody else touched."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from .model_service import PRICE_PER_CALL_USD, ModelService
from .world import CHECK, RIGHT, TALKATIVE, WRONG, Started, TaskFiles, World, assay, held_for

pytestmark = pytest.mark.docker

PAUSE = {"PAUSE": "${ASSAY_TEST_PAUSE:-0}"}
STAGES = {
    "a_passed": TaskFiles("@chat\n" + RIGHT),
    "b_failed": TaskFiles("@chat\n" + WRONG),
    "c_preparing": TaskFiles("@chat\n" + RIGHT, setup='sleep "$PAUSE"\n', env=PAUSE),
    "d_interacting": TaskFiles("@chat\n@gate\n" + RIGHT),
    "e_grading": TaskFiles("@chat\n" + RIGHT, check='sleep "$PAUSE"\n' + CHECK, env=PAUSE),
    "f_waiting": TaskFiles("@chat\n" + RIGHT),
}
AT = {
    "a_passed": "done",
    "b_failed": "done",
    "c_preparing": "preparing",
    "d_interacting": "interacting",
    "e_grading": "grading",
}


def test_a_killed_run_is_taken_up_and_another_beside_it_goes_on(
    world: World, service: ModelService, tmp_path: Path
) -> None:
    world.tasks(**STAGES)
    gate = tmp_path / "gate"
    options = world.run_options(TALKATIVE, *service.options(tmp_path), "--concurrency", "3")
    options += ("--solver-option", f"gate={gate}")
    other = World(tmp_path / "other", world.pin)
    other.tasks(held=TaskFiles("@gate\n" + RIGHT))
    other_gate = tmp_path / "other-gate"
    with (
        Started(world, *options, env={"ASSAY_TEST_PAUSE": "60"}) as killed,
        Started(other, *other.run_options(), "--json", "--solver-option", f"gate={other_gate}") as beside,
    ):
        killed.wait_for_states(**AT)
        beside.wait_for_states(held="interacting")
        assert "f-waiting" not in killed.states()
        assert killed.end(signal.SIGKILL).code == -signal.SIGKILL
        run, beside_run = world.trials()[0].run, other.trials()[0].run
        assert len(held_for(run)) == 3
        paid_before = len(service.asked)

        # From yet another store, as another user would call it.
        would = assay("gc", "--dry-run", "--json", "--store", str(tmp_path / "nowhere")).json
        assert len([item for item in would["removed"] if item["run"] == run]) == 3
        assert len(held_for(run)) == 3
        swept = assay("gc", "--json", "--store", str(tmp_path / "nowhere")).json
        assert not held_for(run)
        assert {item["standing"] for item in swept["left"] if item["run"] == beside_run} == {"alive"}
        assert len(held_for(beside_run)) == 1
        assert beside.process.poll() is None

        gate.touch()
        resumed = world.on_store("resume", run, "--json")
        assert resumed.code == 0, resumed.err
        other_gate.touch()
        done = beside.end()
        assert (done.code, done.json["outcomes"]["passed"]) == (0, 1)

    summary = resumed.json
    assert (summary["planned"], summary["outcomes"]["passed"], summary["outcomes"]["failed"]) == (6, 5, 1)
    attempts = {row.task: row.attempt for row in world.trials(run)}
    assert attempts == {
        "a-passed": 1,
        "b-failed": 1,
        "c-preparing": 2,
        "d-interacting": 2,
        "e-grading": 2,
        "f-waiting": 1,
    }
    assert len(service.asked) == paid_before + 4
    assert summary["cost_usd"] == pytest.approx(service.charged_usd)
    for row in world.trials(run):
        assert row.result is not None
        assert bool(row.result.calls) == (row.task != "c-preparing" or row.attempt == 2)
    assert not held_for(run)
    assert world.verified(run)
    assert other.verified()


def test_killed_between_seal_and_grading_and_killed_again_in_the_resumed_run(world: World, tmp_path: Path) -> None:
    # The seal of a large artifact takes a while.
    large = "head -c 60000000 /dev/urandom > /app/large\n"
    world.tasks(one=TaskFiles(large + RIGHT, artifacts='artifacts = ["/app"]'), two=TaskFiles("@gate\n" + RIGHT))
    gate = ("--solver-option", f"gate={tmp_path / 'gate'}")
    with Started(world, *world.run_options(), *gate) as killed:
        killed.wait_until(lambda states: states.get("one") == "sealed" and states.get("two") == "interacting", 0.002)
        killed.end(signal.SIGKILL)
    run = world.trials()[0].run
    assert [row.state for row in world.trials(run)] == ["sealed", "interacting"]
    with Started(world, "resume", run, "--store", str(world.store)) as again:
        again.wait_until(lambda states: states == {"one": "done", "two": "interacting"} and len(world.trials()) == 4)
        assert len(held_for(run)) <= 2  # those of the first process are gone: `resume` removes its own run's
        again.end(signal.SIGKILL)
    assert held_for(run)
    (tmp_path / "gate").touch()
    done = world.on_store("resume", run, "--json")
    assert done.code == 0, done.err
    assert [(row.task, row.attempt) for row in world.trials(run)] == [
        ("one", 1),
        ("one", 2),
        ("two", 1),
        ("two", 2),
        ("two", 3),
    ]
    assert not held_for(run)
    assert world.verified(run)


def test_what_a_call_under_way_cost_is_unknown_and_never_nothing(
    world: World, service: ModelService, tmp_path: Path
) -> None:
    world.tasks(one=TaskFiles("@chat\n@chat\n" + RIGHT))
    service.hold_after = 1
    with Started(world, *world.run_options(TALKATIVE, *service.options(tmp_path))) as killed:
        killed.wait_until(lambda states: len(service.asked) == 2)
        killed.end(signal.SIGKILL)
    service.release()
    done = world.on_store("resume", "latest", "--json")
    assert done.code == 0, done.err
    assert len(service.asked) == 4
    assert done.json["cost_usd"] is None
    assert done.json["cost_at_least_usd"] == pytest.approx(3 * PRICE_PER_CALL_USD)
    assert any("without usage" in warning for warning in done.json["warnings"])
    assert world.verified()
