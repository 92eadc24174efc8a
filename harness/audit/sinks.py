"""Where alerts go beside the exit code: a log line, a file, a webhook.

Every message stands in the suite's chain before it is sent, and is sent until the chain says that the sink took it: at
least once, over restarts and hours of a webhook that is down. A receiver tells repeats by the id.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import httpx
import structlog
from tenacity import RetryError, Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from harness.audit.history import DELIVERED, RAISED, RESOLVED, SINK, AuditChain, Delivery
from harness.records.audit import Alert
from harness.records.base import Record, canonical_json
from harness.records.errors import ConfigError

log = structlog.get_logger(__name__)

ATTEMPTS = 3
TIMEOUT_S = 10.0
SIGNATURE, IDENTITY = "X-Assay-Signature", "X-Assay-Delivery"


class AlertMessage(Record):
    """What a sink gets. `id` is that of the alert with its event: the same for every repetition."""

    id: str
    event: str  # alert.raised, alert.resolved
    at: str
    suite: str
    alert: Alert


class Sink(Protocol):
    """Takes messages. `send` raises SinkDown when it could not: the message is sent again another time."""

    name: str

    def send(self, message: AlertMessage) -> None: ...


class SinkDown(Exception):
    """The sink did not take the message."""


class LogSink:
    """A structured line per message."""

    name = "log"

    def send(self, message: AlertMessage) -> None:
        finding = message.alert.finding
        tell = log.warning if message.event == RAISED else log.info
        tell(message.event, suite=message.suite, kind=finding.kind.value, subject=finding.subject, what=finding.message)


class FileSink:
    """A line of JSON per message, appended."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = f"file:{path}"

    def send(self, message: AlertMessage) -> None:
        try:
            with self.path.open("ab") as file:
                file.write(canonical_json(message.plain()) + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise SinkDown(f"{self.path}: {error.strerror}") from error


class WebhookSink:
    """A POST per message, signed with HMAC-SHA256 over its body; tried a few times at once, and again later."""

    def __init__(self, url: str, secret: str, client: httpx.Client | None = None, pause_s: float = 0.5) -> None:
        if httpx.URL(url).scheme not in ("http", "https"):
            raise ConfigError(f"{url!r} is no address of a webhook", remedy="give it whole: https://host/path")
        self.name = f"webhook:{url}"
        self._url, self._secret, self._pause_s = url, secret, pause_s
        self._client = client or httpx.Client(timeout=TIMEOUT_S)

    def send(self, message: AlertMessage) -> None:
        body = canonical_json(message.plain())
        headers = {
            "Content-Type": "application/json",
            IDENTITY: message.id,
            SIGNATURE: signature(self._secret, body),
        }
        retrying = Retrying(
            stop=stop_after_attempt(ATTEMPTS),
            wait=wait_exponential(self._pause_s, max=10 * self._pause_s),
            retry=retry_if_exception_type(httpx.HTTPError),
        )
        try:
            for attempt in retrying:
                with attempt:
                    self._client.post(self._url, content=body, headers=headers).raise_for_status()
        except RetryError as failed:
            error = failed.last_attempt.exception()
            raise SinkDown(f"{type(error).__name__}: {error}") from failed


def signature(secret: str, body: bytes) -> str:
    """What stands in the header: `sha256=` and the HMAC of the body, for a receiver to compare."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def outbox(chain: AuditChain, sink: Sink) -> Iterator[tuple[AlertMessage, Delivery]]:
    """Messages that a sink has not taken yet, in the order in which they arose.

    A sink that is new gets what stands; what was over before it came is history.
    """
    history, made = chain.history, []
    since = history.sinks[sink.name]
    for alert in history.alerts.values():
        if alert.resolved is not None and alert.resolved < since:
            continue
        made.append((alert.raised, RAISED, alert.model_copy(update={"resolved": None})))
        if alert.resolved is not None:
            made.append((alert.resolved, RESOLVED, alert))
    for at, event, alert in sorted(made, key=lambda one: one[0]):
        delivery = Delivery(alert.id, event, sink.name)
        if delivery not in history.delivered:
            yield AlertMessage(id=f"{alert.id}.{event}", event=event, at=at, suite=history.suite, alert=alert), delivery


def deliver(chain: AuditChain, sinks: tuple[Sink, ...], at: str) -> tuple[str, ...]:
    """Send what waits to each sink, in order; a sink that is down keeps its messages. Returns what went wrong."""
    problems = []
    for sink in sinks:
        if sink.name not in chain.history.sinks:
            chain.note(SINK, {"sink": sink.name, "at": at})
        waiting = list(outbox(chain, sink))
        for number, (message, delivery) in enumerate(waiting):
            try:
                sink.send(message)
            except SinkDown as down:
                left = len(waiting) - number
                problems.append(f"{sink.name} is down ({down}): {left} message(s) wait for the next time")
                break
            chain.note(DELIVERED, {"id": delivery.alert, "event": delivery.event, "sink": delivery.sink})
    return tuple(problems)


def secret_of(variable: str) -> str:
    """The webhook's secret from the environment. Raises ConfigError."""
    secret = os.environ.get(variable)
    if not secret:
        raise ConfigError("a webhook needs a secret to sign with", place=f"${variable}", remedy=f"export {variable}=…")
    return secret
