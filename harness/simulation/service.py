"""The OpenAI-compatible service behind which a simulated population answers.

An answer is a function of agent, task and turn; which answers fail is one of those, the seed and how often this
very conversation was sent before, so that the next attempt may fare better. Only response ids differ from one
start of the service to the next: two answers that were both paid for never share one.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

import anyio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from harness.records.task import Task
from harness.simulation.population import SimulatedPopulation
from harness.simulation.script import Script
from harness.simulation.wire import Answer, Asked, BadRequest, make_answer

LONGEST_RETRY_AFTER_S = 0.3
LONGEST_DELAY_S = 0.5
CONVERSATIONS_REMEMBERED = 20_000


class Fault(StrEnum):
    """How an answer can go wrong."""

    BUSY = "busy"  # 429 with Retry-After
    BROKEN = "broken"  # 500
    SLOW = "slow"  # late, but whole
    CUT = "cut"  # the connection ends amid the answer


class CutOff(Exception):
    """Raised inside a response so that the server drops the connection, as told by a fault."""


class SimulatedService:
    """Answers chat requests for every agent of a population. `faults` is the share of answers that go wrong."""

    def __init__(
        self, population: SimulatedPopulation, tasks: Sequence[Task], *, faults: float = 0.0, seed: int = 0
    ) -> None:
        self.population = population
        self.script = Script(population, tasks)
        self.faults = faults
        self.seed = seed
        self._started = secrets.token_hex(6)
        self._answers = 0
        self._times_asked: OrderedDict[bytes, int] = OrderedDict()

    def app(self) -> Starlette:
        """The service as an ASGI application."""
        return Starlette(
            routes=[
                Route("/v1/chat/completions", self.chat, methods=["POST"]),
                Route("/v1/models", self.models, methods=["GET"]),
            ]
        )

    async def models(self, request: Request) -> Response:
        """Every agent, as a model."""
        data = [{"id": name, "object": "model", "created": 0, "owned_by": "assay"} for name in self.population.agents]
        return JSONResponse({"object": "list", "data": data})

    async def chat(self, request: Request) -> Response:
        """One chat completion."""
        raw = await request.body()
        try:
            try:
                body = json.loads(raw)
            except (ValueError, RecursionError) as error:
                raise BadRequest(f"the body is not JSON: {error}") from error
            asked = Asked.read(body)
            attempt = self._attempt(raw)
            answer, key = self.answer(asked)
        except BadRequest as wrong:
            return _error(wrong.status, str(wrong), wrong.code)
        return await self._sent(asked, answer, f"{key} {attempt}")

    def answer(self, asked: Asked) -> tuple[Answer, str]:
        """The answer to a request, and which one it is (agent, task, turn). Raises BadRequest."""
        if not self.population.knows(asked.model):
            remedy = self.population.near_agents(asked.model)
            raise BadRequest(f"no model is called {asked.model!r}; {remedy}", 404, "model_not_found")
        found = self.script.recogniser.locate(asked.messages)
        if found is None:
            raise BadRequest(
                "no message holds the instruction of a task of this suite word for word;"
                " is the service serving the suite that is run?",
                code="unknown_instruction",
            )
        task, given = found
        turn = sum(message.get("role") == "assistant" for message in asked.messages[given + 1 :])
        key = f"{asked.model} {task.id} {turn}"
        self._answers += 1
        reasoning = 16 + _fraction_of(160, f"{self.seed} reasoning {key}")
        said = self.script.next_turn(asked.model, task, turn)
        return make_answer(asked, said, f"chatcmpl-{self._started}-{self._answers:08x}", reasoning), key

    async def _sent(self, asked: Asked, answer: Answer, which: str) -> Response:
        fault = self.fault(which)
        amount = _unit(f"{self.seed} amount {which}")
        if fault is Fault.BUSY:
            wait_s = max(0.05, LONGEST_RETRY_AFTER_S * amount)
            return _error(429, "too many requests", "rate_limit_exceeded", {"retry-after": f"{wait_s:.2f}"})
        if fault is Fault.BROKEN:
            return _error(500, "the service has a fault, as it was told to", "server_error")
        if fault is Fault.SLOW:
            await anyio.sleep(LONGEST_DELAY_S * amount)
        if asked.stream:
            parts = list(answer.events(with_usage=asked.with_usage))
            media_type = "text/event-stream"
        else:
            parts = [json.dumps(answer.body).encode()]
            media_type = "application/json"
        if fault is Fault.CUT:
            whole = b"".join(parts)
            return StreamingResponse(_cut(whole[: len(whole) // 2]), media_type=media_type)
        if asked.stream:
            return StreamingResponse(_whole(parts), media_type=media_type)
        return Response(parts[0], media_type=media_type)

    def fault(self, which: str) -> Fault | None:
        """What goes wrong with one answer (agent, task, turn, attempt), if anything."""
        if _unit(f"{self.seed} fault {which}") >= self.faults:
            return None
        kinds = tuple(Fault)
        return kinds[_fraction_of(len(kinds), f"{self.seed} kind {which}")]

    def _attempt(self, raw: bytes) -> int:
        """How often these very bytes were sent, this time included. Without faults nobody needs to know."""
        if not self.faults:
            return 1
        key = hashlib.blake2b(raw, digest_size=16).digest()
        self._times_asked[key] = self._times_asked.pop(key, 0) + 1
        if len(self._times_asked) > CONVERSATIONS_REMEMBERED:
            self._times_asked.popitem(last=False)
        return self._times_asked[key]


async def _whole(parts: Sequence[bytes]) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def _cut(part: bytes) -> AsyncIterator[bytes]:
    yield part
    raise CutOff("the connection ends here, as told")


def _error(status: int, message: str, code: str, headers: Mapping[str, str] | None = None) -> Response:
    body: dict[str, Any] = {"error": {"message": message, "type": code, "code": code}}
    return JSONResponse(body, status, headers=headers)


def _unit(text: str) -> float:
    """A number in [0, 1) that belongs to a text."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2.0**64


def _fraction_of(count: int, text: str) -> int:
    """A whole number from 0 to `count` - 1 that belongs to a text."""
    return min(int(_unit(text) * count), count - 1)
