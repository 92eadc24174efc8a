"""The handles a solver holds: a sandbox and a model, each action recorded, counted against the budget, revocable."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.protocols import ChatModel, Sandbox
from harness.records.base import canonical_json
from harness.records.chat import Attempt, ChatReply, ChatRequest
from harness.records.errors import ProviderFault
from harness.records.execution import Command, ExecResult
from harness.records.task import FileTree, Task
from harness.records.usage import Usage
from harness.records.vocabulary import Actor
from harness.runner.budget import after_call, before_call, before_command, clamp_s
from harness.runner.interaction import Interaction
from harness.runner.journal import Journal

Price = Callable[[str, Usage], float | None]
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
    price: Price
    seed: int | None = None
    _said: int = field(default=0)

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
        with interaction.passage():
            interaction.demand(before_call(interaction.budget, interaction.spent))
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

    async def _ask(self, request: ChatRequest) -> ChatReply:
        span = self.journal.new_span()
        self._note_request(request, span)

        async def on_attempt(attempt: Attempt) -> None:
            self.journal.note(
                "model.attempt", attempt.plain(), actor=Actor.AGENT, span=self.journal.new_span(), parent=span
            )

        try:
            reply = await self.inner.chat(request, on_attempt)
        except ProviderFault as fault:
            self.interaction.provider_fault = fault
            raise
        self.interaction.provider_fault = None
        self.interaction.completed_calls += 1
        cost = self.price(reply.model or request.model, reply.usage) if reply.usage is not None else None
        self.interaction.spent = self.interaction.spent.with_call(reply.usage, cost)
        self._note_reply(reply, cost, span)
        return reply

    def _note_request(self, request: ChatRequest, span: str) -> None:
        """Only messages not recorded yet: conversations grow, and the store would grow with their square."""
        new = [dict(message) for message in request.messages[self._said :]]
        if self._said > len(request.messages):
            new = [dict(message) for message in request.messages]  # the solver rewrote its conversation
        blobs: dict[str, str] = {}
        payload: dict[str, Any] = {
            "gen_ai.request.model": request.model,
            "gen_ai.request.max_tokens": request.max_tokens,
            "first_new_message": len(request.messages) - len(new),
            "tools": [tool.get("function", {}).get("name") for tool in request.tools],
        }
        payload["new_messages"] = self.journal.body(canonical_json(new), "new_messages", blobs)
        self._said = len(request.messages)
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
        payload["message"] = self.journal.body(canonical_json(reply.message), "message", blobs)
        self.journal.note("model.call", payload, actor=Actor.AGENT, span=span, blobs=blobs)


def _fewest(asked: int | None, left: int | None) -> int | None:
    known = [count for count in (asked, left) if count is not None and count > 0]
    return min(known) if known else None
