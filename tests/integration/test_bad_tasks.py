"""One bad task in a run of good ones; suites that must not be run; what a run asks of the engine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .engine_proxy import proxied
from .world import CHECK, OBEDIENT, RIGHT, WRONG, TaskFiles, World

pytestmark = pytest.mark.docker

ABSENT = "sha256:" + "0b" * 32
RESULT_KEYS = {"run", "planned", "outcomes", "stops", "score", "interval", "cost_usd", "trials"}
TRIAL_KEYS = {"task", "outcome", "reason", "stop", "trial"}


def test_bad_tasks_are_typed_and_the_good_ones_are_graded(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.tasks(
        {"ghost:1": ABSENT},
        good=TaskFiles(),
        wrong=TaskFiles(WRONG),
        no_image=TaskFiles(image="ghost:1"),
        no_setup=TaskFiles(setup="echo cannot prepare >&2\nexit 7\n"),
        no_variable=TaskFiles(env={"TOKEN": "${ASSAY_TEST_NOT_SET}"}),
        no_verdict=TaskFiles(check="echo looked at it\n"),
        slow_tests=TaskFiles(check="sleep 60\n", verifier="timeout_sec = 1.0"),
        nan=TaskFiles(check="echo nan > /logs/verifier/reward.txt\n"),
    )
    with proxied(tmp_path) as proxy:
        monkeypatch.setenv("DOCKER_HOST", proxy.url)
        done = world.run(OBEDIENT, "--retries", "0")
        asked = set(proxy.requests)
    assert done.code == 3
    found = done.json
    assert found.keys() >= RESULT_KEYS
    assert found["outcomes"] == {"passed": 1, "failed": 1, "ungraded": 6, "invalid": 0}
    assert found["planned"] == 8
    assert all(trial.keys() >= TRIAL_KEYS for trial in found["trials"])
    assert {trial["task"]: (trial["outcome"], trial["reason"]) for trial in found["trials"]} == {
        "good": ("passed", None),
        "wrong": ("failed", None),
        "no-image": ("ungraded", "image.missing"),
        "no-setup": ("ungraded", "setup.failed"),
        "no-variable": ("ungraded", "setup.failed"),
        "no-verdict": ("ungraded", "verdict.missing"),
        "slow-tests": ("ungraded", "grader.timeout"),
        "nan": ("ungraded", "verdict.not_finite"),
    }
    details = {trial["task"]: trial["detail"] for trial in found["trials"]}
    assert "exit code 7" in details["no-setup"]
    assert "cannot prepare" in details["no-setup"]
    assert "ASSAY_TEST_NOT_SET" in details["no-variable"]
    assert found["interval"] == [1 / 8, 7 / 8]  # what has no grade may be either
    assert sum(found["stops"].values()) == 8
    assert world.on_store("show", "--json").json == found
    assert world.verified()
    # A run builds and pulls nothing.
    assert ("POST", "/containers/create") in asked
    assert not [path for _, path in asked if path == "/build" or path.startswith("/images/create")]


def test_suites_that_are_not_what_was_locked_are_refused_before_anything_runs(world: World) -> None:
    world.tasks(one=TaskFiles(), two=TaskFiles())
    lock = world.suite / "suite.lock"
    locked = lock.read_text()

    lock.unlink()
    done = world.run()
    assert done.code == 2
    assert f"assay suite lock {world.suite}" in done.err

    lock.write_text(locked)
    (world.suite / "two" / "tests" / "test.sh").write_text(CHECK + "true\n")
    done = world.run()
    assert done.code == 2
    assert "two" in done.err

    (world.suite / "two" / "task.toml").write_text("[agent]\ntimeout_sec = -5\n")
    done = world.run()
    assert done.code == 2
    assert "two/task.toml:2" in done.err
    assert "Traceback" not in done.err
    assert not world.store.exists()


def test_an_image_that_is_not_the_locked_one_is_not_run(world: World) -> None:
    """The digest of the lock is what the engine is asked for, whatever the tag means by now."""
    world.tasks({"assay-base:1": ABSENT}, one=TaskFiles())
    assert "assay-base:1" in json.loads((world.suite / "suite.lock").read_text())["images"]
    done = world.run(OBEDIENT, "--retries", "0")
    assert (done.code, done.json["trials"][0]["reason"]) == (3, "image.missing")
    assert ABSENT in done.json["trials"][0]["detail"]


def test_a_run_is_taken_up_only_as_what_it_was(world: World) -> None:
    world.tasks(one=TaskFiles(check="true\n"))
    assert world.run().code == 3
    (world.suite / "one" / "instruction.md").write_text(RIGHT + "true\n")
    world.lock()
    refused = world.on_store("resume", "latest")
    assert refused.code == 2
    assert "changed since the run began" in refused.err
