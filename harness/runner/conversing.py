"""A conversation as a solver leads it: every call and word recorded, counted against the budget, revocable."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, field
from typing import Any, NoReturn

import anyio.to_thread

from harness.protocols import Environment, EnvironmentSession, Heard, SimulatedUser
from harness.records.base import digest_of
from harness.records.conversation import Action
from harness.records.environment import Answer, Call, Capabilities, EnvironmentFault, Opening, ToolSpec
from harness.records.errors import ConfigError, SandboxFault
from harness.records.execution import ExecResult
from harness.records.task import FileTree
from harness.records.vocabulary import Actor, Reason, StopReason
from harness.runner.budget import before_command
from harness.runner.interaction import Interaction
from harness.runner.journal import Journal

ARGUMENTS, AS_WRITTEN = "arguments", "arguments_as_written"  # keys of a call's payload


def as_sandbox_fault(fault: EnvironmentFault) -> SandboxFault:
    """An environment that fails is the machine's fault, like a container that does."""
    return SandboxFault(fault.message, reason=Reason.ENGINE_ERROR.value, place=fault.place, remedy=fault.remedy)


def close_with(stack: ExitStack | AsyncExitStack, environment: Environment) -> None:
    """End what an environment holds open (a program, a container) with the stack."""
    close = getattr(environment, "close", None)
    if close is not None:
        stack.callback(close)


def environment_digest(environment: Environment, mode: str, data: str) -> str:
    """What pins an environment, as an image's digest pins a container: its code, and the state it begins in without a
    task's own initial state. Raises EnvironmentFault."""
    if not environment.capabilities.digest:
        return pin_of(environment.capabilities, data, "")
    with environment.open(Opening(mode=mode, data=data)) as session:
        return pin_of(environment.capabilities, data, session.digest())


def pin_of(capabilities: Capabilities, data: str, state: str) -> str:
    """The same, where the state it begins in is known."""
    return digest_of([capabilities.environment, capabilities.code, data, state])


@dataclass
class RecordedSession:
    """A session whose calls and answers are written down, in one stream, in the words that importers use.

    `phase` is the journal's. Calls run in a worker thread: an environment may be a program behind a pipe.
    """

    inner: EnvironmentSession
    capabilities: Capabilities
    journal: Journal

    async def call(self, call: Call) -> Answer:
        """Raises SandboxFault when the environment itself fails."""
        span = self.journal.new_span()
        self._note_call(call, span)
        try:
            answer = await anyio.to_thread.run_sync(self.inner.call, call)
            state = await anyio.to_thread.run_sync(self._checkpoint, call)
        except EnvironmentFault as fault:
            raise as_sandbox_fault(fault) from fault
        self._note_answer(call, answer, span, state)
        return answer

    def call_now(self, call: Call) -> Answer:
        """The same, from a thread that may wait. Raises EnvironmentFault."""
        span = self.journal.new_span()
        self._note_call(call, span)
        answer = self.inner.call(call)
        self._note_answer(call, answer, span, self._checkpoint(call))
        return answer

    async def digest(self) -> str | None:
        """The state's digest; None where the environment declares none. Raises SandboxFault."""
        try:
            return await anyio.to_thread.run_sync(self.inner.digest) if self.capabilities.digest else None
        except EnvironmentFault as fault:
            raise as_sandbox_fault(fault) from fault

    async def snapshot(self) -> bytes:
        """Raises SandboxFault."""
        try:
            return await anyio.to_thread.run_sync(self.inner.snapshot)
        except EnvironmentFault as fault:
            raise as_sandbox_fault(fault) from fault

    def _checkpoint(self, call: Call) -> str | None:
        """The state's digest after a call that may have changed it."""
        spec = self.capabilities.tool(call.name, call.namespace)
        changes = spec is None or spec.writes or not spec.deterministic
        return self.inner.digest() if changes and self.capabilities.digest else None

    def _note_call(self, call: Call, span: str) -> None:
        blobs: dict[str, str] = {}
        payload: dict[str, Any] = {"gen_ai.tool.name": call.name, "gen_ai.tool.call.id": call.id or span}
        written = json.dumps(call.arguments, ensure_ascii=False)
        short = self.journal.body(written.encode("utf-8", "surrogatepass"), ARGUMENTS, blobs) is not None
        payload[ARGUMENTS] = call.arguments if short else None
        if short and written != json.dumps(call.arguments, ensure_ascii=False, sort_keys=True):
            payload[AS_WRITTEN] = written  # a stored event has its keys sorted, and tools may give back what they got
        payload["namespace"] = call.namespace
        spec = self.capabilities.tool(call.name, call.namespace)
        if spec is not None and not spec.deterministic:
            payload["deterministic"] = False
        self.journal.note("tool.call", payload, actor=call.actor, span=span, blobs=blobs)

    def _note_answer(self, call: Call, answer: Answer, span: str, state: str | None) -> None:
        blobs: dict[str, str] = {}
        content = self.journal.body(answer.content.encode("utf-8", "surrogatepass"), "content", blobs)
        payload = {"gen_ai.tool.call.id": call.id or span, "content": content, "error": answer.error}
        if answer.missing:
            payload["missing"] = True
        self.journal.note("tool.result", payload, actor=Actor.ENVIRONMENT, span=span, blobs=blobs, state_digest=state)


