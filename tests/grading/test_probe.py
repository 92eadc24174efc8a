"""Who is at fault when the tests cannot start: the solver only where it started before it, and twice not after."""

from __future__ import annotations

import pytest

from harness.protocols import Episode
from harness.records.grade import TrialResult
from harness.records.task import Environment, Task
from harness.records.vocabulary import GradingEnvironment, Outcome, Reason
from harness.runner.services import Services
from harness.testing import MemorySandboxProvider, Process, Trouble, lost, tiny_shell
from tests.runner.scenes import Script, answer, carry_out, make_services, make_task, tree

pytestmark = pytest.mark.anyio


async def fragile(process: Process) -> int:
    """A bash that does not start where there is a file /broken; `sh` always does."""
    if process.argv[0] == "bash" and "/broken" in process.files:
        process.write_error(b"bash: no libc\n")
        return 127
    return await tiny_shell(process)


async def wreck(episode: Episode) -> None:
    await episode.sandbox.exec(["sh", "-c", "echo 42 > /app/answer; echo x > /broken"])


async def trial(
    provider: MemorySandboxProvider, solver: Script = wreck, task: Task | None = None
) -> tuple[TrialResult, Services]:
    services = make_services(solver, provider=provider)
    return await carry_out(services, task), services


async def test_what_the_solver_broke_is_its_fail_with_the_evidence() -> None:
    provider = MemorySandboxProvider(fragile)
    result, services = await trial(provider)
    assert (result.outcome, result.reason, result.reward) == (Outcome.FAILED, Reason.SOLVER_BROKE, None)
    assert "bash: no libc" in result.detail
    (event,) = services.store.events(result.trial, ["grading.probe"])
    assert event.payload["broken"] == ["bash"]
    assert [sandbox.spec.purpose for sandbox in provider.sandboxes] == ["trial", "pristine"]


async def test_a_sound_container_costs_no_second_one() -> None:
    provider = MemorySandboxProvider(fragile)
    result, services = await trial(provider, answer)
    assert result.outcome is Outcome.PASSED
    assert len(provider.sandboxes) == 1
    assert not list(services.store.events(result.trial, ["grading.probe"]))


async def test_what_the_image_lacks_is_not_the_solvers_fault() -> None:
    result, _ = await trial(MemorySandboxProvider(fragile, image_files={"/broken": b"x"}))
    assert (result.outcome, result.reason) == (Outcome.UNGRADED, Reason.GRADER_CRASHED)


async def test_what_the_tasks_own_setup_broke_is_not_the_solvers_fault() -> None:
    setup = Environment(setup="setup.sh", setup_files=tree(setup__sh="echo x > /broken\n"))
    result, _ = await trial(MemorySandboxProvider(fragile), task=make_task(environment=setup))
    assert (result.outcome, result.reason) == (Outcome.UNGRADED, Reason.GRADER_CRASHED)


async def test_a_setup_that_fails_the_second_time_lays_it_to_nobody() -> None:
    runs: list[str] = []

    async def once(process: Process) -> int:
        if process.argv[0] == "sh" and process.argv[-1].endswith("setup.sh"):
            runs.append(process.argv[-1])
            return len(runs) - 1
        return await fragile(process)

    setup = Environment(setup="setup.sh", setup_files=tree(setup__sh="true\n"))
    result, services = await trial(MemorySandboxProvider(once), task=make_task(environment=setup))
    assert len(runs) == 2
    assert (result.outcome, result.reason) == (Outcome.UNGRADED, Reason.GRADER_CRASHED)
    event = next(iter(services.store.events(result.trial, ["grading.probe"])))
    assert "setup script failed" in event.payload["pristine"]["said"]


async def test_a_probe_that_fails_once_is_no_evidence() -> None:
    probes: list[str] = []

    async def hiccup(process: Process) -> int:
        if process.argv[:2] == ("bash", "-c") and "echo" in process.argv[-1] and " bash" in process.argv[-1]:
            probes.append(process.argv[-1])
            if len(probes) == 1:
                return 126
        return await tiny_shell(process)

    async def solve(episode: Episode) -> None:
        await episode.sandbox.exec(["sh", "-c", "echo 42 > /app/answer"])

    result, _ = await trial(MemorySandboxProvider(hiccup), solve)
    assert len(probes) == 3
    assert result.outcome is Outcome.PASSED


async def test_an_engine_that_fails_meanwhile_is_the_engines_fault() -> None:
    away = Trouble("open", fault=lost(Reason.ENGINE_UNREACHABLE), purpose="pristine")
    result, _ = await trial(MemorySandboxProvider(fragile, troubles=[away]))
    assert (result.outcome, result.reason) == (Outcome.UNGRADED, Reason.ENGINE_UNREACHABLE)


async def test_in_a_fresh_container_nothing_is_asked() -> None:
    task = make_task()
    fresh = task.grading.model_copy(
        update={"environment": GradingEnvironment.FRESH, "artifacts": ("/app/answer",)},
    )
    provider = MemorySandboxProvider(fragile)
    result, _ = await trial(provider, task=task.model_copy(update={"grading": fresh}))
    assert result.outcome is Outcome.PASSED
    assert [sandbox.spec.purpose for sandbox in provider.sandboxes] == ["trial", "grading"]
