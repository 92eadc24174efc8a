"""What a service's list of models proves before a run, and what it leaves open."""

from __future__ import annotations

import json
from typing import Any

import anyio
import httpx
import pytest

from harness.billing.usage import normalise
from harness.gateway.checking import PAUSE_S, TRIES, fits, judge, listed
from harness.gateway.openai import OpenAIChat
from harness.records.errors import AssayError, ConfigError, EngineUnavailable

pytestmark = pytest.mark.anyio


def models(*names: str, **more: Any) -> httpx.Response:
    return httpx.Response(200, content=json.dumps({"data": [{"id": name} for name in names], **more}))


async def check(*answers: httpx.Response | Exception, model: str = "m-1", key: str | None = "k") -> list[httpx.Request]:
    """Check a service that gives these answers, the last again and again; what it was asked."""
    asked: list[httpx.Request] = []

    def service(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        answer = answers[min(len(asked), len(answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer

    transport = httpx.MockTransport(service)
    async with OpenAIChat("http://x/v1/", model, key, normalise=normalise, transport=transport) as client:
        await client.check()
    return asked


async def test_a_service_that_has_the_model_is_asked_once_for_its_list() -> None:
    (asked,) = await check(models("m-0", "m-1"))
    assert (asked.method, str(asked.url), asked.headers["authorization"]) == ("GET", "http://x/v1/models", "Bearer k")


async def test_a_model_that_it_does_not_have_is_refused_with_a_near_one() -> None:
    with pytest.raises(ConfigError, match=r"no model 'm-1' — did you mean 'm-12'\?") as caught:
        await check(models("m-12", "zebra"))
    assert "http://x/v1/models" in str(caught.value)
    with pytest.raises(ConfigError, match=r"it has a, b, c, d, e, … \(6 in all\)"):
        await check(models(*"abcdef"), model="zzz")


@pytest.mark.parametrize(("key", "words"), [("k", "refuses the API key"), (None, "wants an API key, and none is set")])
async def test_a_key_that_is_refused_is_a_matter_of_configuration(key: str | None, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        await check(httpx.Response(401, content=b'{"error": "bad key"}'), key=key)
    assert "bad key" in str(caught.value)
    assert "--api-key-env" in caught.value.remedy
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("error", [httpx.ConnectError("refused"), httpx.ConnectTimeout("slow"), httpx.ReadError("x")])
async def test_nobody_there_is_told_after_a_few_tries(error: Exception) -> None:
    began_s = anyio.current_time()
    with pytest.raises(EngineUnavailable, match="cannot be reached") as caught:
        await check(error)
    assert caught.value.exit_code == 5
    assert anyio.current_time() - began_s == pytest.approx((TRIES - 1) * PAUSE_S)
    assert len(await check(error, models("m-1"))) == 2


@pytest.mark.parametrize(
    "answer",
    [
        *(httpx.Response(status, content=b"no") for status in (301, 403, 404, 405, 429, 500, 501, 503)),
        httpx.ReadTimeout("it takes its time"),
        httpx.Response(200, content=b"<html>"),
        httpx.Response(200, content=b"[" * 100_000),
        httpx.Response(200, content=b'{"data": 3}'),
        httpx.Response(200, content=b'{"data": [3, {"id": null}]}'),
        models(),
        models("other", has_more=True),
    ],
)
async def test_what_proves_nothing_is_no_error(answer: httpx.Response | Exception) -> None:
    await check(answer)


async def test_a_list_without_end_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.gateway.checking.LARGEST_BYTES", 100)
    await check(models(*(f"other-{number}" for number in range(100))))


@pytest.mark.parametrize(
    ("name", "model", "same"),
    [
        ("gpt-5-mini", "gpt-5-mini", True),
        ("models/gemini-2.5-pro", "gemini-2.5-pro", True),
        ("llama3:latest", "llama3", True),
        ("openai/gpt-4o", "openai/gpt-4o:nitro", True),
        ("openai/*", "openai/anything", True),
        ("gpt-5", "gpt-5-mini", False),
        ("a/gpt-4o", "b/gpt-4o", False),
        ("GPT-5", "gpt-5", False),
    ],
)
def test_the_names_that_services_take(name: str, model: str, same: bool) -> None:
    assert fits(name, model) is same


def test_the_verdict_is_pure() -> None:
    assert listed(b'{"data": [{"id": "a"}]}') == ("a",)
    fault = judge(200, b'{"data": [{"id": "a"}]}', model="b", url="u", keyed=True)
    assert isinstance(fault, AssayError)
    assert judge(200, b'{"data": [{"id": "a"}]}', model="a", url="u", keyed=True) is None
