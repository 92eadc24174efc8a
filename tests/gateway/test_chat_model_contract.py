"""What every model service promises (`ChatModel`), and the model as a solver sees it (`SolverModel`)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

import anyio
import httpx
import pytest

from harness.billing.usage import normalise
from harness.gateway.openai import OpenAIChat
from harness.protocols import ChatModel, SolverModel
from harness.records.chat import Attempt, ChatReply, ChatRequest
from harness.records.errors import ProviderFault, StoreError
from harness.records.task import Budget
from harness.runner.handles import MeteredModel
from harness.runner.interaction import Interaction
from harness.runner.journal import Journal
from harness.simulation.population import SimulatedPopulation
from harness.simulation.service import SimulatedService
from harness.store.memory import MemoryStore
from harness.testing import ScriptedModel, calls, says
from tests.runner.scenes import FakeModel, priced, reply
from tests.simulation.worlds import make_tasks

pytestmark = pytest.mark.anyio

Opened = AbstractAsyncContextManager[ChatModel]
TASKS = make_tasks(3)
TOOL = {"type": "function", "function": {"name": "bash", "parameters": {"properties": {"command": {"type": "string"}}}}}
REQUEST = ChatRequest(
    model="sim-001",
    messages=({"role": "system", "content": "work"}, {"role": "user", "content": TASKS[0].instruction}),
    tools=(TOOL,),
)


@dataclass(frozen=True)
class Stand:
    """One implementation, as a service that answers every call and as one that answers none."""

    name: str
    answering: Callable[[], Opened]
    failing: Callable[[], Opened]


def body(number: int) -> dict[str, Any]:
    function = {"name": "bash", "arguments": '{"command": "ls"}'}
    return {
        "id": f"resp-{number}",
        "model": "sim-001",
        "choices": [
            {
                "message": {
                    "role": "assistant",
                    "content": "look",
                    "tool_calls": [{"id": f"call-{number}", "type": "function", "function": function}],
                },
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}},
    }


def streamed(number: int) -> bytes:
    whole = body(number)
    message = whole["choices"][0]["message"]
    call = {"index": 0, **message["tool_calls"][0]}
    events = [
        {**whole, "usage": None, "choices": [{"delta": {"content": message["content"], "tool_calls": [call]}}]},
        {**whole, "choices": [{"delta": {}, "finish_reason": "tool_calls"}]},
    ]
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events) + b"data: [DONE]\n\n"


def over_http(*, stream: bool, fails: bool) -> Opened:
    numbers = count(1)

    def service(request: httpx.Request) -> httpx.Response:
        if fails:
            return httpx.Response(503, content=b"busy")
        number = next(numbers)
        return httpx.Response(200, content=streamed(number) if stream else json.dumps(body(number)).encode())

    return OpenAIChat(
        "http://x/v1", "sim-001", normalise=normalise, stream=stream, transport=httpx.MockTransport(service)
    )


def simulated(*, stream: bool, fails: bool) -> Opened:
    app = SimulatedService(SimulatedPopulation(TASKS, agents=3, seed=7), TASKS, faults=0.0, seed=7).app()
    name = "sim-999" if fails else "sim-001"
    transport = httpx.ASGITransport(app)
    return OpenAIChat("http://sim/v1", name, normalise=normalise, stream=stream, transport=transport)


@asynccontextmanager
async def fake(*, fails: bool) -> AsyncIterator[ChatModel]:
    answers = [reply(12, response_id=f"resp-{number}") for number in range(20)]
    yield FakeModel([ProviderFault("no", status=500)] if fails else [*answers])


STANDS = (
    Stand("http", lambda: over_http(stream=False, fails=False), lambda: over_http(stream=False, fails=True)),
    Stand("http streamed", lambda: over_http(stream=True, fails=False), lambda: over_http(stream=True, fails=True)),
    Stand("simulated", lambda: simulated(stream=False, fails=False), lambda: simulated(stream=False, fails=True)),
    Stand(
        "simulated streamed", lambda: simulated(stream=True, fails=False), lambda: simulated(stream=True, fails=True)
    ),
    Stand("fake", lambda: fake(fails=False), lambda: fake(fails=True)),
)


@pytest.fixture(params=STANDS, ids=lambda stand: stand.name)
def stand(request: pytest.FixtureRequest) -> Stand:
    found: Stand = request.param
    return found


async def ask(model: ChatModel, request: ChatRequest = REQUEST) -> tuple[ChatReply, list[Attempt]]:
    attempts: list[Attempt] = []

    async def keep(attempt: Attempt) -> None:
        attempts.append(attempt)

    answer = await model.chat(request.model_copy(update={"model": model.name}), keep)
    return answer, attempts


async def test_it_says_who_it_is(stand: Stand) -> None:
    async with stand.answering() as model:
        assert model.name
        assert model.provider


async def test_an_answer_is_whole(stand: Stand) -> None:
    async with stand.answering() as model:
        answer, _ = await ask(model)
    assert answer.content or answer.tool_calls
    assert answer.usage is not None
    assert answer.usage.known
    assert answer.response_id
    assert answer.message.get("role", "assistant") == "assistant"
    for call in answer.tool_calls:
        assert call.id
        assert call.name == "bash"
        assert isinstance(json.loads(call.arguments), dict)


async def test_the_attempt_that_answered_is_told_before_the_answer(stand: Stand) -> None:
    async with stand.answering() as model:
        answer, attempts = await ask(model)
    assert [attempt.number for attempt in attempts] == list(range(1, len(attempts) + 1))
    last = attempts[-1]
    assert (last.error, last.charged, last.status) == (None, True, 200)
    assert (last.usage, last.response_id) == (answer.usage, answer.response_id)


async def test_an_answer_can_be_put_back_and_the_conversation_goes_on(stand: Stand) -> None:
    async with stand.answering() as model:
        answer, _ = await ask(model)
        results = [{"role": "tool", "tool_call_id": call.id, "content": "ok"} for call in answer.tool_calls]
        messages = (*REQUEST.messages, {"role": "assistant", **answer.message}, *results)
        again, attempts = await ask(model, REQUEST.model_copy(update={"messages": messages}))
    assert again.response_id != answer.response_id
    assert attempts[0].number == 1


async def test_no_answer_is_a_provider_fault_with_every_attempt_told(stand: Stand) -> None:
    attempts: list[Attempt] = []

    async def keep(attempt: Attempt) -> None:
        attempts.append(attempt)

    async with stand.failing() as model:
        with pytest.raises(ProviderFault):
            await model.chat(REQUEST.model_copy(update={"model": model.name}), keep)
    assert attempts
    assert [attempt.number for attempt in attempts] == list(range(1, len(attempts) + 1))
    assert all(attempt.error for attempt in attempts)
    assert all(attempt.charged is False for attempt in attempts)  # a refusal is known not to be on the invoice


async def test_a_fault_of_who_keeps_the_record_passes_through(stand: Stand) -> None:
    """What cannot be written down must end the trial: it is neither retried nor taken for the service's."""
    told: list[Attempt] = []

    async def broken(attempt: Attempt) -> None:
        told.append(attempt)
        raise StoreError("the disk is full")

    async with stand.answering() as model:
        with pytest.raises(StoreError, match="the disk is full"):
            await model.chat(REQUEST.model_copy(update={"model": model.name}), broken)
    assert len(told) == 1


