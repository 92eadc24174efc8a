"""What a solver may try, or stumble into, to get round its budgets, its record or its grade."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from harness.protocols import Episode, GradingCase
from harness.records.chat import Attempt, ChatReply, ChatRequest
from harness.records.errors import ProviderFault, Revoked
from harness.records.grade import Grade
from harness.records.task import Budget
from harness.records.usage import Usage
from harness.records.vocabulary import Outcome, Reason, StopReason
from harness.runner.run import RunControl
from harness.runner.services import Services
from tests.runner.scenes import FakeModel, Scripted, answer, carry_out, make_services, make_task, reply
from tests.runner.test_run import start, tasks_named

pytestmark = pytest.mark.anyio

GO = [{"role": "user", "content": "go"}]


async def fifty_at_once(episode: Episode) -> None:
    model = episode.model
    assert model is not None
    async with anyio.create_task_group() as group:
        for _ in range(50):
            group.start_soon(lambda: model.chat(GO))


@pytest.mark.parametrize(
    ("budget", "stop", "most"),
    [
        (Budget(steps=3), StopReason.STEPS, 3),
        (Budget(tokens=250), StopReason.TOKENS, 3),
        (Budget(cost_usd=250e-6), StopReason.COST, 3),
    ],
)
async def test_calls_at_the_same_time_do_not_slip_past_a_budget(budget: Budget, stop: StopReason, most: int) -> None:
    class Slow(FakeModel):
        async def chat(self, request: ChatRequest, on_attempt: Any) -> ChatReply:
            await anyio.sleep(1)
            return await super().chat(request, on_attempt)

    model = Slow([reply(100)])
    result = await carry_out(make_services(fifty_at_once, model=model), make_task(budget=budget), model="fake-1")
    assert result.stop is stop
    assert len(model.asked) <= most


async def test_a_made_up_cancellation_does_not_end_the_run() -> None:
    async def pretend(episode: Episode) -> None:
        await answer(episode)
        raise anyio.get_cancelled_exc_class()() if _on_asyncio() else RuntimeError("trio forbids it")

    summary = await start(make_services(pretend), tasks_named(4), concurrency=2)
    assert summary.stops == {StopReason.SOLVER_ERROR: 4}
    assert summary.outcomes[Outcome.PASSED] == 4


def _on_asyncio() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class TestOnAsyncio:
    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    async def test_a_made_up_cancellation_does_not_end_the_run(self) -> None:
        await test_a_made_up_cancellation_does_not_end_the_run()

    async def test_a_thread_that_outlives_its_trial_writes_nothing(self) -> None:
        refused: list[BaseException] = []

        async def late(episode: Episode) -> None:
            await episode.sandbox.exec("true")
            await asyncio.sleep(3)
            try:
                episode.note("late", {"x": 1})
            except BaseException as error:  # noqa: BLE001  # whatever it is, it must be refused
                refused.append(error)

        services = make_services(Scripted(late, isolation="thread"))
        await carry_out(services, make_task(budget=Budget(wall_s=0.2)))
        before = len(list(services.store.events("r1.0000.1")))
        await anyio.sleep(1.5)
        assert len(list(services.store.events("r1.0000.1"))) == before


async def test_notes_are_revoked_at_the_seal_and_large_ones_become_blobs() -> None:
    kept: list[Episode] = []

    async def note(episode: Episode) -> None:
        episode.note("plan", {"text": "x" * 100_000, "odd": object()})
        kept.append(episode)

    services = make_services(note)
    await carry_out(services)
    event = next(iter(services.store.events("r1.0000.1", ["solver.note"])))
    assert len(services.store.blob(event.blobs["note"])) > 100_000
    with pytest.raises(Revoked):
        kept[0].note("late", {})


async def test_output_of_a_command_cut_by_the_wall_budget_is_kept() -> None:
    async def slow(episode: Episode) -> None:
        await episode.sandbox.exec("echo before; sleep 1000")

    services = make_services(slow)
    result = await carry_out(services)
    assert (result.stop, result.seconds) == (StopReason.TIME, 60.0)
    done = next(iter(services.store.events("r1.0000.1", ["exec"])))
    assert done.payload["timed_out"]
    assert done.payload["stdout"]["text"] == "before\n"


async def test_charged_attempts_that_came_to_nothing_count_towards_budgets() -> None:
    class Cut(FakeModel):
        async def chat(self, request: ChatRequest, on_attempt: Any) -> ChatReply:
            usage = Usage(input=90, output=10)
            await on_attempt(Attempt(number=1, status=None, error="the stream was cut", usage=usage, charged=None))
            return await super().chat(request, on_attempt)

    async def chatty(episode: Episode) -> None:
        assert episode.model is not None
        for _ in range(9):
            await episode.model.chat(GO)

    services = make_services(chatty, model=Cut([reply(100)]))
    result = await carry_out(services, make_task(budget=Budget(tokens=500)), model="fake-1")
    assert result.stop is StopReason.TOKENS
    assert result.calls == 3


async def test_a_stream_that_was_cut_is_not_the_agents_fault() -> None:
    class Cut(FakeModel):
        async def chat(self, request: ChatRequest, on_attempt: Any) -> ChatReply:
            if not self.asked:
                await on_attempt(Attempt(number=1, status=None, error="the stream was cut", charged=None))
            return await super().chat(request, on_attempt)

    async def twice(episode: Episode) -> None:
        assert episode.model is not None
        for _ in range(2):
            await episode.model.chat(GO)
        await answer(episode)

    services = make_services(twice, model=Cut([reply(100)]))
    result = await carry_out(services, make_task(budget=Budget(tokens=5000, cost_usd=1.0)), model="fake-1")
    assert (result.outcome, result.stop) == (Outcome.PASSED, StopReason.FINISHED)
    assert (result.calls_without_usage, result.cost_usd) == (1, None)


async def test_a_service_that_answers_under_a_dated_name_is_priced_as_asked() -> None:
    def only_asked(model: str, usage: Usage, tier: str | None) -> float | None:
        return 1e-6 if model == "fake-1" else None

    dated = reply(100).model_copy(update={"model": "fake-1-2026-01-01"})

    async def once(episode: Episode) -> None:
        assert episode.model is not None
        await episode.model.chat(GO)

    services = make_services(once, model=FakeModel([dated]), price=only_asked)
    result = await carry_out(services, make_task(budget=Budget(cost_usd=1.0)), model="fake-1")
    assert (result.stop, result.cost_usd) == (StopReason.FINISHED, 1e-6)


@pytest.mark.parametrize("status", [400, 413, 422])
async def test_a_refusal_midway_of_what_the_agent_sent_is_its_own_error(status: int) -> None:
    async def too_long(episode: Episode) -> None:
        assert episode.model is not None
        for _ in range(3):
            await episode.model.chat(GO)

    fault = ProviderFault("context length exceeded", status=status)
    result = await carry_out(make_services(too_long, model=FakeModel([reply(), fault])), model="fake-1")
    assert (result.stop, result.outcome) == (StopReason.SOLVER_ERROR, Outcome.FAILED)


async def test_a_crash_after_acting_is_graded_so_that_crashing_does_not_pay() -> None:
    async def crash(episode: Episode) -> None:
        await episode.sandbox.exec("true")
        raise RuntimeError("hard task")

    result = await carry_out(make_services(crash))
    assert (result.stop, result.outcome) == (StopReason.SOLVER_ERROR, Outcome.FAILED)


class BadGrader:
    id = "script"
    version = "1"

    def __init__(self, act: Callable[[], Any]) -> None:
        self.act = act

    async def grade(self, case: GradingCase) -> Grade:
        await self.act()
        raise AssertionError


async def _raise() -> None:
    raise ValueError("bad grader")


@pytest.mark.parametrize(
    ("act", "reason"), [(_raise, Reason.GRADER_CRASHED), (anyio.sleep_forever, Reason.GRADER_TIMEOUT)]
)
async def test_a_grader_that_raises_or_hangs_is_ungraded_and_the_agent_is_not_asked_again(
    act: Callable[[], Any], reason: Reason
) -> None:
    made = make_services(answer)
    services = Services(**{**vars(made), "grader": lambda reference: BadGrader(act)})
    summary = await start(services, tasks_named(2))
    assert {line.reason for line in summary.trials} == {reason}
    assert summary.attempts == 2


async def test_two_conversations_of_one_solver_are_both_recorded() -> None:
    async def two(episode: Episode) -> None:
        assert episode.model is not None
        for name, count in (("a", 4), ("b", 5)):
            await episode.model.chat([{"role": "user", "content": f"{name}{number}"} for number in range(count)])

    services = make_services(two, model=FakeModel([reply()]))
    await carry_out(services, model="fake-1")
    said = "".join(str(e.payload["new_messages"]) for e in services.store.events("r1.0000.1", ["model.request"]))
    assert all(f"{name}{number}" in said for name, count in (("a", 4), ("b", 5)) for number in range(count))


async def test_an_interrupted_interaction_is_sealed_too() -> None:
    async def slow(episode: Episode) -> None:
        await anyio.sleep_forever()

    services, control = make_services(slow), RunControl()
    async with anyio.create_task_group() as group:

        async def interrupt() -> None:
            await anyio.sleep(5)
            control.interrupt()

        group.start_soon(interrupt)
        summary = await start(services, tasks_named(1), control)
    assert summary.stops == {StopReason.CANCELLED: 1}
    assert "seal" in [event.kind for event in services.store.events("r1.0000.1")]
