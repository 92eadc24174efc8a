"""Keeps the head and the tail of a stream in bounded memory, and counts all of it."""

from __future__ import annotations

from harness.records.execution import Captured


class StreamCapture:
    """Feed it a stream in pieces of any size; it never holds more than `head_bytes + 2 * tail_bytes` and one piece."""

    def __init__(self, head_bytes: int, tail_bytes: int) -> None:
        self._head_bytes = head_bytes
        self._tail_bytes = tail_bytes
        self._head = bytearray()
        self._tail = bytearray()
        self._seen_bytes = 0

    def feed(self, piece: bytes | memoryview) -> None:
        """The next bytes of the stream."""
        self._seen_bytes += len(piece)
        room = self._head_bytes - len(self._head)
        if room > 0:
            self._head += piece[:room]
            piece = piece[room:]
        if not len(piece):
            return
        if len(piece) >= self._tail_bytes:
            self._tail[:] = piece[len(piece) - self._tail_bytes :]
            return
        self._tail += piece
        if len(self._tail) > 2 * self._tail_bytes:  # cut now and then, not at every piece
            del self._tail[: len(self._tail) - self._tail_bytes]

    def captured(self) -> Captured:
        """What was kept so far."""
        surplus = max(0, len(self._tail) - self._tail_bytes)
        return Captured(head=bytes(self._head), tail=bytes(self._tail[surplus:]), seen_bytes=self._seen_bytes)
