"""What the in-memory twin has beyond the contract: virtual time, scripted programs, troubles, simulated processes."""

from __future__ import annotations

import anyio
import pytest
import trio.testing

from harness.records.errors import SandboxFault
from harness.records.execution import Command, ExecResult, SandboxSpec
from harness.records.task import FileTree, ImagePin, Limits, TreeFile
from harness.records.vocabulary import Reason
from harness.sandbox.memory import MemorySandbox, MemorySandboxProvider, Trouble, lost
from harness.sandbox.memory_process import Process

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "trio", {"clock": trio.testing.MockClock(autojump_threshold=0)}


def spec(trial: str = "t/1", purpose: str = "trial") -> SandboxSpec:
    pin = ImagePin(reference="assay-base:1", digest="sha256:" + "a" * 64)
    return SandboxSpec(run="r", trial=trial, purpose=purpose, image=pin, limits=Limits(), workdir="/app")


async def sh(sandbox: MemorySandbox, line: str, timeout_s: float = 60.0) -> ExecResult:
    return await sandbox.exec(Command(argv=("bash", "-c", line), timeout_s=timeout_s))


async def test_a_solution_and_a_test_script_run_as_they_would_in_bash() -> None:
    solve = b"#!/bin/bash\nset -e\necho 42 > answer\nmkdir -p out && cp answer 'out/a b'\n"
    check = b'grep -q 42 "/app/out/a b" && echo 1 > /logs/reward || echo 0 > /logs/reward\nexit $?\n'
    tree = FileTree(files=(TreeFile(path="solve.sh", content=solve), TreeFile(path="test.sh", content=check)))
    async with MemorySandboxProvider().open(spec()) as sandbox:
        await sandbox.put(tree, "/work", replace=True)
        for script in ("solve.sh", "test.sh"):
            result = await sandbox.exec(Command(argv=("bash", f"/work/{script}"), timeout_s=9))
            assert (result.exit_code, result.stderr.text) == (0, "")
        assert await sandbox.read("/logs/reward", max_bytes=9) == b"1\n"
        assert await sandbox.list("/app") == ("answer", "out", "out/a b")


async def test_an_unknown_command_is_not_found() -> None:
    async with MemorySandboxProvider().open(spec()) as sandbox:
        result = await sh(sandbox, "frobnicate || echo $?")
        assert result.stdout.text == "127\n"
        assert "frobnicate: command not found" in result.stderr.text


async def test_sleeping_takes_virtual_time_and_a_timeout_keeps_what_was_printed() -> None:
    async with MemorySandboxProvider().open(spec()) as sandbox:
        started_s = anyio.current_time()
        result = await sh(sandbox, "echo before; sleep 100; echo after > /late", timeout_s=30)
        assert anyio.current_time() - started_s == pytest.approx(30)
        assert (result.exit_code, result.timed_out, result.stdout.text) == (None, True, "before\n")
        assert "/late" not in sandbox.files


async def test_a_background_process_acts_until_it_is_ended() -> None:
    def program(process: Process) -> int:
        def tick(files: object) -> None:
            process.files["/log"] = process.files.get("/log", b"") + b"x"

        process.spawn("writer", tick, every_s=1.0, holds_stdio=True)
        return 0

    async with MemorySandboxProvider(program).open(spec()) as sandbox:
        result = await sandbox.exec(Command(argv=("serve",), timeout_s=5))
        assert result.stdio_held_open
        await anyio.sleep(3.5)
        assert await sandbox.read("/log", max_bytes=9) == b"xxx"
        assert (await sandbox.end_processes()).found == 1
        await anyio.sleep(60)
        assert await sandbox.read("/log", max_bytes=9) == b"xxx"


async def test_a_program_may_be_killed_for_memory() -> None:
    async with MemorySandboxProvider(lambda process: process.exhaust_memory()).open(spec()) as sandbox:
        result = await sh(sandbox, "hog")
        assert (result.exit_code, result.memory_killed) == (137, True)
        assert (await sandbox.health()).memory_killed


async def test_troubles_strike_the_call_they_are_told_to() -> None:
    provider = MemorySandboxProvider(
        troubles=[
            Trouble("exec", nth=2, fault=lost(), purpose="trial"),
            Trouble("read", delay_s=7.0),
            Trouble("open", trial="*/2", fault=lost(Reason.NETWORK_POOL)),
        ]
    )
    async with provider.open(spec(purpose="grading")) as other, provider.open(spec()) as sandbox:
        for _ in range(3):
            await sh(other, "true")
        await sh(sandbox, "echo hi > /x")
        with pytest.raises(SandboxFault) as caught:
            await sh(sandbox, "true")
        assert caught.value.reason == Reason.CONTAINER_LOST
        started_s = anyio.current_time()
        assert await sandbox.read("/x", max_bytes=9) == b"hi\n"
        assert anyio.current_time() - started_s == pytest.approx(7)
    with pytest.raises(SandboxFault) as caught:
        async with provider.open(spec(trial="t/2")):
            raise AssertionError("must not open")
    assert caught.value.reason == Reason.NETWORK_POOL
    assert provider.live == ()


async def test_a_container_that_died_answers_health_and_nothing_else() -> None:
    provider = MemorySandboxProvider(troubles=[Trouble("exec", nth=2, dies=True)])
    async with provider.open(spec()) as sandbox:
        await sh(sandbox, "true")
        for _ in range(2):
            with pytest.raises(SandboxFault):
                await sh(sandbox, "true")
        assert not (await sandbox.health()).running


async def test_a_failed_or_hanging_removal_is_left_over_and_changes_nothing() -> None:
    provider = MemorySandboxProvider(
        troubles=[Trouble("remove", trial="a", fault=lost()), Trouble("remove", trial="b", hang=True)]
    )
    for trial in ("a", "b"):
        async with provider.open(spec(trial=trial)):
            pass
    left = await provider.leftovers()
    assert [leftover.trial for leftover in left] == ["a", "b"]
    for leftover in left:
        await provider.remove(leftover)
    assert await provider.leftovers() == ()


async def test_a_started_image_of_another_digest_is_a_fault() -> None:
    provider = MemorySandboxProvider(digest="sha256:" + "b" * 64)
    with pytest.raises(SandboxFault) as caught:
        async with provider.open(spec()):
            raise AssertionError("must not open")
    assert caught.value.reason == Reason.IMAGE_MISMATCH
