"""What agents may leave in a real container so that no test can run in it, or reads something that has no end."""

from __future__ import annotations

import anyio
import pytest

from harness.grading import probe as probing
from harness.protocols import Episode
from harness.records.grade import TrialResult
from harness.records.task import Budget, Environment, Grading, ImagePin, Limits, Task
from harness.records.vocabulary import GradingEnvironment, Outcome, Reason
from harness.runner.services import Services
from harness.runner.trial import Trial
from harness.sandbox.provider import DockerSandboxProvider
from tests.runner.scenes import Scripted, make_plan, make_row, make_services, make_task, tree

pytestmark = [pytest.mark.docker, pytest.mark.anyio]

TEST = "{ grep -qx 42 /app/answer && echo 1 || echo 0; } > /logs/verifier/reward.txt\n"
PYTHON = "python3 /tests/check.py > /logs/verifier/reward.json || rm -f /logs/verifier/reward.json\n"
CHECK = "import pathlib; p = pathlib.Path('/app/answer'); print(int(p.exists() and p.read_text() == '42\\n'))\n"
RIGHT = "echo 42 > /app/answer; "

BROKEN = {
    "everything": RIGHT + "rm -rf --no-preserve-root / 2>/dev/null",
    "programs": RIGHT + "chmod 000 /bin /usr/bin",
    "bash": RIGHT + "printf '#!/bin/sh\\nexit 0\\n' > /tmp/b; chmod 755 /tmp/b; mv /tmp/b /usr/bin/bash",
    "deaf bash": RIGHT + "printf '#!/bin/sh\\nsleep 99\\n' > /tmp/b; chmod 755 /tmp/b; mv /tmp/b /usr/bin/bash",
    "workdir": "rm -rf /app",
    "libc": RIGHT + "rm -f /lib/x86_64-linux-gnu/libc.so.6 /lib/aarch64-linux-gnu/libc.so.6",
    "devices": RIGHT + "rm -f /dev/null",
}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def task_of(pin: ImagePin, **grading: object) -> Task:
    values = {"tests": tree(test__sh=TEST), "timeout_s": 20.0, **grading}
    return make_task(
        image=pin,
        environment=Environment(capabilities=()),
        budget=Budget(wall_s=30.0),
        limits=Limits(memory_mb=128, pids=64),
        grading=Grading.model_validate(values),
    )


async def carry_out(provider: DockerSandboxProvider, task: Task, do: str) -> tuple[TrialResult, Services]:
    """One trial of an agent that does one thing, with `sh`."""

    async def act(episode: Episode) -> None:
        await episode.sandbox.exec(["sh", "-c", do])

    services = make_services(Scripted(act))
    services = Services(**{**vars(services), "provider": provider})
    plan = make_plan(task)
    services.store.create_run(make_row([task]))
    services.store.plan([plan])
    trial = Trial(plan, services)
    trial.journal.note("trial.state", {"to": "planned"})
    return await trial.run(), services


async def all_of(task: Task, acts: dict[str, str]) -> dict[str, tuple[TrialResult, Services]]:
    provider = DockerSandboxProvider()
    found: dict[str, tuple[TrialResult, Services]] = {}
    at_once = anyio.CapacityLimiter(3)

    async def one(name: str, do: str) -> None:
        async with at_once:
            found[name] = await carry_out(provider, task, do)

    async with anyio.create_task_group() as group:
        for name, do in acts.items():
            group.start_soon(one, name, do)
    await provider.close()
    return found


async def test_a_container_in_which_no_test_can_start_is_the_agents_fail(
    base_pin: ImagePin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probing, "PROBE_S", 4.0)
    found = await all_of(task_of(base_pin), BROKEN)
    told = {name: (result.outcome, result.reason) for name, (result, _) in found.items()}
    assert told == dict.fromkeys(BROKEN, (Outcome.FAILED, Reason.SOLVER_BROKE))
    for result, services in found.values():
        (probe,) = services.store.events(result.trial, ["grading.probe"])
        assert (probe.payload["left"]["started"], probe.payload["pristine"]["started"]) == ([], ["bash"])
        assert probe.payload["left"]["said"] in result.detail
    assert 'chdir to cwd ("/app")' in found["workdir"][0].detail
    assert "libc.so.6" in found["libc"][0].detail


async def test_python_counts_where_the_tests_are_python(base_pin: ImagePin) -> None:
    task = task_of(base_pin, tests=tree(test__sh=PYTHON, check__py=CHECK))
    acts = {"right": RIGHT, "broken": RIGHT + "rm -f /usr/bin/python3*"}
    found = await all_of(task, acts)
    assert found["right"][0].outcome is Outcome.PASSED
    broken, services = found["broken"]
    assert (broken.outcome, broken.reason, broken.reward) == (Outcome.FAILED, Reason.SOLVER_BROKE, None)
    assert "python3 cannot start" in broken.detail
    (grade,) = services.store.events(broken.trial, ["grade"])
    assert b"python3" in services.store.blob(grade.blobs["stderr"])


async def test_tests_that_never_worked_stay_ungraded(base_pin: ImagePin) -> None:
    found = await all_of(task_of(base_pin, tests=tree(test__sh="exit 3\n")), {"right": RIGHT, "nothing": "true"})
    assert {(result.outcome, result.reason) for result, _ in found.values()} == {
        (Outcome.UNGRADED, Reason.GRADER_CRASHED)
    }


UNCARRIED = {
    "FIFO": "mkfifo /app/answer",
    "socket": "python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('/app/answer')\"",
    "link": "ln -s /dev/zero /app/answer",
    "link to a link": "ln -s /tests/want /app/want; ln -s want /app/answer",
}


async def test_what_is_no_file_is_not_carried_and_holds_no_test(base_pin: ImagePin) -> None:
    task = task_of(base_pin, environment=GradingEnvironment.FRESH, artifacts=("/app/answer",))
    found = await all_of(task, {**UNCARRIED, "file": RIGHT, "folder": "mkdir /app/answer; mkfifo /app/answer/x"})
    assert found["file"][0].outcome is Outcome.PASSED
    for name in UNCARRIED:
        result = found[name][0]
        assert (result.outcome, result.reason) == (Outcome.FAILED, Reason.ARTIFACT_NO_FILE), name
        assert any("/app/answer (" in flag for flag in result.flags), result.flags
    folder = found["folder"][0]
    assert (folder.outcome, folder.reason) == (Outcome.FAILED, None)
    assert any("/app/answer/x (a FIFO)" in flag for flag in folder.flags)
