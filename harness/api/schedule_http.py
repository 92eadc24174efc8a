"""`GET /healthz` and `/metrics` from a thread of the standard library: small, and read by machines on loopback."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any

from harness.audit.schedule.metrics import CONTENT_TYPE
from harness.records.errors import EngineUnavailable, StoreError

Health = Callable[[], tuple[bool, dict[str, Any]]]
SLOW_CLIENT_S = 10.0
POLL_S = 1.0  # how soon the thread sees that it is to end


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int], health: Health, metrics: Callable[[], str]) -> None:
        self.health, self.metrics = health, metrics
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, _Answer)

    def server_bind(self) -> None:
        """Without the look-up of a name that nobody reads."""
        TCPServer.server_bind(self)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is none of our business."""


class _Answer(BaseHTTPRequestHandler):
    server: _Server
    timeout = SLOW_CLIENT_S
    server_version, sys_version = "assay", ""

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/healthz":
            well, body = self.server.health()
            self._answer(200 if well else 503, "application/json", json.dumps(body) + "\n")
        elif path == "/metrics":
            try:
                self._answer(200, CONTENT_TYPE, self.server.metrics())
            except StoreError as error:
                self._answer(503, "text/plain; charset=utf-8", f"{error}\n")
        else:
            self._answer(404, "text/plain; charset=utf-8", "there are /healthz and /metrics\n")

    def _answer(self, status: int, kind: str, body: str) -> None:
        data = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Scrapes are no news."""


@contextmanager
def answering(host: str, port: int, health: Health, metrics: Callable[[], str]) -> Iterator[str]:
    """Answer until the block ends; the value is the address. Raises EngineUnavailable when the port cannot be had."""
    try:
        server = _Server((host, port), health, metrics)
    except (OSError, OverflowError) as error:
        raise EngineUnavailable(
            f"cannot listen: {getattr(error, 'strerror', None) or error}",
            place=f"{host}:{port}",
            remedy="give another [server] port (or --port; 0: any free one), or end what listens there",
        ) from error
    thread = threading.Thread(target=server.serve_forever, args=(POLL_S,), name="assay-serve-http", daemon=True)
    thread.start()
    try:
        yield f"http://{host}:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(SLOW_CLIENT_S)
