"""Solvers and services that fail: whose fault it is, and what is kept of it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass, replace

import anyio
import pytest

from harness.protocols import Episode, OnAttempt, Solver
from harness.records.chat import Attempt, ChatReply, ChatRequest
from harness.records.errors import ProviderFault
from harness.records.task import Budget, Grading
from harness.records.trial import SolverSpec
from harness.records.vocabulary import Outcome, Reason, StopReason
from harness.store.memory import MemoryStore
from harness.testing import MemorySandboxProvider
from tests.runner.scenes import (
    FakeModel,
    Scripted,
    answer,
    carry_out,
    make_services,
    make_task,
    nothing,
    reply,
    tree,
)

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "raised",
    [TimeoutError("mine"), RuntimeError("boom"), SystemExit(3), KeyboardInterrupt(), ProviderFault("not yours")],
)
async def test_a_solvers_own_exception_is_its_error_whatever_its_class(raised: BaseException) -> None:
    async def crash(episode: Episode) -> None:
        raise raised

    result = await carry_out(make_services(crash))
    assert (result.stop, result.outcome, result.reason) == (
        StopReason.SOLVER_ERROR,
        Outcome.UNGRADED,
        Reason.SOLVER_ERROR,
    )
    assert type(raised).__name__ in result.detail
    assert result.stop_detail == result.detail  # why it stopped is why there is no grade


async def test_a_crash_after_acting_keeps_the_exception_beside_the_grade() -> None:
    await crash_after_acting("inline")


async def crash_after_acting(isolation: str) -> None:
    """What must be told of a solver that acts, then raises, wherever it runs."""

    async def crash(episode: Episode) -> None:
        await episode.sandbox.exec("echo 41 > /app/answer")
        raise KeyError("lost\nand found")

    store = MemoryStore()
    task = make_task(grading=Grading(tests=tree(test__sh="echo '{}' > /logs/verifier/reward.json\n")))
    result = await carry_out(make_services(Scripted(crash, isolation=isolation), store=store), task)
    assert (result.stop, result.reason) == (StopReason.SOLVER_ERROR, Reason.VERDICT_EMPTY)
    assert result.stop_detail == "KeyError: 'lost\\nand found'"
    assert result.detail
    assert "KeyError" not in result.detail
    (ended,) = store.events(result.trial, ["interaction.ended"])
    assert "raise KeyError" in ended.payload["error"]
    assert "SolverCrash" not in ended.payload["error"]  # the solver's own traceback, not our wrapping


async def test_an_exception_that_cannot_be_told_is_still_told_of() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError

    async def crash(episode: Episode) -> None:
        raise Mute

    result = await carry_out(make_services(crash))
    assert (result.stop, result.stop_detail) == (
        StopReason.SOLVER_ERROR,
        "Mute: (its text cannot be had: ValueError)",
    )


@pytest.mark.parametrize("raised", [ValueError("cannot"), SystemExit("cannot")])
async def test_a_solver_that_cannot_be_made_is_its_own_error(raised: BaseException) -> None:
    def make(spec: SolverSpec) -> Solver:
        raise raised

    store = MemoryStore()
    result = await carry_out(replace(make_services(nothing, store=store), solver=make))
    assert (result.stop, result.outcome, result.reason) == (
        StopReason.SOLVER_ERROR,
        Outcome.UNGRADED,
        Reason.SOLVER_ERROR,
    )
    assert (result.detail, result.seconds) == (f"{type(raised).__name__}: cannot", 0.0)
    (unmade,) = store.events(result.trial, ["solver.unmade"])
    assert "raise raised" in unmade.payload["error"]


@dataclass
class Unreachable:
    """A service that asks to be left alone for longer than any budget."""

    name: str = "fake-1"
    provider: str = "fake"

    async def chat(self, request: ChatRequest, on_attempt: OnAttempt) -> ChatReply:
        await on_attempt(Attempt(number=1, status=429, error="429 for ever", duration_s=0.0, charged=False))
        await anyio.sleep(3600)
        raise AssertionError("the budget ends the wait")


async def test_a_provider_that_never_answers_is_no_fail_of_the_agent() -> None:
    async def gives_up(episode: Episode) -> None:
        assert episode.model is not None
        try:
            await episode.model.chat([{"role": "user", "content": "go"}])
        except ProviderFault:
            return

    refused = make_services(gives_up, model=FakeModel([ProviderFault("401", status=401)]))
    result = await carry_out(refused, model="fake-1")
    assert (result.outcome, result.reason, result.stop) == (
        Outcome.UNGRADED,
        Reason.PROVIDER,
        StopReason.INFRASTRUCTURE,
    )
    failing = make_services(gives_up, model=Unreachable())
    result = await carry_out(failing, model="fake-1", budget=Budget(wall_s=5.0))
    assert (result.outcome, result.reason, result.stop) == (
        Outcome.UNGRADED,
        Reason.PROVIDER,
        StopReason.INFRASTRUCTURE,
    )
    assert "no answer in 5.0 s: 429 for ever" in result.detail
    silent = make_services(gives_up, model=FakeModel([reply()]))
    assert (await carry_out(silent, model="fake-1")).outcome is Outcome.FAILED


@pytest.mark.parametrize("status", [400, 413, 422])
async def test_a_request_that_the_service_never_takes_is_a_reason_of_its_own(status: int) -> None:
    async def swallow(episode: Episode) -> None:
        assert episode.model is not None
        with contextlib.suppress(ProviderFault):
            await episode.model.chat([{"role": "user", "content": "go"}])

    async def insist(episode: Episode) -> None:
        while True:
            await swallow(episode)
            await anyio.sleep(1)

    for solver in (swallow, insist):
        model = FakeModel([ProviderFault("offer a tool", status=status)] * 10)
        result = await carry_out(make_services(solver, model=model), model="fake-1", budget=Budget(wall_s=5.0))
        assert (result.outcome, result.reason) == (Outcome.UNGRADED, Reason.PROVIDER_REFUSED)
        assert (result.stop, result.detail) == (StopReason.SOLVER_ERROR, "offer a tool")
    assert not Reason.PROVIDER_REFUSED.infrastructure  # and so no new attempt follows


class TestSolversInThreads:
    """Foreign solvers run in a thread with an event loop of their own; real time, kept short."""

    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    async def test_handles_work_across_the_thread(self) -> None:
        result = await carry_out(make_services(Scripted(answer, isolation="thread")))
        assert result.outcome is Outcome.PASSED

    async def test_a_blocking_solver_stalls_only_itself(self) -> None:
        async def block(episode: Episode) -> None:
            await episode.sandbox.exec("echo 42 > /app/answer")
            time.sleep(3.5)  # noqa: ASYNC251  # the point of the test
            await episode.sandbox.exec("echo late > /app/answer")

        services = make_services(Scripted(block, isolation="thread"))
        started = time.monotonic()
        result = await carry_out(services, make_task(budget=Budget(wall_s=0.3)))
        assert time.monotonic() - started < 3.2
        assert (result.outcome, result.stop) == (Outcome.PASSED, StopReason.TIME)
        await anyio.sleep(1.5)  # the abandoned thread wakes and finds its handles dead
        provider = services.provider
        assert isinstance(provider, MemorySandboxProvider)
        assert not any("late" in command.argv[-1] for command in provider.sandboxes[0].commands)

    async def test_a_crash_in_a_thread_is_told_as_one_on_the_loop(self) -> None:
        await crash_after_acting("thread")

    async def test_a_made_up_cancellation_is_the_solvers_error(self) -> None:
        async def pretend(episode: Episode) -> None:
            raise asyncio.CancelledError

        result = await carry_out(make_services(Scripted(pretend, isolation="thread")))
        assert result.stop is StopReason.SOLVER_ERROR
