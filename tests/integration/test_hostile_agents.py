"""Agents that leave things behind, replace the tools they are run with, or write their own verdict: nothing scores."""

from __future__ import annotations

import pytest

from .world import OBEDIENT, RIGHT, TaskFiles, World

pytestmark = pytest.mark.docker

LATE = "(sleep 4; echo 42 > /app/answer)"
LATE_CHECK = "sleep 6\nif grep -qx 42 /app/answer; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n"
CHEAT = r"#!/bin/bash\necho 42 > /app/answer; echo 1 > /logs/verifier/reward.txt\n"
PLANTED = """\
mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt; echo '{"reward": 1}' > /logs/verifier/reward.json
"""
LOOP = "while :; do mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt; done"


def replacing(*tools: str) -> str:
    """Puts a program that cheats in the place of tools, wherever they are."""
    make = f"printf '{CHEAT}' > /tmp/cheat; chmod 755 /tmp/cheat; cp /bin/cp /bin/bash /tmp"
    copy = 'for d in /bin /usr/bin /usr/local/bin; do rm -f "$d/$t"; /tmp/cp /tmp/cheat "$d/$t"; done'
    return f"{make}; sed -i s,/bin/bash,/tmp/bash, /tmp/cheat; for t in {' '.join(tools)}; do {copy}; done\n"


def fresh(do: str) -> TaskFiles:
    """A task that is graded in a container of its own."""
    return TaskFiles(do, verifier='environment_mode = "separate"', artifacts='artifacts = ["/app"]')


def test_what_an_agent_leaves_behind_never_scores(world: World) -> None:
    world.tasks(
        setsid_after_timeout=TaskFiles(f"@within 1 setsid bash -c '{LATE}' & sleep 30\n", check=LATE_CHECK),
        setsid_in_the_background=TaskFiles(f"setsid bash -c '{LATE}' > /dev/null 2>&1 &\n", check=LATE_CHECK),
        # A double fork that holds the output open: the command ends all the same.
        daemon=TaskFiles(f"bash -c \"(setsid bash -c '{LATE}' &) &\"\n", check=LATE_CHECK),
        out_of_time=TaskFiles(f"{LATE} & sleep 50\n", check=LATE_CHECK),
        planted=TaskFiles(PLANTED),
        rewriting=TaskFiles(
            f"setsid bash -c '{LOOP}' > /dev/null 2>&1 &\n", check="sleep 1\necho 0 > /logs/verifier/reward.txt\n"
        ),
        exit_codes=TaskFiles("exit 124\nexit 137\n" + RIGHT),
    )
    done = world.run(OBEDIENT, "--max-seconds", "3", "--concurrency", "7")
    assert done.code == 0, done.err
    found = {trial["task"]: trial for trial in done.json["trials"]}
    assert {task: trial["outcome"] for task, trial in found.items()} == {
        **dict.fromkeys(found, "failed"),
        "exit-codes": "passed",
    }
    assert found["out-of-time"]["stop"] == "budget.time"
    assert any("found before grading and removed: /logs/verifier" in flag for flag in found["planted"]["flags"])
    timed_out = [event["timed_out"] for event in world.events(found["exit-codes"]["trial"], "exec")]
    assert timed_out == [False, False, False]
    assert [e["timed_out"] for e in world.events(found["setsid-after-timeout"]["trial"], "exec")] == [True]
    assert world.verified()


def test_tools_that_an_agent_replaced_change_nothing(world: World) -> None:
    late = f"@within 1 setsid bash -c '{LATE}' & while :; do :; done\n"
    world.tasks(
        timeout_and_kill=TaskFiles(replacing("timeout", "kill", "sh", "dash") + late, check=LATE_CHECK),
        # Tests that run in the solver's own container run with its bash: said in the result, closed by a fresh one.
        bash=TaskFiles(replacing("bash", "grep")),
        bash_fresh=fresh(replacing("bash", "grep")),
        everything_fresh=fresh("rm -rf /bin/* /usr/bin/* /usr/lib/* /lib/*\n"),
        right_fresh=fresh(RIGHT + replacing("bash", "grep", "sh", "kill")),
    )
    done = world.run(OBEDIENT, "--concurrency", "5")
    found = {trial["task"]: trial for trial in done.json["trials"]}
    assert done.code == 0, done.err
    assert {task: trial["outcome"] for task, trial in found.items() if task != "bash"} == {
        "timeout-and-kill": "failed",
        "bash-fresh": "failed",
        "everything-fresh": "failed",
        "right-fresh": "passed",
    }
    flags = found["bash"]["flags"]
    assert any("its tools ran the tests" in flag for flag in flags)
    assert any("/usr/bin/bash" in flag for flag in flags), flags
    assert not any("programs" in flag for task in ("bash-fresh", "right-fresh") for flag in found[task]["flags"])
    assert world.verified()
