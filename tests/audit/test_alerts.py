"""Alerts: raised once per change, resolved when they clear, delivered at least once."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from harness.api.audit_request import AlertRequest
from harness.api.audits import check_alerts
from harness.audit.history import RAISED, RESOLVED, owned_chain, read_history
from harness.audit.sinks import FileSink, WebhookSink, deliver, signature
from harness.records.audit import AlertKind
from harness.records.errors import ConfigError

from .worlds import PASS, Files, Laboratory, lines_of

pytestmark = pytest.mark.anyio
SECRET = "a secret"


class Receiver:
    """A webhook that can be down; keeps what it took."""

    def __init__(self) -> None:
        self.up = True
        self.tried = 0
        self.taken: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.tried += 1
        if not self.up:
            return httpx.Response(503)
        self.taken.append(request)
        return httpx.Response(204)

    def sink(self) -> WebhookSink:
        client = httpx.Client(transport=httpx.MockTransport(self))
        return WebhookSink("https://hooks.example.org/assay", SECRET, client, pause_s=0.0)


@pytest.fixture
def free(laboratory: Laboratory) -> Laboratory:
    """A suite one of whose tasks passes with nothing done."""
    laboratory.write({"free": Files(check=f"{PASS}\n"), **{f"t{n}": Files() for n in range(3)}})
    return laboratory


def mend(laboratory: Laboratory) -> None:
    Files(check=f"echo mended\n{Files().check}").write(laboratory.suite / "free")
    laboratory.lock()


async def test_an_alert_is_raised_once_and_resolved_when_it_clears(free: Laboratory) -> None:
    first = await free.audit()
    kinds = [alert.finding.kind for alert in first.raised]
    assert kinds == [AlertKind.RATE, AlertKind.NULL_PASSED]
    again = await free.audit()
    assert (again.raised, len(again.standing)) == ((), 2)
    Files(do="New words too. Task number 0", check=f"echo mended\n{Files().check}").write(free.suite / "free")
    free.lock()
    mended = await free.audit()
    assert [alert.finding.kind for alert in mended.resolved] == kinds
    assert mended.standing == ()
    history = read_history(free.store, "demo")
    assert len(history.alerts) == 2
    assert all(alert.resolved is not None for alert in history.alerts.values())


async def test_a_jump_between_two_cycles_is_an_event_of_its_own(free: Laboratory) -> None:
    mend(free)
    await free.audit()
    free.pass_time(days=7)
    free.gone.add("base:1")
    report = await free.audit()
    jump = next(alert.finding for alert in report.raised if alert.finding.kind is AlertKind.JUMP)
    assert "rose from 0.0 % to 100.0 % between two cycles" in jump.message
    same = await free.audit()
    assert [alert.finding.kind for alert in same.resolved] == [AlertKind.JUMP]


async def test_gold_that_is_stale_or_absent_is_told_without_running_anything(free: Laboratory) -> None:
    assert [alert.finding.kind for alert in check_alerts(free.request()).raised] == [AlertKind.GOLD_ABSENT]
    await free.audit()
    free.pass_time(days=20)
    change = check_alerts(free.request())
    assert [alert.finding.kind for alert in change.raised] == [AlertKind.GOLD_STALE]
    assert "gold of 4 tasks is older than 14 days, the oldest of 2026-03-01" in change.raised[0].finding.message
    assert check_alerts(free.request()).raised == ()


async def test_a_webhook_that_is_down_loses_nothing(free: Laboratory) -> None:
    await free.audit()
    receiver = Receiver()
    receiver.up = False
    with owned_chain(free.store, "demo") as chain:
        [problem] = deliver(chain, (receiver.sink(),), free.utc_now())
    assert "2 message(s) wait for the next time" in problem
    assert receiver.tried == 3
    Files(do="New. Task number 0", check=f"echo mended\n{Files().check}").write(free.suite / "free")
    free.lock()
    await free.audit()  # resolved while the webhook is still down
    receiver.up = True
    with owned_chain(free.store, "demo") as chain:
        assert deliver(chain, (receiver.sink(),), free.utc_now()) == ()
        assert deliver(chain, (receiver.sink(),), free.utc_now()) == ()
    events = [json.loads(request.content)["event"] for request in receiver.taken]
    assert events == [RAISED, RAISED, RESOLVED, RESOLVED]
    identities = [request.headers["X-Assay-Delivery"] for request in receiver.taken]
    assert len(set(identities)) == 4
    assert all(request.headers["X-Assay-Signature"] == signature(SECRET, request.content) for request in receiver.taken)


async def test_a_message_may_come_twice_but_with_one_id(free: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    await free.audit()
    receiver = Receiver()
    with owned_chain(free.store, "demo") as chain, monkeypatch.context() as patched:

        def killed(*given: object) -> None:
            raise KeyboardInterrupt

        sink = receiver.sink()
        chain.note("alert.sink", {"sink": sink.name, "at": free.utc_now()})
        patched.setattr(chain, "note", killed)  # dies between the receiver's answer and the note of it
        with pytest.raises(KeyboardInterrupt):
            deliver(chain, (sink,), free.utc_now())
    with owned_chain(free.store, "demo") as chain:
        deliver(chain, (receiver.sink(),), free.utc_now())
    identities = [request.headers["X-Assay-Delivery"] for request in receiver.taken]
    assert (len(identities), len(set(identities))) == (3, 2)


async def test_a_new_sink_is_told_what_stands_not_what_is_over(free: Laboratory, tmp_path: Path) -> None:
    await free.audit()
    Files(do="New. Task number 0", check=f"echo mended\n{Files().check}").write(free.suite / "free")
    free.lock()
    await free.audit()
    Files(check=f"{PASS}\n").write(free.suite / "t0")
    free.lock()
    file = tmp_path / "alerts.jsonl"
    await free.audit(alerts=AlertRequest(file=str(file)))
    told = [(line["event"], line["alert"]["finding"]["subject"]) for line in lines_of(file)]
    assert told == [(RAISED, subject) for subject in ("demo", "demo", "t0", "t0")]  # rate, jump, null, drift


async def test_a_file_that_cannot_be_written_keeps_its_messages(free: Laboratory, tmp_path: Path) -> None:
    report = await free.audit(alerts=AlertRequest(file=str(tmp_path / "missing" / "alerts.jsonl")))
    assert len(report.undelivered) == 1
    assert "2 message(s) wait" in report.undelivered[0]
    (tmp_path / "missing").mkdir()
    with owned_chain(free.store, "demo") as chain:
        assert deliver(chain, (FileSink(tmp_path / "missing" / "alerts.jsonl"),), free.utc_now()) == ()
    assert len(lines_of(tmp_path / "missing" / "alerts.jsonl")) == 2


def test_a_webhook_needs_a_whole_address_and_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ASSAY_WEBHOOK_SECRET", raising=False)
    with pytest.raises(ConfigError, match="needs a secret"):
        AlertRequest(webhook="https://hooks.example.org").sinks()
    monkeypatch.setenv("ASSAY_WEBHOOK_SECRET", SECRET)
    with pytest.raises(ConfigError, match="no address of a webhook"):
        AlertRequest(webhook="hooks.example.org").sinks()
