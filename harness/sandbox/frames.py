"""Takes apart the stream of an exec: frames of an 8-byte header and a payload, cut anywhere by the network.

Header: stream number (1 stdout, 2 stderr), three zero bytes, payload length as big-endian uint32 (Engine API,
"Attach to a container", stream format).
"""

from __future__ import annotations

from collections.abc import Callable

HEADER_BYTES = 8
STDOUT, STDERR = 1, 2

Sink = Callable[[memoryview], None]


class FrameError(ValueError):
    """The bytes are not frames."""


class FrameParser:
    """Feed it pieces of any size; payloads go on at once, without waiting for a frame to be whole.

    It holds at most one incomplete header, so that its memory does not depend on what a frame claims to be long.
    """

    def __init__(self, sinks: dict[int, Sink]) -> None:
        self._sinks = sinks
        self._header = bytearray()
        self._left_bytes = 0
        self._sink: Sink | None = None

    @property
    def whole(self) -> bool:
        """Whether the stream could end here: no frame has begun and not ended."""
        return not self._header and self._left_bytes == 0

    def feed(self, piece: bytes | memoryview) -> None:
        """The next bytes of the stream. Raises FrameError for a header that no engine sends."""
        view = memoryview(piece)
        while view:
            if self._left_bytes:
                payload, view = view[: self._left_bytes], view[self._left_bytes :]
                self._left_bytes -= len(payload)
                if self._sink:
                    self._sink(payload)
                continue
            wanted = HEADER_BYTES - len(self._header)
            self._header += view[:wanted]
            view = view[wanted:]
            if len(self._header) == HEADER_BYTES:
                self._begin(bytes(self._header))
                self._header.clear()

    def _begin(self, header: bytes) -> None:
        stream, padding, length = header[0], header[1:4], int.from_bytes(header[4:], "big")
        if padding != b"\0\0\0" or stream > 3:
            raise FrameError(f"not a frame header: {header.hex()}")
        self._sink = self._sinks.get(stream)
        self._left_bytes = length
