"""The chat client against a scripted transport, on virtual time."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import anyio
import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.billing.usage import normalise
from harness.gateway.openai import OpenAIChat
from harness.gateway.retrying import LONGEST_RETRY_AFTER_S, LONGEST_WAIT_S, FailedAttempt, retry_after_s, wait_s
from harness.records.chat import Attempt, ChatReply, ChatRequest
from harness.records.errors import ProviderFault
from harness.records.usage import Usage

pytestmark = pytest.mark.anyio

GOOD: dict[str, Any] = {
    "id": "resp-1",
    "model": "m-1",
    "choices": [{"message": {"role": "assistant", "content": "hi \ud83d"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
}
REQUEST = ChatRequest(model="m-1", messages=({"role": "user", "content": "lone \ud83d and \u2028"},))


def json_response(body: Any, status: int = 200, **headers: str) -> httpx.Response:
    return httpx.Response(status, content=json.dumps(body).encode(), headers=headers)


class Service:
    """Answers with what it was given, in order; an exception is raised as the network would."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers = list(answers)
        self.at_s: list[float] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        json.loads(request.content)
        self.at_s.append(anyio.current_time())
        answer = self.answers[min(len(self.at_s), len(self.answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer


async def ask(service: Service, **options: Any) -> tuple[ChatReply | ProviderFault, list[Attempt]]:
    attempts: list[Attempt] = []

    async def keep(attempt: Attempt) -> None:
        attempts.append(attempt)

    transport = httpx.MockTransport(service)
    async with OpenAIChat(
        "http://x/v1", "m-1", "key", normalise=normalise, transport=transport, clock=anyio.current_time, **options
    ) as model:
        try:
            return await model.chat(REQUEST, keep), attempts
        except ProviderFault as fault:
            return fault, attempts


async def test_a_reply_with_its_usage() -> None:
    reply, attempts = await ask(Service(json_response(GOOD)))
    assert isinstance(reply, ChatReply)
    assert (reply.content, reply.usage, reply.response_id) == ("hi \ud83d", Usage(input=10, output=2), "resp-1")
    assert [(a.number, a.status, a.charged) for a in attempts] == [(1, 200, True)]


@pytest.mark.parametrize(("said", "tier"), [("flex", "flex"), (None, None), ("", None), (3, None)])
async def test_a_reply_says_how_it_was_served(said: Any, tier: str | None) -> None:
    reply, _ = await ask(Service(json_response({**GOOD, "service_tier": said})))
    assert isinstance(reply, ChatReply)
    assert reply.service_tier == tier
    streamed, _ = await ask(Service(events({**PIECES[0], "service_tier": said}, *PIECES[1:])), stream=True)
    assert isinstance(streamed, ChatReply)
    assert streamed.service_tier == tier


async def test_retry_after_is_honoured() -> None:
    service = Service(json_response({}, 429, **{"retry-after": "7"}), json_response(GOOD))
    reply, attempts = await ask(service)
    assert isinstance(reply, ChatReply)
    assert service.at_s[1] - service.at_s[0] == pytest.approx(7)
    assert [(a.status, a.charged) for a in attempts] == [(429, False), (200, True)]
    assert attempts[1].waited_s == pytest.approx(7)


@pytest.mark.parametrize("status", [500, 503, 408, 529])
async def test_transient_failures_are_retried_and_all_recorded(status: int) -> None:
    service = Service(*[json_response({}, status)] * 3, json_response(GOOD))
    reply, attempts = await ask(service)
    assert isinstance(reply, ChatReply)
    assert [a.status for a in attempts] == [status] * 3 + [200]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_a_refusal_is_final(status: int) -> None:
    fault, attempts = await ask(Service(json_response({"error": "no"}, status)))
    assert isinstance(fault, ProviderFault)
    assert (fault.status, len(attempts)) == (status, 1)
    reason = f"the service answered {status} {httpx.codes.get_reason_phrase(status)}: no"
    assert str(fault).startswith(reason)
    assert str(fault).endswith("(http://x/v1/chat/completions)")
    if status == 401:
        assert "--api-key-env" in fault.remedy
    if status == 404:
        assert "/v1)" in fault.remedy


@pytest.mark.parametrize(
    ("refusal", "knows"),
    [
        ("Unsupported parameter: 'max_completion_tokens' is not known here", "max_tokens"),
        ("Unrecognized request argument supplied: max_completion_tokens", "max_tokens"),
    ],
)
async def test_a_parameter_the_service_does_not_know_is_renamed_once_and_for_all(refusal: str, knows: str) -> None:
    bodies: list[dict[str, Any]] = []

    def service(request: httpx.Request) -> httpx.Response:
        bodies.append(json.loads(request.content))
        if "max_completion_tokens" in bodies[-1]:
            return json_response({"error": {"message": refusal}}, 400)
        if "temperature" in bodies[-1]:
            return json_response({"error": {"message": "temperature is not supported with this model"}}, 400)
        return json_response(GOOD)

    async def keep(attempt: Attempt) -> None:
        pass

    asked = REQUEST.model_copy(update={"max_tokens": 5, "temperature": 0.0})
    async with OpenAIChat("http://x", "m-1", normalise=normalise, transport=httpx.MockTransport(service)) as model:
        await model.chat(asked, keep)
        await model.chat(asked, keep)
    assert [sorted({"max_tokens", "max_completion_tokens", "temperature"} & body.keys()) for body in bodies] == [
        ["max_completion_tokens", "temperature"],
        ["max_tokens", "temperature"],
        ["max_tokens"],
        ["max_tokens"],
    ]
    assert bodies[-1][knows] == 5


async def test_waits_are_those_before_each_attempt() -> None:
    slow = [json_response({}, 429, **{"retry-after": str(seconds)}) for seconds in (2, 3)]
    _, attempts = await ask(Service(*slow, json_response(GOOD)))
    assert [a.waited_s for a in attempts] == [0, 2, 3]


async def test_attempts_are_bounded() -> None:
    fault, attempts = await ask(Service(json_response({}, 500)), attempts=4)
    assert isinstance(fault, ProviderFault)
    assert len(attempts) == 4


async def test_a_lost_connection_may_have_been_charged_a_refused_one_was_not() -> None:
    _, attempts = await ask(Service(httpx.ReadError("gone"), httpx.ConnectError("refused"), json_response(GOOD)))
    assert [a.charged for a in attempts] == [None, False, True]


@pytest.mark.parametrize("body", [{}, [], {"choices": []}, {"choices": [{}]}, {"choices": [{"message": None}]}])
async def test_a_response_without_an_answer_is_a_failed_attempt_that_was_charged(body: Any) -> None:
    reply, attempts = await ask(Service(json_response(body), json_response(GOOD)))
    assert isinstance(reply, ChatReply)
    assert attempts[0].charged is True
    assert attempts[0].error


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_without_end_is_cut_and_no_answer(monkeypatch: pytest.MonkeyPatch, stream: bool) -> None:
    monkeypatch.setattr("harness.gateway.openai.LARGEST_BYTES", 100_000)
    taken = 0

    async def flood() -> AsyncIterator[bytes]:
        nonlocal taken
        while True:
            taken += 10_000
            yield b"x" * 10_000

    fault, attempts = await ask(Service(httpx.Response(200, content=flood())), stream=stream, attempts=1)
    assert isinstance(fault, ProviderFault)
    assert "larger than 100000 bytes" in str(fault)
    assert attempts[0].charged is None
    assert taken < 400_000


@pytest.mark.parametrize("content", [b'{"choices":' + b"[" * 100_000, b"\xff\xfe", b"<html>", b"", b"NaN"])
@pytest.mark.parametrize("stream", [False, True])
async def test_what_is_no_answer_is_the_services_fault(content: bytes, stream: bool) -> None:
    content = b"data: " + content + b"\n\n" if stream else content
    fault, _ = await ask(Service(httpx.Response(200, content=content)), stream=stream)
    assert isinstance(fault, ProviderFault)


@pytest.mark.parametrize(
    "choices",
    [
        5,
        "text",
        [5],
        [{"delta": 5}],
        [{"delta": {"tool_calls": 5}}],
        [{"delta": {"tool_calls": [5]}}],
        [{"delta": {"tool_calls": [{"index": "x"}]}}],
        [{"delta": {"tool_calls": [{"index": None}]}}],
        [{"delta": {"tool_calls": [{"function": {"name": 5}}]}}],
        [{"delta": {"tool_calls": [{"function": {"arguments": {"a": 1}}}]}}],
    ],
)
async def test_a_stream_of_another_shape_is_the_services_fault(choices: Any) -> None:
    fault, _ = await ask(Service(events({"id": "r", "choices": choices})), stream=True)
    assert isinstance(fault, ProviderFault)
    assert "another shape" in str(fault)


def events(*bodies: Any, done: bool = True) -> httpx.Response:
    lines = [f"data: {json.dumps(body)}\n\n" for body in bodies] + (["data: [DONE]\n\n"] if done else [])
    return httpx.Response(200, content="".join(lines).encode())


PIECES: list[dict[str, Any]] = [
    {"id": "r", "model": "m-1", "choices": [{"delta": {"content": "a"}}]},
    {"id": "r", "choices": [{"delta": {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "bash"}}]}}]},
    {"id": "r", "choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": '{"x'}}]}}]},
    {"id": "r", "choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": '": 1}'}}]}}]},
    {"id": "r", "choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 1}},
    {"id": "r", "choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 3}},
]


async def test_a_stream_is_put_together_with_its_last_usage() -> None:
    reply, _ = await ask(Service(events(*PIECES)), stream=True)
    assert isinstance(reply, ChatReply)
    assert reply.usage == Usage(input=5, output=3)
    assert (reply.tool_calls[0].name, reply.tool_calls[0].arguments) == ("bash", '{"x": 1}')


async def test_a_cut_stream_is_asked_again_and_its_charge_is_unknown() -> None:
    reply, attempts = await ask(Service(events(*PIECES[:3], done=False), events(*PIECES)), stream=True)
    assert isinstance(reply, ChatReply)
    assert [(a.charged, a.response_id) for a in attempts] == [(None, "r"), (True, "r")]


@given(st.integers(1, 200), st.floats(0, 1))
def test_waiting_is_positive_and_capped(made: int, jitter: float) -> None:
    assert 0 < wait_s(FailedAttempt("x"), made, lambda: jitter) <= LONGEST_WAIT_S
    assert wait_s(FailedAttempt("x", retry_after_s=120), made) == 120
    assert wait_s(FailedAttempt("x", retry_after_s=1e9), made) == LONGEST_RETRY_AFTER_S


def header(value: str) -> Callable[[], float | None]:
    return lambda: retry_after_s(httpx.Headers({"retry-after": value}))


def test_retry_after_as_a_date_or_nonsense() -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=30))
    asked = header(soon)()
    assert asked is not None
    assert 25 < asked <= 30
    assert header("soon")() is None
    assert header("nan")() is None
    assert header("-5")() == 0.0
