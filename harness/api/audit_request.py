"""What an audit is asked to be: from the command line, from a schedule, or from Python."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from harness.api.request import DEFAULT_STORE, Request
from harness.audit.sinks import FileSink, LogSink, Sink, WebhookSink, secret_of
from harness.records.audit import Policy, Sentinel

EVERY = (Sentinel.GOLD, Sentinel.NULL, Sentinel.MUTANT)


class AlertRequest(Request):
    """Where alerts go, beside the log and the exit code."""

    webhook: str | None = None
    webhook_secret_env: str = "ASSAY_WEBHOOK_SECRET"
    file: str | None = None

    def sinks(self) -> tuple[Sink, ...]:
        """The sinks that are asked for. Raises ConfigError for an address or a secret that is not usable."""
        found: list[Sink] = [LogSink()]
        if self.file is not None:
            found.append(FileSink(Path(self.file)))
        if self.webhook is not None:
            found.append(WebhookSink(self.webhook, secret_of(self.webhook_secret_env)))
        return tuple(found)


class AuditRequest(Request):
    """One audit. `changed`: only what is not known as it is now, or known for too long. `tasks`: globs; empty: all."""

    suite: str = Field(min_length=1)
    sentinels: tuple[Sentinel, ...] = EVERY
    tasks: tuple[str, ...] = ()
    changed: bool = False
    repeat: int = Field(default=1, gt=0)  # of gold: to find what passes now and then
    mutants: int = Field(default=3, ge=0)  # per task, where its solution has as many
    concurrency: int = Field(default=4, gt=0)
    retries: int = Field(default=1, ge=0)
    seed: int = 0
    policy: Policy = Policy()
    alerts: AlertRequest = AlertRequest()
    store: str = Field(default=DEFAULT_STORE, min_length=1)

    @model_validator(mode="after")
    def _some_sentinel(self) -> Self:
        if not self.sentinels:
            raise ValueError("no sentinel: name gold, null or mutant")
        return self
