"""A proxy in front of the engine's socket that can be cut and mended, and remembers what was asked."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ENGINE = "/var/run/docker.sock"
_REQUEST = re.compile(rb"^(GET|POST|PUT|DELETE|HEAD) (/\S*) HTTP/1\.[01]\r$", re.MULTILINE)


@dataclass
class EngineProxy:
    """`requests` are (method, path without version and query) of all that went through."""

    path: Path
    requests: list[tuple[str, str]] = field(default_factory=list)
    _listener: socket.socket | None = None
    _open: set[socket.socket] = field(default_factory=set)
    _streams: set[socket.socket] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        return f"unix://{self.path}"

    def mend(self) -> None:
        """Listen, again or for the first time."""
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.path))
        self._listener.listen(64)
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def cut(self) -> None:
        """Refuse new connections, and end those there are, as an engine that is killed."""
        if self._listener is not None:
            self.path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
        with self._lock:
            for end in self._open:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def lose_streams(self) -> int:
        """End the connections that carry the output of commands, and nothing else; how many there were."""
        with self._lock:
            lost, self._streams = self._streams, set()
        for end in lost:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        return len(lost)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            engine = socket.socket(socket.AF_UNIX)
            engine.connect(ENGINE)
            with self._lock:
                self._open |= {client, engine}
            for source, sink, watch in ((client, engine, True), (engine, client, False)):
                threading.Thread(target=self._carry, args=(source, sink, watch), daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket, watch: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                for method, path in _REQUEST.findall(data) if watch else ():
                    plain = re.sub(r"^/v[0-9.]+", "", path.decode("ascii", "replace").partition("?")[0])
                    self.requests.append((method.decode(), plain))
                    if re.fullmatch(r"/exec/[^/]+/start", plain):
                        with self._lock:
                            self._streams.add(source)
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)  # the other direction may still have something to say


@contextmanager
def proxied(folder: Path) -> Iterator[EngineProxy]:
    """A proxy that listens in `folder` for the length of the context."""
    proxy = EngineProxy(folder / "engine.sock")
    proxy.mend()
    try:
        yield proxy
    finally:
        proxy.cut()
