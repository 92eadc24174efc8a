"""The service as its clients meet it: in process for its answers, over real HTTP for the whole of an episode."""

from __future__ import annotations

import json
import socket
import subprocess
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from harness.billing.prices import load_prices
from harness.billing.usage import normalise
from harness.gateway.openai import OpenAIChat
from harness.records.chat import Attempt, ChatReply, ChatRequest
from harness.records.errors import EngineUnavailable
from harness.records.execution import ExecResult
from harness.records.task import Task
from harness.simulation.population import Behaviour, SimulatedPopulation
from harness.simulation.running import PRICES, running_service
from harness.simulation.service import Fault, SimulatedService
from solvers.agent import BASH, Agent
from tests.simulation.worlds import make_tasks
from tests.solvers.scenes import Run, StageSandbox, make_episode, output

pytestmark = pytest.mark.anyio

TASKS = make_tasks(60)
POPULATION = SimulatedPopulation(TASKS)
AGENT = "sim-042"


@pytest.fixture
def anyio_backend() -> str:
    """Real sockets need real time."""
    return "asyncio"


def one_where(behaviour: Behaviour) -> Task:
    return next(task for task in TASKS if POPULATION.behaviour(AGENT, task.id) is behaviour)


def asking(task: Task = TASKS[0], **changes: Any) -> dict[str, Any]:
    messages = [{"role": "system", "content": "Act."}, {"role": "user", "content": task.instruction}]
    return {"model": AGENT, "messages": messages, "tools": [BASH], **changes}


@asynccontextmanager
async def client(**options: Any) -> AsyncIterator[httpx.AsyncClient]:
    app = SimulatedService(POPULATION, TASKS, **options).app()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://sim/v1") as opened:
        yield opened


async def ask(opened: httpx.AsyncClient, body: Any) -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return await opened.post("/chat/completions", content=content)


async def test_the_models_are_the_agents() -> None:
    async with client() as opened:
        listed = (await opened.get("/models")).json()
    assert [model["id"] for model in listed["data"]] == list(POPULATION.agents)


async def test_an_answer_has_all_that_a_client_looks_for() -> None:
    async with client() as opened:
        first = (await ask(opened, asking())).json()
        second = (await ask(opened, asking())).json()
    assert first["object"] == "chat.completion"
    assert first["model"] == AGENT
    assert first["id"] != second["id"]  # both were paid for
    (choice,) = first["choices"]
    assert choice["finish_reason"] == "tool_calls"
    (call,) = choice["message"]["tool_calls"]
    assert call["function"]["name"] == "bash"
    assert isinstance(json.loads(call["function"]["arguments"])["command"], str)
    assert first["usage"] == second["usage"]


async def test_usage_grows_with_the_conversation_and_reads_what_was_sent_before_from_the_cache() -> None:
    body = asking(messages=[{"role": "system", "content": "word " * 2000}, *asking()["messages"][1:]])
    seen = []
    async with client() as opened:
        for _ in range(3):
            answer = (await ask(opened, body)).json()
            seen.append(normalise(answer["usage"]))
            message = answer["choices"][0]["message"]
            result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "x" * 4000}
            body["messages"] += [message, result]
    usages = [usage for usage in seen if usage is not None]
    assert len(usages) == 3
    assert usages[0].cache_read == 0
    assert 2500 < (usages[0].input or 0) < 2700
    assert 2400 < (usages[1].cache_read or 0) <= (usages[0].input or 0)
    assert 1000 < (usages[1].input or 0) < 1400  # the message that the agent said, and the result
    assert all(usage.output and usage.reasoning for usage in usages)


REFUSED = [
    (b"{", 400, "not JSON"),
    (b"[" * 100_000, 400, "not JSON"),
    (b"\xff", 400, "not JSON"),
    ([], 400, "no JSON object"),
    ({}, 400, "`model` is missing"),
    (asking(messages=[]), 400, "`messages`"),
    (asking(messages=["x"]), 400, "`messages`"),
    (asking(max_tokens=0), 400, "`max_tokens`"),
    (asking(max_tokens=True), 400, "`max_tokens`"),
    (asking(model="sim-42"), 404, "did you mean 'sim-"),
    (asking(model="gpt"), 404, "they are sim-000 … sim-299"),
    (asking(messages=[{"role": "user", "content": "Something else."}]), 400, "no message holds the instruction"),
    (asking(tools=[]), 400, "offer a tool"),
    (
        asking(tools=[{"type": "function", "function": {"name": "think", "parameters": {"properties": {}}}}]),
        400,
        "offer",
    ),
    (asking(tools=[None, {"function": None}, {"function": {"name": "x", "parameters": None}}]), 400, "offer a tool"),
]


