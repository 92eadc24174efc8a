"""The two ends of a running exec: its output, and its standard input, over the connection the engine hijacked."""

from __future__ import annotations

import socket
import ssl
from typing import Any

import anyio
import anyio.lowlevel

from harness.records.errors import SandboxFault
from harness.records.vocabulary import Reason
from harness.sandbox.errors import fault_from

_PIECE_BYTES = 256 * 1024
_PIECES_PER_CHECKPOINT = 8  # a flood must not keep others, or a cancellation, waiting
_STDIN_POLL_S = 0.01

_NOT_NOW = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class ExecStream:
    """Reads without a thread and without a read timeout: how long a command may be silent is the caller's to say."""

    def __init__(self, connection: Any, stdin: bytes | None, place: str) -> None:
        """`connection` is what docker-py's `exec_start(socket=True)` returns."""
        self._connection = connection
        self._socket: socket.socket = getattr(connection, "_sock", connection)
        self._socket.setblocking(False)
        self._early = _read_with_the_headers(connection)
        self._stdin = memoryview(stdin) if stdin is not None else None
        self._place = place
        self._received = 0

    async def receive(self) -> bytes:
        """The next bytes, or none at the end. Raises SandboxFault when the connection breaks."""
        if self._early:
            early, self._early = self._early, b""
            return early
        try:
            return await self._receive()
        except ConnectionResetError:
            return b""  # an engine that ends the exec with its container does it this way
        except OSError as error:
            raise fault_from(error, "reading a command's output", place=self._place) from error

    def close(self) -> None:
        """Let go of the connection."""
        response = getattr(self._connection, "_response", None)
        if response is not None:
            response.close()  # closes the connection too, and must come first
        self._connection.close()

    async def _receive(self) -> bytes:
        self._received += 1
        if self._received % _PIECES_PER_CHECKPOINT == 0:
            await anyio.lowlevel.checkpoint()
        while True:
            wrote = self._stdin is not None and self._send()
            try:
                return self._socket.recv(_PIECE_BYTES)
            except _NOT_NOW:
                pass
            if self._stdin is None:
                await anyio.wait_readable(self._socket)
            elif not wrote:
                # Readable or writable, whichever comes first: a command may answer before it has read all.
                with anyio.move_on_after(_STDIN_POLL_S):
                    await anyio.wait_readable(self._socket)
            else:
                await anyio.lowlevel.checkpoint()

    def _send(self) -> bool:
        """Send some of the input that is left; the end of it closes the command's standard input."""
        if self._stdin is None:
            return False
        try:
            if self._stdin:
                self._stdin = self._stdin[self._socket.send(self._stdin[:_PIECE_BYTES]) :]
            if not self._stdin:
                self._stdin = None
                self._socket.shutdown(socket.SHUT_WR)
        except _NOT_NOW:
            return False
        except (BrokenPipeError, ConnectionResetError):
            self._stdin = None  # the command does not read, or has ended
        return True


def refuse_stdin_over_tls(connection: Any, place: str) -> None:
    """Raise SandboxFault where the input's end could not be told: a TLS connection has no half-closed state here."""
    if isinstance(getattr(connection, "_sock", connection), ssl.SSLSocket):
        raise SandboxFault(
            "standard input cannot be sent to an engine behind TLS",
            reason=Reason.ENGINE_ERROR,
            place=place,
            remedy="forward the engine's socket (`ssh -L`) and set DOCKER_HOST=unix://…",
        )


def _read_with_the_headers(connection: Any) -> bytes:
    """Bytes of the stream that came in one piece with the response's headers and wait in a buffer above the socket."""
    response = getattr(connection, "_response", None)
    buffered = getattr(getattr(getattr(response, "raw", None), "_fp", None), "fp", None)
    if buffered is None or not hasattr(buffered, "peek"):
        return b""
    try:
        waiting: bytes = buffered.peek()  # the socket does not block, so neither does this
    except _NOT_NOW:
        return b""
    return waiting and bytes(buffered.read1(len(waiting)))
