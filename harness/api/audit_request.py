"""What an audit is asked to be: from the command line, from a schedule, or from Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, ValidationInfo, field_validator

from harness.api.request import DEFAULT_STORE, Origin, Request, refused
from harness.audit.sinks import FileSink, LogSink, Sink, WebhookSink, secret_of
from harness.records.audit import Policy, Sentinel

EVERY = (Sentinel.GOLD, Sentinel.NULL, Sentinel.MUTANT)


def make_policy(**values: Any) -> Policy:
    """From when on what is known is stale, dear or alarming. Raises ConfigError that names the option."""
    options: dict[tuple[str | int, ...], str] = {("stale_days",): "--stale-days", ("mutants",): "--count-mutants"}
    try:
        return Policy(**values)
    except ValidationError as error:
        raise refused(error, Origin("policy", options=options)) from error


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
    """One audit. `changed`: only what is not known as it is now, or known for too long. `tasks`: globs; empty: all.

    With no mutants to try the sentinel mutant is left out: what was not tried is not known to be sound.
    """

    suite: str = Field(min_length=1)
    mutants: int = Field(default=3, ge=0)  # per task, where its solution has as many
    sentinels: tuple[Sentinel, ...] = Field(default=EVERY, validate_default=True)
    tasks: tuple[str, ...] = ()
    changed: bool = False
    repeat: int = Field(default=1, gt=0)  # of gold: to find what passes now and then
    concurrency: int = Field(default=4, gt=0)
    retries: int = Field(default=1, ge=0)
    seed: int = 0
    policy: Policy = Policy()
    alerts: AlertRequest = AlertRequest()
    store: str = Field(default=DEFAULT_STORE, min_length=1)

    @field_validator("sentinels")
    @classmethod
    def _some_sentinel(cls, asked: tuple[Sentinel, ...], info: ValidationInfo) -> tuple[Sentinel, ...]:
        kept = tuple(one for one in asked if one is not Sentinel.MUTANT or info.data.get("mutants") != 0)
        if not asked:
            raise ValueError("no sentinel: name gold, null or mutant")
        if not kept:
            raise ValueError("no mutant is to be tried: ask for one or more")
        return kept