@pytest.mark.parametrize(("body", "status", "told"), REFUSED)
async def test_what_cannot_be_answered_is_refused_in_words(body: Any, status: int, told: str) -> None:
    async with client() as opened:
        response = await ask(opened, body)
    assert response.status_code == status
    assert told in response.json()["error"]["message"]


async def test_another_tool_that_takes_a_command_is_used_as_it_is_named() -> None:
    parameters: dict[str, Any] = {"properties": {"cmd": {}, "timeout": {}}}
    tools = [
        {"function": {"name": "think", "parameters": {"properties": {}}}},
        {"function": {"name": "sh", "parameters": parameters}},
    ]
    task = one_where(Behaviour.REFERENCE)
    messages = [*asking(task)["messages"], *[{"role": "assistant", "content": "…"}] * 3]
    async with client() as opened:
        answer = (await ask(opened, asking(task, tools=tools, messages=messages))).json()
    function = answer["choices"][0]["message"]["tool_calls"][0]["function"]
    assert function["name"] == "sh"
    assert set(json.loads(function["arguments"])) == {"cmd", "timeout"}


async def test_a_token_limit_cuts_the_answer_and_says_so() -> None:
    async with client() as opened:
        for limit in (1, 30, 200):
            answer = (await ask(opened, asking(max_completion_tokens=limit))).json()
            whole = answer["choices"][0]["finish_reason"] == "tool_calls"
            assert answer["usage"]["completion_tokens"] <= limit
            assert whole == (limit == 200)
        cut = (await ask(opened, asking(max_tokens=answer["usage"]["completion_tokens"] - 1))).json()
    assert cut["choices"][0]["finish_reason"] == "length"
    with pytest.raises(json.JSONDecodeError):
        json.loads(cut["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"])


async def outcomes_of(bodies: Sequence[Any], **options: Any) -> list[tuple[int, str | None, Any]]:
    """Status, Retry-After and what was said, asking for each body three times; a cut answer has status 0."""
    seen: list[tuple[int, str | None, Any]] = []
    async with client(**options) as opened:
        for body in [*bodies, *bodies, *bodies]:
            try:
                response = await ask(opened, body)
            except Exception as error:  # noqa: BLE001  # in process, a dropped connection is what the app raised
                seen.append((0, None, type(error).__name__))
                continue
            said = None
            if response.status_code == 200:
                message = response.json()["choices"][0]["message"]
                said = (message["content"], [call["function"] for call in message.get("tool_calls", ())])
            seen.append((response.status_code, response.headers.get("retry-after"), said))
    return seen


