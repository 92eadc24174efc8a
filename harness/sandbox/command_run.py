"""Runs one command in a container: its output in bounded memory, its end by our clock, its descendants with it."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import anyio
import structlog
from docker import APIClient

from harness.records.errors import SandboxFault
from harness.records.execution import Captured, Command, ExecResult
from harness.records.vocabulary import Reason
from harness.sandbox.capture import StreamCapture
from harness.sandbox.container import Container
from harness.sandbox.container_processes import ContainerProcesses
from harness.sandbox.exec_stream import ExecStream, refuse_stdin_over_tls
from harness.sandbox.frames import STDERR, STDOUT, FrameError, FrameParser
from harness.sandbox.process_tree import ProcessKey

log = structlog.get_logger(__name__)

_FIRST_LOOK_S = 0.25  # of silence, before the engine is asked whether the command has ended
_RAREST_LOOK_S = 2.0
_LOOK_IN_A_FLOOD_S = 1.0
_EXIT_LOOK_S = 0.1
_EARLY_S = 2.0  # the engine may be that late to say that a command has ended
_DRAIN_QUIET_S = 0.1
_DRAIN_MOST_S = 1.0
_ENDING_DEADLINE_S = 60.0
_START_DEADLINE_S = 20.0
_NOT_STARTED = (126, 127)


@dataclass(frozen=True)
class ExecState:
    """How a command stands, by the engine."""

    running: bool
    pid: int  # on the engine's machine; 0: not started
    exit_code: int | None

    @property
    def ended(self) -> bool:
        return not self.running and self.exit_code is not None


@dataclass
class CommandRun:
    """One command. `siblings` are the commands that run in the same container now, this one among them."""

    container: Container
    processes: ContainerProcesses
    command: Command
    user: str
    siblings: set[CommandRun]
    exec_id: str = ""
    _stdout: StreamCapture = field(init=False)
    _stderr: StreamCapture = field(init=False)
    _parser: FrameParser = field(init=False)
    _held_open: bool = False
    _ended_early: bool = False

    def __post_init__(self) -> None:
        tail = self.command.output_bytes // 2
        self._stdout = StreamCapture(self.command.output_bytes - tail, tail)
        self._stderr = StreamCapture(self.command.output_bytes - tail, tail)
        self._parser = FrameParser({STDOUT: self._stdout.feed, STDERR: self._stderr.feed})

    __hash__ = object.__hash__
    __eq__ = object.__eq__

    async def run(self) -> ExecResult:
        """Start the command and follow it to its end. Raises SandboxFault when the engine fails."""
        before = self.processes.snapshot()
        memory_kills = self.processes.memory_kills()
        restarts = self.processes.restarts
        self.siblings.add(self)
        stream: ExecStream | None = None
        try:
            stream = await self._start()
            started_s = time.monotonic()
            with anyio.move_on_after(self.command.timeout_s) as clock:
                state = await self._follow(stream)
            duration_s = time.monotonic() - started_s
            if clock.cancelled_caught:
                with anyio.CancelScope(shield=True):
                    ended = await self._end(before)
                    await self._drain(stream)
                return self._result(None, duration_s, memory_kills, timed_out=True, processes_ended=ended)
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(_ENDING_DEADLINE_S, shield=True) as deadline:
                await self._end(before)
            if deadline.cancelled_caught:
                log.warning("sandbox.command_not_ended", container=self.container.name, argv=self.command.argv)
            raise
        finally:
            self.siblings.discard(self)
            if stream is not None:
                stream.close()
        lost, oom = await self._container_suffered(state)
        lost |= self.processes.restarts != restarts
        return self._result(None if lost else state, duration_s, memory_kills, oom=oom)

    async def _start(self) -> ExecStream:
        command, place = self.command, self.container.name

        def create_and_start(client: APIClient) -> Any:
            self.exec_id = client.exec_create(
                self.container.id,
                list(command.argv),
                stdin=command.stdin is not None,
                environment=command.env or None,
                workdir=command.workdir,
                user=self.user,
            )["Id"]
            return client.exec_start(self.exec_id, socket=True)

        async with self.processes.turn:
            connection = await self.container.engine.call("starting a command", create_and_start, place=place)
        if command.stdin is not None:
            refuse_stdin_over_tls(connection, place)
        return ExecStream(connection, command.stdin, place)

    async def _follow(self, stream: ExecStream) -> ExecState:
        """Read until the command has ended; a process that it left behind may hold its output, and is not awaited."""
        look_s = _FIRST_LOOK_S
        looked_s = time.monotonic()
        while True:
            piece: bytes | None = None
            with anyio.move_on_after(look_s):
                piece = await stream.receive()
            if piece == b"":
                return await self._await_exit()
            if piece:
                self._feed(piece)
                look_s = _FIRST_LOOK_S
            if piece is None or time.monotonic() - looked_s > _LOOK_IN_A_FLOOD_S:
                state = await self._state()
                looked_s = time.monotonic()
                if state.ended:
                    self._held_open = not await self._drain(stream)
                    return state
            if piece is None:
                look_s = min(2 * look_s, _RAREST_LOOK_S)

    async def _drain(self, stream: ExecStream) -> bool:
        """Take what is still under way; returns whether the stream came to its end."""
        with anyio.move_on_after(_DRAIN_MOST_S):
            while True:
                piece: bytes | None = None
                with anyio.move_on_after(_DRAIN_QUIET_S):
                    piece = await stream.receive()
                if not piece:
                    return piece is not None
                self._feed(piece)
        return False

    async def _await_exit(self) -> ExecState:
        """The output is at its end, the command nearly so, unless it closed its output itself."""
        pause_s = 0.002
        began_s = time.monotonic()
        while True:
            state = await self._state()
            if state.ended:
                return state
            # A connection that was cut looks like an output that was closed: what is said from here on is not heard.
            self._ended_early = state.running and time.monotonic() - began_s > _EARLY_S
            if not state.running and (await self.container.inspect())["State"].get("Running") is not True:
                return state
            await anyio.sleep(pause_s)
            pause_s = min(2 * pause_s, _EXIT_LOOK_S)

    async def _state(self) -> ExecState:
        answer = await self.container.engine.call(
            "asking how a command stands",
            lambda client: client.exec_inspect(self.exec_id),
            place=self.container.name,
        )
        return ExecState(bool(answer["Running"]), int(answer.get("Pid") or 0), answer.get("ExitCode"))

    async def _end(self, before: frozenset[ProcessKey] | None) -> int:
        """End the command and everything it started; returns how many processes that were."""
        if not self.exec_id:
            return 0
        async with self.processes.turn:
            if not await self._await_start():
                return await self.processes.end_unseen()
            return await self.processes.end_newer(before, await self._roots_of_others())

    async def _await_start(self) -> bool:
        """Whether the command is up, or over: before that there is nothing to kill, and something to come."""
        with anyio.move_on_after(_START_DEADLINE_S):
            while True:
                state = await self._state()
                if state.pid or state.ended:
                    return True
                await anyio.sleep(0.02)
        return False

    async def _roots_of_others(self) -> Collection[int]:
        roots = set()
        for other in tuple(self.siblings):
            if other is not self and other.exec_id:
                await other._await_start()
                state = await other._state()
                roots |= {state.pid} if state.running and state.pid else set()
        return roots

    async def _container_suffered(self, state: ExecState) -> tuple[bool, bool]:
        """Whether the container ended under the command, and whether the engine saw it run out of memory.

        Asked only when the command ended without a code, or as if killed: only then it can be.
        """
        if state.exit_code not in (None, 137):
            return False, False
        lost = not await self.processes.container_is_up()
        if self.processes.visible and not lost:
            return False, False  # the kernel's own counter tells more
        return lost, bool((await self.container.inspect())["State"].get("OOMKilled"))

    def _feed(self, piece: bytes) -> None:
        try:
            self._parser.feed(piece)
        except FrameError as error:
            raise SandboxFault(
                f"the engine's output stream is broken: {error}",
                reason=Reason.ENGINE_ERROR,
                place=self.container.name,
            ) from error

    def _result(
        self,
        state: ExecState | None,
        duration_s: float,
        memory_kills_before: int | None,
        *,
        timed_out: bool = False,
        processes_ended: int = 0,
        oom: bool = False,
    ) -> ExecResult:
        stdout, stderr = self._stdout.captured(), self._stderr.captured()
        exit_code = state.exit_code if state else None
        if state and state.pid == 0 and exit_code in _NOT_STARTED and not stderr.seen_bytes:
            stdout, stderr = Captured(), stdout  # the engine's own words on why it could not start the command
        kills = self.processes.memory_kills()
        return ExecResult(
            exit_code=exit_code,
            stdout=stdout,
            stderr=stderr,
            duration_s=duration_s,
            timed_out=timed_out,
            memory_killed=oom if kills is None else kills > (memory_kills_before or 0),
            stdio_held_open=self._held_open,
            output_ended_early=self._ended_early,
            processes_ended=processes_ended,
        )
