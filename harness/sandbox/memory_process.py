"""A running command of the in-memory sandbox, as the program that plays it sees it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import anyio

from harness.records.execution import Command
from harness.sandbox.capture import StreamCapture
from harness.sandbox.memory_files import MemoryFiles


@dataclass
class Background:
    """A process that a command left running: `tick` acts on the files every `every_s`, until it is ended."""

    name: str
    tick: Callable[[MemoryFiles], None]
    every_s: float
    next_s: float
    holds_stdio: bool
    owner: int  # the command that started it


@dataclass
class Process:
    """A running command, as its program sees it. `write` keeps output at once, so that a timeout does not lose it."""

    command: Command
    files: MemoryFiles
    env: Mapping[str, str]
    workdir: str
    user: str | None
    stdout: StreamCapture
    stderr: StreamCapture
    number: int
    background: list[Background] = field(default_factory=list)
    memory_killed: bool = False
    memory_bytes: int = 0  # most in use at once, for the program to set

    @property
    def argv(self) -> tuple[str, ...]:
        return self.command.argv

    @property
    def stdin(self) -> bytes:
        """What the command reads; empty unless given."""
        return self.command.stdin or b""

    def write(self, data: bytes) -> None:
        self.stdout.feed(data)

    def write_error(self, data: bytes) -> None:
        self.stderr.feed(data)

    def spawn(
        self, name: str, tick: Callable[[MemoryFiles], None], *, every_s: float = 1.0, holds_stdio: bool = False
    ) -> None:
        """Leave a process running that acts every `every_s` seconds from now on."""
        due_s = anyio.current_time() + every_s
        self.background.append(Background(name, tick, every_s, due_s, holds_stdio, self.number))

    def exhaust_memory(self) -> int:
        """Be killed by the kernel for memory; returns the exit code that comes of it."""
        self.memory_killed = True
        return 137


Program = Callable[[Process], "int | Awaitable[int]"]
