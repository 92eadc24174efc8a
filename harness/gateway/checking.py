"""Whether a model service is there, takes the key and knows the model: one request that costs nothing.

`GET /models` is part of the OpenAI API, but not every service that speaks it has the route, lists all that it serves,
or lets every key see the list. So only what is certain is refused; what the answer leaves open the run will show.
"""

from __future__ import annotations

import difflib
import json
from typing import Any

import anyio
import httpx

from harness.gateway.refusals import said_in
from harness.records.errors import AssayError, ConfigError, EngineUnavailable

TIMEOUT = httpx.Timeout(10.0)
TRIES = 3
PAUSE_S = 1.0
LARGEST_BYTES = 16 * 1024 * 1024
MOST_NAMED = 5
WITHOUT = "--no-preflight runs without this check"


async def check_service(client: httpx.AsyncClient, base_url: str, model: str) -> None:
    """Ask a service for its models. Raises EngineUnavailable when nobody answers, ConfigError when it refuses the key
    or says that it has no such model."""
    url = base_url.rstrip("/") + "/models"
    answer = await _answer(client, url)
    if answer is not None:
        fault = judge(*answer, model=model, url=url, keyed="authorization" in client.headers)
        if fault is not None:
            raise fault


async def _answer(client: httpx.AsyncClient, url: str) -> tuple[int, bytes] | None:
    """Status and body; None from a service that is there and takes its time, or has no end."""
    for attempt in range(1, TRIES + 1):
        try:
            async with client.stream("GET", url, timeout=TIMEOUT) as response:
                body = b""
                async for piece in response.aiter_bytes():
                    body += piece
                    if len(body) > LARGEST_BYTES:
                        return None
                return response.status_code, body
        except (httpx.ReadTimeout, httpx.DecodingError):
            return None
        except httpx.RequestError as error:
            if attempt == TRIES:
                raise EngineUnavailable(
                    f"the model service cannot be reached: {type(error).__name__}: {error}",
                    place=url,
                    remedy="start it, or check --base-url (it usually ends in /v1)",
                ) from error
        await anyio.sleep(PAUSE_S)
    raise AssertionError("unreachable: the last try returns or raises")


def judge(status: int, body: bytes, *, model: str, url: str, keyed: bool) -> AssayError | None:
    """The fault that an answer to `GET /models` proves, or None. Pure."""
    if status == 401:
        said = said_in(body.decode("utf-8", "replace"))
        what = "refuses the API key" if keyed else "wants an API key, and none is set"
        remedy = f"check the variable that holds it (--api-key-env names another); {WITHOUT}"
        return ConfigError(f"the model service {what} (401): {said}", place=url, remedy=remedy)
    names = listed(body) if status == 200 else None
    if not names or any(fits(name, model) for name in names):
        return None
    near = difflib.get_close_matches(model, names, n=1)
    has = ", ".join(names[:MOST_NAMED]) + (f", … ({len(names)} in all)" if len(names) > MOST_NAMED else "")
    hint = f"did you mean {near[0]!r}?" if near else f"it has {has};"
    return ConfigError(f"the service has no model {model!r}", place=url, remedy=f"{hint} {WITHOUT}")


def listed(body: bytes) -> tuple[str, ...] | None:
    """The names in a list of models; None when it is none, or says that there are more."""
    try:
        plain: Any = json.loads(body)
    except (ValueError, RecursionError):
        return None
    entries = plain.get("data") if isinstance(plain, dict) else None
    if not isinstance(entries, list) or plain.get("has_more"):
        return None
    names = [entry.get("id") if isinstance(entry, dict) else None for entry in entries]
    return tuple(name for name in names if isinstance(name, str))


def fits(name: str, model: str) -> bool:
    """Whether a listed name may be what `model` asks for: services also take names without what stands before a slash
    (`models/gemini-…`) or after a colon (`llama3:latest`, `…:free`), and some list a wildcard."""
    known, asked = name.partition(":")[0], model.partition(":")[0]
    return "*" in name or known == asked or known.endswith(f"/{asked}") or asked.endswith(f"/{known}")