async def test_faults_come_at_their_rate_by_seed_and_another_attempt_may_fare_better(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr("harness.simulation.service.anyio.sleep", sleep)
    bodies = [asking(task) for task in TASKS] + [asking(task, model="sim-007") for task in TASKS]
    seen = await outcomes_of(bodies, faults=0.4, seed=1)
    assert seen == await outcomes_of(bodies, faults=0.4, seed=1)
    assert seen != await outcomes_of(bodies, faults=0.4, seed=2)
    count = Counter(status for status, _, _ in seen)
    assert set(count) == {0, 200, 429, 500}
    for status in (0, 429, 500):
        assert 0.06 < count[status] / len(seen) < 0.14
    assert all((retry is not None and 0.05 <= float(retry) <= 0.3) == (status == 429) for status, retry, _ in seen)
    assert waited
    assert max(waited) <= 0.5
    first, second = seen[: len(bodies)], seen[len(bodies) : 2 * len(bodies)]
    assert any(a[0] != 200 and b[0] == 200 for a, b in zip(first, second, strict=True))
    without = await outcomes_of(bodies[:20])
    assert {status for status, _, _ in without} == {200}


async def test_all_kinds_of_faults_and_none() -> None:
    service = SimulatedService(POPULATION, TASKS, faults=1.0)
    assert {service.fault(f"{number}") for number in range(99)} == set(Fault)
    assert {SimulatedService(POPULATION, TASKS).fault(f"{number}") for number in range(99)} == {None}


# --- over real HTTP ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    with running_service(POPULATION, TASKS) as url:
        yield url


@dataclass
class OverHTTP:
    """A :class:`harness.protocols.SolverModel` straight over the client, without budget or records."""

    inner: OpenAIChat
    attempts: list[Attempt] = field(default_factory=list)
    replies: list[ChatReply] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.inner.name

    async def chat(
        self,
        messages: Sequence[dict[str, Any]],
        *,
        tools: Sequence[dict[str, Any]] = (),
        max_tokens: int | None = None,
        temperature: float | None = None,
    ) -> ChatReply:
        async def keep(attempt: Attempt) -> None:
            self.attempts.append(attempt)

        request = ChatRequest(model=self.name, messages=tuple(messages), tools=tuple(tools), max_tokens=max_tokens)
        self.replies.append(await self.inner.chat(request, keep))
        return self.replies[-1]


@dataclass
class Here:
    """Runs commands with bash in a folder."""

    folder: Path

    def __call__(self, command: str | Sequence[str]) -> ExecResult:
        assert isinstance(command, str)
        told = subprocess.run(["bash", "-c", command], cwd=self.folder, capture_output=True, check=False, timeout=30)
        return output(told.stdout, told.stderr.decode(), exit_code=told.returncode)


async def episode(url: str, task: Task, run: Run, *, stream: bool = False) -> OverHTTP:
    async with OpenAIChat(url, AGENT, normalise=normalise, stream=stream, attempts=20) as inner:
        model = OverHTTP(inner)
        await Agent().run(make_episode(StageSandbox(run), model, instruction=task.instruction))
        return model


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("behaviour", [Behaviour.REFERENCE, Behaviour.WRONG])
async def test_an_agent_does_over_http_what_the_truth_says(
    base_url: str, tmp_path: Path, behaviour: Behaviour, stream: bool
) -> None:
    task = one_where(behaviour)
    model = await episode(base_url, task, Here(tmp_path), stream=stream)
    right = (tmp_path / "answer").read_text().strip() == str(int(task.id[-3:]))
    assert right == POPULATION.passes(AGENT, task.id)
    assert all(attempt.charged and attempt.usage and attempt.usage.known for attempt in model.attempts)
    assert len({attempt.response_id for attempt in model.attempts}) == len(model.attempts)


async def test_a_stream_says_what_a_whole_answer_says(base_url: str) -> None:
    task = one_where(Behaviour.REFERENCE)

    def constant(command: object) -> ExecResult:
        return output("a\n")

    whole, streamed = [await episode(base_url, task, constant, stream=stream) for stream in (False, True)]

    def said(model: OverHTTP) -> list[Any]:
        return [
            (r.content, [(c.name, c.arguments) for c in r.tool_calls], r.finish_reason, r.usage) for r in model.replies
        ]

    assert said(whole) == said(streamed)


@pytest.mark.parametrize("stream", [False, True])
async def test_faults_cost_attempts_but_change_no_outcome(tmp_path: Path, stream: bool) -> None:
    with running_service(POPULATION, TASKS, faults=0.4, seed=5) as url:
        for task in [task for task in TASKS if POPULATION.passes(AGENT, task.id)][:3]:
            model = await episode(url, task, Here(tmp_path), stream=stream)
            assert (tmp_path / "answer").read_text().strip() == str(int(task.id[-3:]))
            failed = [attempt for attempt in model.attempts if attempt.error]
            assert len(model.attempts) == len(model.replies) + len(failed)
            if any(attempt.status is None for attempt in failed):
                break
        else:
            pytest.fail("no answer was cut, at this seed")
    cut = next(attempt for attempt in failed if attempt.status is None)
    assert cut.charged is None


async def test_it_ends_with_its_context_and_frees_its_port() -> None:
    with running_service(POPULATION, TASKS) as url:
        port = int(url.split(":")[2].split("/")[0])
        async with httpx.AsyncClient() as opened:
            assert (await opened.get(f"{url}/models")).status_code == 200
            with pytest.raises(EngineUnavailable, match="cannot listen"), running_service(POPULATION, TASKS, port=port):
                pass
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0
    with running_service(POPULATION, TASKS, port=port) as again:
        assert again == url


async def test_no_answer_waits_for_an_acknowledgement(base_url: str) -> None:
    """Headers and body are two packets; with Nagle's algorithm the second waits 40 ms on an idle machine."""
    async with httpx.AsyncClient() as opened:
        seconds = []
        for _ in range(20):
            response = await opened.post(f"{base_url}/chat/completions", json=asking())
            seconds.append(response.elapsed.total_seconds())
    assert min(seconds) < 0.02


def test_every_agent_has_a_price_and_nobody_else() -> None:
    prices = load_prices(PRICES)
    assert all(prices.price(agent) is not None for agent in POPULATION.agents)
    assert prices.price("gpt-sim-042") is None
