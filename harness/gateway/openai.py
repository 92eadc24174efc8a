"""Any OpenAI-compatible chat service over HTTP: retries what may pass, reports every attempt, invents nothing."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, Self

import anyio
import httpx
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt

from harness.gateway.checking import check_service
from harness.gateway.refusals import said_in
from harness.gateway.retrying import FailedAttempt, retry_after_s, wait_s
from harness.gateway.wire import Normalise, StreamedReply, read_reply, refused_parameter, request_body
from harness.protocols import OnAttempt
from harness.records.chat import Attempt, ChatReply, ChatRequest
from harness.records.errors import ProviderFault

TIMEOUT = httpx.Timeout(600.0, connect=15.0)
LIMITS = httpx.Limits(max_connections=64, max_keepalive_connections=64)
LARGEST_BYTES = 32 * 1024 * 1024  # of one answer, decoded: a long one has a hundredth of it
REMEDIES = {
    401: "check the API key (--api-key-env names the variable that holds it)",
    403: "the key may not use this model",
    404: "check --model and --base-url (it usually ends in /v1)",
}


@dataclass(frozen=True)
class _Answer:
    """What one attempt brought: a reply, or a failure with what is known of its cost."""

    reply: ChatReply | None = None
    failed: FailedAttempt | None = None
    response_id: str | None = None
    usage: Any = None
    charged: bool | None = None


class OpenAIChat:
    """A :class:`harness.protocols.ChatModel` at `base_url`; shared by all trials of a run. Close it with `aclose`.

    `normalise` turns the service's usage object into disjoint buckets. `attempts` counts the first one.
    """

    provider = "openai-compatible"

    def __init__(
        self,
        base_url: str,
        model: str,
        api_key: str | None = None,
        *,
        normalise: Normalise,
        attempts: int = 6,
        stream: bool = False,
        transport: httpx.AsyncBaseTransport | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = model
        self._base_url = base_url
        self._url = base_url.rstrip("/") + "/chat/completions"
        self._normalise = normalise
        self._attempts = attempts
        self._stream = stream
        self._clock = clock
        self._renamed: dict[str, str | None] = {}
        headers = {"content-type": "application/json"}
        if api_key:
            headers["authorization"] = f"Bearer {api_key}"
        self._client = httpx.AsyncClient(headers=headers, timeout=TIMEOUT, limits=LIMITS, transport=transport)

    async def check(self) -> None:
        """Before anything is spent: is the service there, does it take the key, does it know the model? Raises
        EngineUnavailable or ConfigError; what a service leaves open is no error."""
        await check_service(self._client, self._base_url, self.name)

    async def chat(self, request: ChatRequest, on_attempt: OnAttempt) -> ChatReply:
        """As the protocol says. Raises ProviderFault with the last status and a remedy."""
        try:
            async for attempt in AsyncRetrying(
                stop=stop_after_attempt(self._attempts),
                wait=_wait,
                retry=retry_if_exception(_worth_retrying),
                sleep=anyio.sleep,
                reraise=True,
            ):
                with attempt:
                    return await self._attempt(request, attempt.retry_state, on_attempt)
        except FailedAttempt as failed:
            raise ProviderFault(
                str(failed), place=self._url, remedy=REMEDIES.get(failed.status or 0, ""), status=failed.status
            ) from failed
        raise AssertionError("unreachable: the loop returns or raises")

    async def _attempt(self, request: ChatRequest, state: RetryCallState, on_attempt: OnAttempt) -> ChatReply:
        waited_s = state.upcoming_sleep if state.attempt_number > 1 else 0.0
        started_s = self._clock()
        body = request_body(request, stream=self._stream, renamed=self._renamed)
        answer = await (self._ask_streamed(body) if self._stream else self._ask(body))
        reply = answer.reply
        usage = reply.usage if reply is not None else self._normalise(answer.usage)
        await on_attempt(
            Attempt(
                number=state.attempt_number,
                status=200 if answer.failed is None else answer.failed.status,
                error=None if answer.failed is None else str(answer.failed),
                duration_s=self._clock() - started_s,
                waited_s=waited_s,
                response_id=reply.response_id if reply is not None else answer.response_id,
                usage=usage,
                charged=answer.charged,
            )
        )
        if reply is not None:
            return reply
        assert answer.failed is not None
        if answer.failed.status == 400 and self._learns_from(answer.failed):
            answer.failed.status = None  # asked again, without what the service does not know
        raise answer.failed

    def _learns_from(self, failed: FailedAttempt) -> bool:
        """Whether the refusal names a parameter that can be renamed or left out from now on."""
        found = refused_parameter(failed.body, self._renamed)
        if found is not None:
            self._renamed[found[0]] = found[1]
        return found is not None

    async def _ask(self, body: bytes) -> _Answer:
        try:
            async with self._client.stream("POST", self._url, content=body) as response:
                content = b"".join([piece async for piece in _bounded(response)])
        except FailedAttempt as failed:
            return _Answer(failed=failed)
        except httpx.ConnectError as error:
            return _Answer(failed=_no_response(error), charged=False)
        except httpx.RequestError as error:
            return _Answer(failed=_no_response(error))  # it may have been answered, and charged
        if response.status_code != 200:
            return _Answer(failed=_refused(response, content.decode("utf-8", "replace")), charged=False)
        try:
            parsed = json.loads(content)
        except (ValueError, RecursionError) as error:
            return _Answer(failed=FailedAttempt(f"the response is not JSON: {error}", status=200))
        return self._read(parsed)

    async def _ask_streamed(self, body: bytes) -> _Answer:
        streamed = StreamedReply()
        try:
            async with self._client.stream("POST", self._url, content=body) as response:
                if response.status_code != 200:
                    text = b"".join([piece async for piece in _bounded(response)]).decode("utf-8", "replace")
                    return _Answer(failed=_refused(response, text), charged=False)
                async for line in _lines(response):
                    streamed.feed(line)
        except httpx.ConnectError as error:
            return _Answer(failed=_no_response(error), charged=False)
        except (httpx.RequestError, FailedAttempt) as error:
            failed = error if isinstance(error, FailedAttempt) else _no_response(error)
            return _Answer(failed=failed, response_id=streamed.response_id, usage=streamed.usage)
        if not streamed.done:
            cut = FailedAttempt("the stream was cut before its end")
            return _Answer(failed=cut, response_id=streamed.response_id, usage=streamed.usage)
        return self._read(streamed.body)

    def _read(self, body: Any) -> _Answer:
        try:
            return _Answer(reply=read_reply(body, self.provider, self._normalise), charged=True)
        except FailedAttempt as failed:
            usage = body.get("usage") if isinstance(body, dict) else None
            response_id = body.get("id") if isinstance(body, dict) else None
            known = response_id if isinstance(response_id, str) else None
            return _Answer(failed=failed, response_id=known, usage=usage, charged=True)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()


async def _bounded(response: httpx.Response) -> AsyncIterator[bytes]:
    """The decoded body piece by piece. Raises FailedAttempt beyond LARGEST_BYTES: answers have an end."""
    size = 0
    async for piece in response.aiter_bytes(65_536):
        size += len(piece)
        if size > LARGEST_BYTES:
            raise FailedAttempt(f"the answer is larger than {LARGEST_BYTES} bytes", status=200)
        yield piece


async def _lines(response: httpx.Response) -> AsyncIterator[str]:
    rest = b""
    async for piece in _bounded(response):
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield line.decode("utf-8", "replace").rstrip("\r")
    yield rest.decode("utf-8", "replace").rstrip("\r")


def _worth_retrying(error: BaseException) -> bool:
    return isinstance(error, FailedAttempt) and error.transient


def _wait(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome is not None else None
    assert isinstance(error, FailedAttempt)
    return wait_s(error, state.attempt_number)


def _no_response(error: Exception) -> FailedAttempt:
    return FailedAttempt(f"no response: {type(error).__name__}: {error}")


def _refused(response: httpx.Response, text: str) -> FailedAttempt:
    message = f"the service answered {response.status_code} {response.reason_phrase}: {said_in(text)}"
    return FailedAttempt(message, status=response.status_code, retry_after_s=retry_after_s(response.headers), body=text)