@dataclass
class RecordedConversation:
    """The conversation as a solver sees it (:class:`harness.protocols.SolverConversation`)."""

    session: RecordedSession
    interaction: Interaction
    journal: Journal
    mode: str
    actor: Actor
    user: SimulatedUser | None
    opening: str | None
    _tools: tuple[ToolSpec, ...] = ()
    _one_at_a_time: anyio.Lock = field(default_factory=anyio.Lock)

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        if not self._tools:
            self._tools = self.session.capabilities.callable(self.mode, Actor.AGENT)
        return self._tools

    async def call(self, name: str, arguments: Any, *, namespace: str = "agent", id: str = "") -> Answer:
        try:
            given = json.loads(json.dumps(arguments, allow_nan=False))  # the environment's own copy
        except (TypeError, ValueError, RecursionError) as error:
            return Answer(f"Error: the arguments are no JSON: {error}", error=True)
        with self.interaction.passage():
            async with self._one_at_a_time:
                self._count()
                # The reference acts in the agent's place, and has the agent's tools; events name who it really was.
                answer = await self._as(self.actor).call(Call(Actor.AGENT, name, given, namespace, id))
        spec = self.session.capabilities.tool(name, namespace)
        if spec is not None and spec.ends and not answer.missing and not answer.error:
            self.interaction.close(StopReason.USER_ENDED, f"{name} ends the episode")
        return answer

    async def say(self, text: str) -> Heard:
        if self.user is None:
            raise ConfigError("there is no user in solo mode", remedy="act with the tools, then return")
        with self.interaction.passage():
            async with self._one_at_a_time:
                self._count()
                self._note(self.actor, str(text))
                heard = await anyio.to_thread.run_sync(self._hear, str(text))
                self._note(Actor.USER, heard.text)
        if heard.ended:
            self.interaction.close(StopReason.USER_ENDED, "the user ended the conversation")
        return heard

    def _hear(self, text: str) -> Heard:
        assert self.user is not None
        try:
            return self.user.hear(text, self._act)
        except EnvironmentFault as fault:
            raise as_sandbox_fault(fault) from fault

    def _act(self, action: Action) -> Answer:
        return self.session.call_now(Call(Actor.USER, action.name, action.arguments, "user"))

    def _as(self, actor: Actor) -> RecordedSession:
        if actor is Actor.AGENT:
            return self.session
        return _Renamed(self.session.inner, self.session.capabilities, self.journal, actor)

    def _count(self) -> None:
        self.interaction.demand(before_command(self.interaction.budget, self.interaction.spent))
        self.interaction.spent = self.interaction.spent.with_command()

    def _note(self, actor: Actor, text: str) -> None:
        note_message(self.journal, actor, text)


@dataclass
class _Renamed(RecordedSession):
    """A session in which the agent's calls are written down as another actor's."""

    actor: Actor = Actor.AGENT

    def _note_call(self, call: Call, span: str) -> None:
        super()._note_call(Call(self.actor, call.name, call.arguments, call.namespace, call.id), span)


def note_message(journal: Journal, actor: Actor, text: str) -> None:
    """Write down something that was said."""
    blobs: dict[str, str] = {}
    content = journal.body(text.encode("utf-8", "surrogatepass"), "content", blobs)
    journal.note("message", {"content": content}, actor=actor, blobs=blobs)


class NoSandbox:
    """What a solver without conversations gets in one: a :class:`harness.protocols.SolverSandbox` that says so."""

    async def exec(
        self,
        command: str | Sequence[str],
        *,
        timeout_s: float | None = None,
        env: Mapping[str, str] | None = None,
        workdir: str | None = None,
        stdin: bytes | None = None,
    ) -> ExecResult:
        self._refuse()

    async def put(self, tree: FileTree, dest: str) -> None:
        self._refuse()

    async def read(self, path: str, *, max_bytes: int = 1_048_576) -> bytes:
        self._refuse()

    @staticmethod
    def _refuse() -> NoReturn:
        raise ConfigError("this task is a conversation: it has no sandbox", remedy="use a solver that converses")
