"""Firings carried out on a laboratory's suite: what stands in the store afterwards, and what sinks hear."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import datetime, timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, cast

import pytest

import harness.api.audit_request
import harness.api.schedule_work
from harness.api.audit_request import AlertRequest
from harness.api.runs import Watch
from harness.api.schedule_request import AlertsEntry, Schedule, read_schedule
from harness.api.schedule_work import Means, alert_request, check_suites, perform, run_now
from harness.audit.schedule.checks import Checks
from harness.audit.schedule.decide import stamp
from harness.audit.schedule.scheduler import made
from harness.audit.sinks import WebhookSink, signature
from harness.cli.execution import exit_code
from harness.records.audit import Policy
from harness.records.errors import ConfigError
from harness.records.schedule import Dues, Firing, FiringState, Job, JobKind, Result, Ruling
from harness.runner.run import RunControl
from harness.store.firings import FiringTable
from harness.store.memory import MemoryStore
from harness.store.sqlite import SqliteStore

from ..worlds import ACTORS, PASS, Files, Laboratory

pytestmark = pytest.mark.anyio
SECRET = "a secret"


class Place:
    """A laboratory with a schedule's tables, which a store in memory does not have."""

    def __init__(self, laboratory: Laboratory, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.laboratory, self.folder = laboratory, folder
        store = SqliteStore(folder)
        laboratory.store = cast(MemoryStore, store)
        patch.setattr(harness.api.schedule_work, "open_store", lambda folder, create=False: nullcontext(store))
        self.table = FiringTable(store)
        laboratory.write({f"t{number}": Files(do=f"Task {number}") for number in range(3)})

    def clock(self) -> datetime:
        return self.laboratory.now

    def job(self, kind: JobKind = JobKind.FULL_AUDIT, **options: Any) -> Job:
        options = {"mutants": 0} if kind is JobKind.FULL_AUDIT and not options else options
        suite = str(self.laboratory.suite)
        return Job(name="nightly", cron="0 * * * *", zone="UTC", kind=kind, suite=suite, options=options)

    def means(self, alerts: AlertRequest | None = None, control: RunControl | None = None) -> Means:
        return Means(
            store=str(self.folder),
            policy=Policy(),
            alerts=alerts or AlertRequest(),
            exit_code=lambda summary, interrupted: exit_code(summary, interrupted=interrupted),
            control=control or RunControl(),
            clock=self.clock,
        )

    def claimed(self, job: Job) -> Firing:
        due = stamp(self.clock())
        with self.table.changing() as changing:
            return changing.add(made(job, Dues(due=due, first_due=due, missed=0), Ruling.ON_TIME, self.clock()))

    async def carry_out(self, job: Job, **means: Any) -> Firing:
        firing = self.claimed(job)
        self.laboratory.pass_time(seconds=20)
        return await perform(firing.number, self.means(**means), Watch())

    def schedule(self, **alerts: Any) -> Schedule:
        file = self.laboratory.root / "schedule.toml"
        lines = [
            "[[job]]",
            'name = "nightly"',
            'cron = "0 * * * *"',
            'kind = "gold"',
            f'suite = "{self.laboratory.suite}"',
        ]
        file.write_text("\n".join(lines))
        schedule = read_schedule(file, str(self.folder))
        return schedule.model_copy(update={"alerts": AlertsEntry(**alerts)})


@pytest.fixture
def place(laboratory: Laboratory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(laboratory, tmp_path / "store", monkeypatch)


async def test_an_audit_leaves_its_cycle_its_lateness_and_what_is_achievable(place: Place) -> None:
    firing = await place.carry_out(place.job())
    assert (firing.result, firing.found.exit_code) == (Result.OK, 0)
    assert (firing.found.achievable, firing.found.tasks) == (3, 3)
    assert firing.found.cycle is not None
    assert len(firing.found.runs) == 2
    assert firing.lateness_s == pytest.approx(20, abs=1)
    assert place.table.firing(firing.number) == firing


@pytest.mark.parametrize("kind", [kind for kind in JobKind if kind.audits])
async def test_every_kind_of_audit_is_one(place: Place, kind: JobKind) -> None:
    firing = await place.carry_out(place.job(kind, retries=0))
    assert firing.result in (Result.OK, Result.ALERT), firing.found
    again = await place.carry_out(place.job(kind, retries=0))
    assert (again.found.cycle is None) == (kind is JobKind.TARGETED_GOLD)  # nothing had changed


async def test_a_broken_task_is_an_alert_and_not_a_failure(place: Place) -> None:
    Files(check=f"{PASS}\n").write(place.laboratory.suite / "t0")
    place.laboratory.lock()
    firing = await place.carry_out(place.job())
    assert (firing.result, firing.found.exit_code, firing.found.achievable) == (Result.ALERT, 3, 2)
    assert "standing" in firing.found.message


async def test_a_run_is_carried_out_and_one_that_was_begun_is_resumed(place: Place) -> None:
    job = place.job(JobKind.CALIBRATION_RUN, solver=f"{ACTORS}:Counting", solver_options={"below": 2}, agent="counting")
    firing = await place.carry_out(job)
    assert (firing.result, firing.found.exit_code) == (Result.OK, 0)
    [run] = firing.found.runs
    again = place.claimed(job)
    with place.table.changing() as changing:
        changing.change(again.model_copy(update={"found": firing.found, "deaths": 0}))
    resumed = await perform(again.number, place.means(), Watch())
    assert resumed.found.runs == (run,)
    assert len(place.table.store.runs()) == 1


async def test_while_the_suite_is_audited_a_firing_waits(place: Place) -> None:
    with place.table.store.own("audit/demo"):
        firing = await place.carry_out(place.job())
    assert (firing.state, firing.result) == (FiringState.WAITING, None)
    assert firing.not_before == stamp(place.clock() + timedelta(seconds=15))
    done = await perform(firing.number, place.means(), Watch())
    assert done.result is Result.OK
    assert done.started == firing.started


async def test_what_cannot_be_done_fails_with_its_message_and_its_exit_code(place: Place) -> None:
    (place.laboratory.suite / "suite.lock").unlink()
    firing = await place.carry_out(place.job())
    assert (firing.result, firing.found.exit_code) == (Result.FAILED, 2)
    assert "not locked" in firing.found.message


async def test_an_interrupted_firing_is_not_over(place: Place) -> None:
    control = RunControl()
    control.interrupt()
    firing = await place.carry_out(place.job(), control=control)
    assert (firing.state, firing.finished) == (FiringState.INTERRUPTED, None)
    done = await perform(firing.number, place.means(), Watch())
    assert (done.result, done.deaths) == (Result.OK, 0)


async def test_one_by_hand_that_is_interrupted_is_over(place: Place) -> None:
    control = RunControl()
    control.interrupt()
    firing = await run_now(place.job(), place.means(control=control), Watch())
    assert (firing.state, firing.result, firing.found.exit_code) == (FiringState.OVER, Result.FAILED, 130)


async def test_a_job_by_hand_takes_up_what_is_left_and_is_refused_while_it_runs(place: Place) -> None:
    job = place.job()
    left = place.claimed(job)
    taken = await run_now(job, place.means(), Watch())
    assert (taken.number, taken.result) == (left.number, Result.OK)
    place.laboratory.pass_time(minutes=1)
    by_hand = await run_now(job, place.means(), Watch())
    assert (by_hand.number, by_hand.ruling) == (left.number + 1, Ruling.BY_HAND)
    with place.table.store.own("schedule/nightly"), pytest.raises(ConfigError, match="job 'nightly' is under way in"):
        await run_now(job, place.means(), Watch())


class Receiver(BaseHTTPRequestHandler):
    """A webhook of this machine, which may be down."""

    up = True
    taken: list[tuple[str, str]]
    tried: int

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        type(self).tried += 1
        if self.up:
            assert self.headers["X-Assay-Signature"] == signature(SECRET, body)
            self.taken.append((self.headers["X-Assay-Delivery"], json.loads(body)["event"]))
        self.send_response(204 if self.up else 503)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[type[Receiver], str]]:
    kind = type("Receiving", (Receiver,), {"taken": [], "tried": 0, "up": True})
    monkeypatch.setenv("ASSAY_WEBHOOK_SECRET", SECRET)
    monkeypatch.setattr(harness.api.audit_request, "WebhookSink", partial(WebhookSink, pause_s=0.0))
    with HTTPServer(("127.0.0.1", 0), kind) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield kind, f"http://127.0.0.1:{server.server_address[1]}/hook"
        server.shutdown()
        thread.join()


async def test_a_webhook_that_is_down_for_an_hour_loses_nothing(
    place: Place, receiver: tuple[type[Receiver], str]
) -> None:
    hook, url = receiver
    schedule = place.schedule(webhook=url)
    hook.up = False
    Files(check=f"{PASS}\n").write(place.laboratory.suite / "t0")
    place.laboratory.lock()
    firing = await place.carry_out(place.job(), alerts=alert_request(schedule.alerts))
    assert (firing.result, firing.found.undelivered) == (Result.ALERT, 1)
    down_until, looks = place.clock() + timedelta(hours=1), 0
    checks = Checks(place.clock() + timedelta(hours=1), schedule.alerts.check_s).by(
        place.clock() + timedelta(seconds=60)
    )
    while not hook.taken:
        place.laboratory.now = max(checks.due, place.clock())
        hook.up = place.clock() >= down_until
        waiting = check_suites(schedule)
        assert bool(waiting) != hook.up
        checks, looks = checks.after(place.clock(), waiting=bool(waiting)), looks + 1
    assert place.clock() - down_until <= timedelta(minutes=15)
    assert looks < 12  # it was not hammered meanwhile
    history = [event.payload["id"] for event in place.table.store.events("audit/demo", ["alert.raised"])]
    assert [identity.partition(".")[0] for identity, _ in hook.taken] == [one.partition(".")[0] for one in history]
    assert len(set(hook.taken)) == len(hook.taken)
    assert check_suites(schedule) == ()


async def test_a_cycle_that_fails_is_told_to_whoever_listens(
    place: Place, receiver: tuple[type[Receiver], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hook, url = receiver
    monkeypatch.setattr(
        "harness.api.audit_cycle.execute", lambda request, watch: (_ for _ in ()).throw(ConfigError("gone"))
    )
    firing = await place.carry_out(place.job(), alerts=alert_request(place.schedule(webhook=url).alerts))
    assert (firing.result, firing.found.message) == (Result.FAILED, "gone")
    assert len(hook.taken) == 2  # a cycle without an end, and gold that is absent
