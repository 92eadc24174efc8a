"""A model service on loopback that says the same thing every time, and counts what it charged for."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MODEL = "scripted-1"
TOKENS = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
PRICE_PER_CALL_USD = (1000 * 1.0 + 100 * 10.0) / 1e6
PRICES = 'name = "scripted"\ndate = "2026-01-01"\n\n[patterns."scripted-*"]\ninput = 1.0\noutput = 10.0\n'


@dataclass
class ModelService:
    """Where it is, and every request body that it was sent. After `hold_after` answers it keeps the next one back."""

    url: str
    asked: list[dict[str, Any]] = field(default_factory=list)
    hold_after: int | None = None
    _released: threading.Event = field(default_factory=threading.Event)

    def release(self) -> None:
        """Answer at once from now on."""
        self.hold_after = None
        self._released.set()

    def options(self, folder: Path) -> tuple[str, ...]:
        """The options of `assay run` that use it."""
        table = folder / "prices.toml"
        table.write_text(PRICES)
        return ("--model", MODEL, "--base-url", self.url, "--prices", str(table))

    @property
    def charged_usd(self) -> float:
        return len(self.asked) * PRICE_PER_CALL_USD


@contextmanager
def serving() -> Iterator[ModelService]:
    service = ModelService("")

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            service.asked.append(body)
            if service.hold_after is not None and len(service.asked) > service.hold_after:
                service._released.wait(60)
            message = {"role": "assistant", "content": "understood"}
            answer = {
                "id": f"scripted-{len(service.asked)}",
                "model": body["model"],
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": TOKENS,
            }
            data = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """Quiet."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        service.url = f"http://127.0.0.1:{server.server_port}/v1"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield service
        finally:
            server.shutdown()
            thread.join()
