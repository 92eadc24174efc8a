"""One trial on the in-memory twins, on virtual time."""

from __future__ import annotations

import contextlib

import pytest

from harness.protocols import Episode
from harness.records.task import Limits
from harness.records.vocabulary import Outcome, Reason, StopReason
from harness.testing import MemorySandboxProvider, Process, Trouble, lost
from tests.runner.scenes import (
    answer,
    carry_out,
    make_services,
    make_task,
    nothing,
)

pytestmark = pytest.mark.anyio


async def test_a_solution_passes_and_nothing_fails() -> None:
    assert (await carry_out(make_services(answer))).outcome is Outcome.PASSED
    failed = await carry_out(make_services(nothing))
    assert (failed.outcome, failed.stop, failed.reason) == (Outcome.FAILED, StopReason.FINISHED, None)
    assert failed.cost_usd == 0.0


async def test_a_command_that_would_finish_later_never_scores() -> None:
    async def slow(episode: Episode) -> None:
        result = await episode.sandbox.exec("sleep 20; echo 42 > /app/answer", timeout_s=5)
        assert result.timed_out

    result = await carry_out(make_services(slow))
    assert (result.outcome, result.stop) == (Outcome.FAILED, StopReason.FINISHED)


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        (Trouble("open", fault=lost(Reason.IMAGE_MISSING)), Reason.IMAGE_MISSING),
        (Trouble("exec", fault=lost()), Reason.CONTAINER_LOST),
        (Trouble("end_processes", fault=lost(Reason.ENGINE_UNREACHABLE)), Reason.ENGINE_UNREACHABLE),
        (Trouble("fetch", fault=lost(Reason.ENGINE_ERROR)), Reason.ENGINE_ERROR),
    ],
)
async def test_a_fault_below_the_solver_is_infrastructure(trouble: Trouble, reason: Reason) -> None:
    async def swallow(episode: Episode) -> None:
        with contextlib.suppress(Exception):
            await answer(episode)

    result = await carry_out(make_services(swallow, provider=MemorySandboxProvider(troubles=[trouble])))
    assert (result.outcome, result.reason) == (Outcome.UNGRADED, reason)


async def test_a_hanging_engine_is_ended_by_the_watchdog() -> None:
    provider = MemorySandboxProvider(troubles=[Trouble("health", hang=True)])
    result = await carry_out(make_services(answer, provider=provider))
    assert (result.outcome, result.reason) == (Outcome.UNGRADED, Reason.WATCHDOG)


async def test_memory_is_named_with_its_limit() -> None:
    def program(process: Process) -> int:
        if process.argv[-1].endswith("test.sh"):
            process.files.write("/logs/verifier/reward.txt", b"0")
            return 0
        return process.exhaust_memory()

    result = await carry_out(
        make_services(answer, provider=MemorySandboxProvider(program)), make_task(limits=Limits(memory_mb=64))
    )
    assert (result.outcome, result.reason) == (Outcome.FAILED, Reason.MEMORY_LIMIT)
    assert any("limit 64 MB" in flag for flag in result.flags)


async def test_secrets_never_reach_the_store() -> None:
    async def leak(episode: Episode) -> None:
        await episode.sandbox.exec("echo canary-1234; echo canary-1234 > /app/answer")
        raise RuntimeError("the key is canary-1234")

    services = make_services(leak, secrets={"API_KEY": "canary-1234"})
    result = await carry_out(services)
    text = result.model_dump_json() + "".join(event.model_dump_json() for event in services.store.events("r1.0000.1"))
    assert "canary-1234" not in text
    assert "[secret API_KEY]" in text
