"""What ends an interaction, and what it has cost by then."""

from __future__ import annotations

import contextlib

import anyio
import pytest

from harness.protocols import Episode
from harness.records.task import Budget, Limits
from harness.records.vocabulary import Outcome, StopReason
from harness.testing import MemorySandboxProvider
from tests.runner.scenes import (
    FakeModel,
    answer,
    carry_out,
    make_services,
    make_task,
    reply,
)

pytestmark = pytest.mark.anyio


async def test_wall_time_ends_the_interaction_and_what_is_there_is_graded() -> None:
    async def late(episode: Episode) -> None:
        await anyio.sleep(61)
        await episode.sandbox.exec("echo 42 > /app/answer")

    result = await carry_out(make_services(late))
    assert (result.outcome, result.stop) == (Outcome.FAILED, StopReason.TIME)
    assert result.seconds == pytest.approx(60, abs=0.01)

    async def early(episode: Episode) -> None:
        await answer(episode)
        await anyio.sleep_forever()

    result = await carry_out(make_services(early))
    assert (result.outcome, result.stop) == (Outcome.PASSED, StopReason.TIME)


async def test_a_command_is_cut_by_the_wall_budget() -> None:
    async def slow(episode: Episode) -> None:
        await episode.sandbox.exec("sleep 1000")

    result = await carry_out(make_services(slow))
    assert result.stop in (StopReason.TIME, StopReason.FINISHED)
    assert result.seconds is not None
    assert result.seconds <= 60.2


@pytest.mark.parametrize("asked", [-1.0, float("nan"), 1e12, 0.0])
async def test_a_models_own_limits_are_clamped(asked: float) -> None:
    async def greedy(episode: Episode) -> None:
        await episode.sandbox.exec("sleep 1000", timeout_s=asked)

    task = make_task(limits=Limits(command_s=7.0))
    services = make_services(greedy)
    await carry_out(services, task)
    provider = services.provider
    assert isinstance(provider, MemorySandboxProvider)
    assert provider.sandboxes[0].commands[0].timeout_s == 7.0


async def test_the_limit_that_was_met_is_told_beside_the_grade() -> None:
    async def busy(episode: Episode) -> None:
        while True:
            await episode.sandbox.exec("echo 42 > /app/answer")

    result = await carry_out(make_services(busy), make_task(budget=Budget(steps=2)))
    assert (result.stop, result.outcome) == (StopReason.STEPS, Outcome.PASSED)
    assert (result.stop_detail, result.detail) == ("2 of 2 steps taken", "")


async def test_an_overshooting_reply_is_kept_booked_and_ends_the_trial() -> None:
    async def chatty(episode: Episode) -> None:
        assert episode.model is not None
        while True:
            await episode.model.chat([{"role": "user", "content": "go"}])

    model = FakeModel([reply(990), reply(200)])
    services = make_services(chatty, model=model)
    result = await carry_out(services, make_task(budget=Budget(tokens=1000)), model="fake-1")
    assert result.stop is StopReason.TOKENS
    assert result.usage is not None
    assert result.usage.total == 1190
    assert result.outcome is Outcome.FAILED
    assert model.asked[1].max_tokens == 10
    calls = list(services.store.events("r1.0000.1", ["model.call"]))
    assert len(calls) == 2
    assert result.cost_usd == pytest.approx(1190e-6)


async def test_budgets_stop_a_solver_that_swallows_everything() -> None:
    async def deaf(episode: Episode) -> None:
        for _ in range(50):
            with contextlib.suppress(Exception):
                await episode.sandbox.exec("echo x >> /app/log")

    services = make_services(deaf)
    result = await carry_out(services, make_task(budget=Budget(steps=3)))
    assert (result.stop, result.steps) == (StopReason.STEPS, 3)
    provider = services.provider
    assert isinstance(provider, MemorySandboxProvider)
    assert len([c for c in provider.sandboxes[0].commands if "echo x" in c.argv[-1]]) == 3


@pytest.mark.parametrize("budget", [Budget(cost_usd=1.0), Budget(tokens=10_000)])
async def test_an_account_that_cannot_be_kept_stops_the_trial(budget: Budget) -> None:
    async def chatty(episode: Episode) -> None:
        assert episode.model is not None
        while True:
            await episode.model.chat([{"role": "user", "content": "go"}])

    services = make_services(chatty, model=FakeModel([reply(usage=False)]))
    result = await carry_out(services, make_task(budget=budget), model="fake-1")
    assert result.stop is (StopReason.COST if budget.cost_usd else StopReason.TOKENS)
    assert (result.calls, result.calls_without_usage, result.cost_usd) == (1, 1, None)
