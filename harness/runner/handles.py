"""The handles a solver holds: a sandbox and a model, each action recorded, counted against the budget, revocable."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio

from harness.billing.account import PriceOf
from harness.protocols import ChatModel, Sandbox
from harness.records.base import canonical_json, digest_of
from harness.records.chat import Attempt, ChatReply, ChatRequest
from harness.records.errors import ProviderFault
from harness.records.execution import Command, ExecResult
from harness.records.task import FileTree, Task
from harness.records.usage import Usage
from harness.records.vocabulary import Actor
from harness.runner.budget import after_call, before_call, before_command, clamp_s
from harness.runner.interaction import Interaction
from harness.runner.journal import Journal

EXEC_NOT_FOUND = (126, 127)


@dataclass
class RecordedSandbox:
    """The sandbox as a solver sees it (:class:`harness.protocols.SolverSandbox`)."""

    inner: Sandbox
    interaction: Interaction
    journal: Journal
    task: Task
    actor: Actor
    _shell: str = "bash"

    async def exec(
        self,
        command: str | Sequence[str],
        *,
        timeout_s: float | None = None,
        env: Mapping[str, str] | None = None,
        workdir: str | None = None,
        stdin: bytes | None = None,
    ) -> ExecResult:
        with self.interaction.passage():
            self.interaction.demand(before_command(self.interaction.budget, self.interaction.spent))
            self.interaction.spent = self.interaction.spent.with_command()
            limit_s = clamp_s(timeout_s, self.task.limits.command_s, self.interaction.remaining().wall_s)

            def asked(argv: tuple[str, ...]) -> Command:
                return Command(
                    argv=argv,
                    timeout_s=limit_s,
                    env=dict(env or {}),
                    workdir=workdir or self.task.environment.workdir,
                    user=self.task.environment.user,
                    stdin=stdin,
                    output_bytes=self.task.limits.output_bytes,
                )

            if not isinstance(command, str):
                return await self._run(asked(tuple(command)))
            result = await self._run(asked((self._shell, "-c", command)))
            if self._shell == "bash" and _shell_is_missing(result):
                self._shell = "sh"
                self.interaction.spent = self.interaction.spent.with_command()
                result = await self._run(asked(("sh", "-c", command)))
            return result

    async def put(self, tree: FileTree, dest: str) -> None:
        with self.interaction.passage():
            await self.inner.put(tree, dest)
            self.journal.note("put", {"dest": dest, "files": tree.digests()}, actor=self.actor)

    async def read(self, path: str, *, max_bytes: int = 1_048_576) -> bytes:
        with self.interaction.passage():
            data = await self.inner.read(path, max_bytes=max_bytes)
            self.journal.note("read", {"path": path, "bytes": len(data)}, actor=self.actor)
            return data

    async def _run(self, command: Command) -> ExecResult:
        span = self.journal.new_span()
        asked = {"argv": list(command.argv), "timeout_s": command.timeout_s, "workdir": command.workdir}
        self.journal.note("exec.started", asked, actor=self.actor, span=span)
        result = await self.inner.exec(command)
        payload, blobs = self.journal.command_payload(result)
        self.journal.note("exec", {**asked, **payload}, actor=self.actor, span=span, blobs=blobs)
        return result


def _shell_is_missing(result: ExecResult) -> bool:
    said = result.stdout.head + result.stderr.head
    return result.exit_code in EXEC_NOT_FOUND and b"exec failed" in said and b"bash" in said


@dataclass
class MeteredModel:
    """The model as a solver sees it (:class:`harness.protocols.SolverModel`): metered, budgeted, recorded."""

    inner: ChatModel
    interaction: Interaction
    journal: Journal
    price: PriceOf
    seed: int | None = None
    _said: list[str] = field(default_factory=list)  # digests of the messages of the last request
    _tools: bytes = b""
    _one_at_a_time: anyio.Lock = field(default_factory=anyio.Lock)

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
        interaction = self.interaction
        async with self._turn():
            interaction.demand(before_call(interaction.budget, interaction.spent))
            interaction.spent = interaction.spent.with_call_begun()
            request = ChatRequest(
                model=self.inner.name,
                messages=tuple(messages),
                tools=tuple(tools),
                max_tokens=_fewest(max_tokens, interaction.remaining().tokens),
                temperature=temperature,
                seed=self.seed,
            )
            reply = await self._ask(request)
            interaction.demand(after_call(interaction.budget, interaction.spent))
            return reply

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """The gate around one call. Under a token or cost budget calls take turns: what several at once will cost is
        not known before they are paid for."""
        budget = self.interaction.budget
        with self.interaction.passage():
            if budget.tokens is None and budget.cost_usd is None:
                yield
            else:
                async with self._one_at_a_time:
                    yield

    async def _ask(self, request: ChatRequest) -> ChatReply:
        span = self.journal.new_span()
        self._note_request(request, span)

        async def on_attempt(attempt: Attempt) -> None:
            own = self.journal.new_span()
            self.journal.note("model.attempt", attempt.plain(), actor=Actor.AGENT, span=own, parent=span)
            self.interaction.unanswered = attempt.error or ""
            if attempt.error is not None and attempt.charged is not False:
                # Paid for, or perhaps, and of no use. Where the service did not live to say how much, the budget is
                # charged for what was sent; the bill says that it is not known.
                self._book(request.model, None, attempt.usage or _estimate(request))

        try:
            reply = await self.inner.chat(request, on_attempt)
        except ProviderFault as fault:
            self.interaction.provider_fault = fault
            said = {"error": str(fault), "status": fault.status}
            self.journal.note("model.failed", said, actor=Actor.AGENT, span=span)
            raise
        self.interaction.provider_fault = None
        self.interaction.completed_calls += 1
        self._note_reply(reply, self._book(request.model, reply.model, reply.usage, reply.service_tier), span)
        return reply

    def _book(self, asked: str, answered: str | None, usage: Usage | None, tier: str | None = None) -> float | None:
        """Count a response towards the budgets; its cost in USD, or None. A service may answer under a dated name."""
        cost = None
        if usage is not None:
            cost = self.price(answered, usage, tier) if answered is not None else None
            cost = self.price(asked, usage, tier) if cost is None else cost
        self.interaction.spent = self.interaction.spent.with_response(usage, cost)
        return cost

    def _note_request(self, request: ChatRequest, span: str) -> None:
        """Only what is new since the last request: conversations grow, and the store would grow with their square."""
        digests = [digest_of(dict(message)) for message in request.messages]
        pairs = enumerate(zip(digests, self._said, strict=False))
        same = min(len(digests), len(self._said))
        first_new = next((at for at, (now, then) in pairs if now != then), same)
        self._said = digests
        blobs: dict[str, str] = {}
        new = [dict(message) for message in request.messages[first_new:]]
        payload: dict[str, Any] = {
            "gen_ai.request.model": request.model,
            "gen_ai.request.max_tokens": request.max_tokens,
            "gen_ai.request.temperature": request.temperature,
            "gen_ai.request.seed": request.seed,
            "first_new_message": first_new,
            "new_messages": self.journal.body(canonical_json(new), "new_messages", blobs),
        }
        tools = canonical_json(list(request.tools))
        if self._tools != tools:
            self._tools = tools
            payload["tools"] = self.journal.body(tools, "tools", blobs)
        self.journal.note("model.request", payload, actor=Actor.AGENT, span=span, blobs=blobs)

    def _note_reply(self, reply: ChatReply, cost_usd: float | None, span: str) -> None:
        blobs: dict[str, str] = {}
        payload: dict[str, Any] = {
            "gen_ai.response.model": reply.model,
            "gen_ai.response.id": reply.response_id,
            "gen_ai.provider.name": reply.provider,
            "finish_reason": reply.finish_reason,
            "usage": reply.usage.plain() if reply.usage is not None else None,
            "cost_usd": cost_usd,
        }
        if reply.service_tier is not None:
            payload["openai.response.service_tier"] = reply.service_tier
        payload["message"] = self.journal.body(canonical_json(reply.message), "message", blobs)
        self.journal.note("model.call", payload, actor=Actor.AGENT, span=span, blobs=blobs)


def _estimate(request: ChatRequest) -> Usage:
    """Roughly the input tokens of a request: four characters each."""
    return Usage(input=len(canonical_json(list(request.messages))) // 4, output=0)


def _fewest(asked: int | None, left: int | None) -> int | None:
    known = [count for count in (asked, left) if count is not None and count > 0]
    return min(known) if known else None