async def test_calls_at_the_same_time_do_not_mix(stand: Stand) -> None:
    found: list[tuple[ChatReply, list[Attempt]]] = []

    async def one(model: ChatModel) -> None:
        found.append(await ask(model))

    async with stand.answering() as model, anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(one, model)
    assert len({answer.response_id for answer, _ in found}) == 5
    for answer, attempts in found:
        assert [attempt.response_id for attempt in attempts] == [answer.response_id]


# --- the model as a solver sees it ---


def metered(*lines: ChatReply | Exception) -> SolverModel:
    interaction = Interaction(Budget())
    interaction.open()
    return MeteredModel(FakeModel(list(lines)), interaction, Journal(MemoryStore(), "t"), priced)


HANDLES: dict[str, Callable[..., SolverModel]] = {"scripted": ScriptedModel, "metered": metered}


@pytest.mark.parametrize("make", HANDLES.values(), ids=HANDLES)
async def test_a_solver_gets_the_answers_in_order_and_faults_as_they_are(make: Callable[..., SolverModel]) -> None:
    lines = (says("one"), calls(("bash", {"command": "ls"})), ProviderFault("gone", status=500))
    model = make(*lines)
    assert model.name
    messages = [{"role": "user", "content": "go"}]
    before = json.dumps(messages)
    assert await model.chat(messages) == lines[0]
    assert await model.chat(messages, tools=(TOOL,), max_tokens=5, temperature=0.5) == lines[1]
    with pytest.raises(ProviderFault, match="gone"):
        await model.chat(messages)
    assert json.dumps(messages) == before
