"""Bytes to and from a program that is an environment. Here a process of this machine; a container elsewhere."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from harness.records.environment import EnvironmentFault

_PIECE_BYTES = 256 * 1024
_STDERR_BYTES = 4096  # kept, of its end: it says why a program ended
_END_S, _POLL_S = 2.0, 0.005  # to end by itself once its input is closed


class Channel(Protocol):
    """A program's standard input and output. Not for several threads at once."""

    @property
    def place(self) -> str:
        """The program, for messages: its command line, its container."""
        ...

    def send(self, data: bytes, timeout_s: float) -> None:
        """Write all of it. Raises TimeoutError, and EnvironmentFault when nobody reads any more."""
        ...

    def receive(self, timeout_s: float) -> bytes:
        """The next bytes of its output, none at the end. Raises TimeoutError."""
        ...

    def last_words(self) -> str:
        """How the program ended, and the end of what it wrote to its standard error."""
        ...

    def close(self) -> None:
        """End the program and everything it started. May be called again."""
        ...


class ProcessChannel:
    """A process with its own session, so that what it starts ends with it.

    Raises EnvironmentFault when it cannot be started. `env` adds to this process's own environment.
    """

    def __init__(self, command: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: str | None = None) -> None:
        self.place = " ".join(command)
        self._stderr = b""
        try:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, **(env or {})},
                cwd=cwd,
                bufsize=0,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise EnvironmentFault(
                f"cannot be started: {error}", place=self.place, remedy="mend the command"
            ) from error
        self._pipes = [stream for stream in (self._process.stdin, self._process.stdout, self._process.stderr) if stream]
        self._in, self._out, self._err = (stream.fileno() for stream in self._pipes)
        for number in (self._in, self._out, self._err):
            os.set_blocking(number, False)
        self._open = [self._out, self._err]
        self._code: int | None = None
        self._closed = False

    def send(self, data: bytes, timeout_s: float) -> None:
        left, deadline = memoryview(data), time.monotonic() + timeout_s
        while left:
            self._wait([self._in], deadline, read=False)
            try:
                left = left[os.write(self._in, left) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise EnvironmentFault(
                    f"it reads no more: {self.last_words()}", place=self.place, remedy="see why it ended"
                ) from error

    def receive(self, timeout_s: float) -> bytes:
        deadline = time.monotonic() + timeout_s
        while True:
            self._wait([], deadline, read=True)
            try:
                return os.read(self._out, _PIECE_BYTES)
            except BlockingIOError:
                continue

    def last_words(self) -> str:
        self._await_end()
        self._keep_stderr()
        code = self._process.returncode if self._closed else self._code
        how = "it still runs" if code is None else f"it ended with code {code}" if code >= 0 else _signalled(-code)
        said = self._stderr.decode("utf-8", "replace").strip()
        return f"{how}; it said: {said}" if said else how

    def close(self) -> None:
        if self._closed:
            return
        self._pipes[0].close()
        self._await_end()
        self._closed = True
        with suppress(ProcessLookupError):
            # It is not yet waited for, so the number is still its own: this reaches only what it left behind.
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for stream in self._pipes[1:]:
            stream.close()
        self._open.clear()

    def _await_end(self) -> None:
        """Wait a moment for it to end, without burying it."""
        deadline = time.monotonic() + _END_S
        while not self._closed and self._code is None and time.monotonic() < deadline:
            found = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if found is None:
                time.sleep(_POLL_S)
            else:
                self._code = found.si_status if found.si_code == os.CLD_EXITED else -found.si_status

    def _wait(self, writing: list[int], deadline: float, *, read: bool) -> None:
        """Until the output can be read or the input written. Standard error is kept meanwhile: it never fills."""
        while True:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise TimeoutError
            reading = self._open if read else [number for number in self._open if number != self._out]
            ready, able, _ = select.select(reading, writing, [], left_s)
            if self._err in ready:
                self._keep_stderr()
            if able or self._out in ready:
                return

    def _keep_stderr(self) -> None:
        while self._err in self._open:
            try:
                piece = os.read(self._err, _PIECE_BYTES)
            except BlockingIOError:
                return
            if not piece:
                self._open.remove(self._err)
            self._stderr = (self._stderr + piece)[-_STDERR_BYTES:]


def _signalled(number: int) -> str:
    try:
        return f"it was ended by {signal.Signals(number).name}"
    except ValueError:
        return f"it was ended by signal {number}"
