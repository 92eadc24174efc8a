"""`assay serve` and `assay schedule`: what they print, what they refuse, and their exit codes."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from harness.api.schedule_figures import find_schedule
from harness.api.schedule_request import read_schedule
from harness.api.schedule_serve import Serving
from harness.audit.schedule.scheduler import Scheduler
from harness.records.errors import StoreError
from harness.records.schedule import Findings, Firing, FiringState, Result, Ruling
from harness.store.firings import FiringTable
from harness.store.sqlite import SqliteStore

from .inside import assay

COMMAND = (sys.executable, "-c", "from harness.cli import main; main()")


@pytest.fixture
def schedule(tmp_path: Path) -> Path:
    """A schedule with one run that is never due while a test runs, so that nothing has to be audited."""
    (tmp_path / "suite").mkdir()
    (tmp_path / "run.toml").write_text(f'suite = "{tmp_path}/suite"\nsolver = "noop"\n')
    file = tmp_path / "schedule.toml"
    file.write_text(
        f'store = "{tmp_path}/store"\ntime_zone = "Europe/Berlin"\n'
        f'[[job]]\nname = "yearly"\ncron = "30 2 29 2 *"\nkind = "run"\nconfig = "{tmp_path}/run.toml"\n'
        "[concurrency]\ntrials = 3\n[server]\nport = 0\n"
    )
    return file


@contextmanager
def served(file: Path) -> Iterator[tuple[Serving, str]]:
    """A scheduler in a thread of this process, with its address."""
    serving, address, ready = Serving(read_schedule(file)), [""], threading.Event()

    def tell(found: str | None) -> None:
        address[0] = found or ""
        ready.set()

    thread = threading.Thread(target=serving.run, args=(tell,))
    thread.start()
    try:
        assert ready.wait(10)
        yield serving, address[0]
    finally:
        serving.stop()
        thread.join(10)
        assert not thread.is_alive()


def get(address: str, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=10)
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, body


def test_jobs_and_their_times_are_listed(schedule: Path) -> None:
    done = assay("schedule", "list", "--config", schedule)
    assert done.code == 0, done.err
    assert "At 02:30 on February 29, Europe/Berlin (30 2 29 2 *); next 2028-02-29T02:30" in done.out
    done = assay("schedule", "next", "--count", "2", "--config", schedule, "--json")
    assert [due["due"] for due in done.json] == ["2028-02-29T01:30:00.000000+00:00", "2032-02-29T01:30:00.000000+00:00"]
    assert done.json[0]["local"] == "2028-02-29T02:30:00+01:00"
    unknown = assay("schedule", "next", "--job", "daily", "--config", schedule)
    assert (unknown.code, "there is no job 'daily'" in unknown.err, "yearly" in unknown.err) == (2, True, True)


def test_a_schedule_is_found_by_its_store_once_it_was_served(schedule: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    before = assay("schedule", "list", "--store", store)
    assert (before.code, "no schedule was served" in before.err) == (2, True)
    with served(schedule):
        pass
    schedule.write_text("nothing of the kind")
    assert assay("schedule", "list", "--store", store, "--json").json[0]["job"]["name"] == "yearly"
    assert (store / "slots" / "budget").read_text() == "3\n"
    shutil.copytree(store, tmp_path / "copy")
    assert find_schedule(None, str(tmp_path / "copy")).store == str(tmp_path / "copy")


def test_history_shows_how_firings_came_out(schedule: Path, tmp_path: Path) -> None:
    job = read_schedule(schedule).jobs[0]
    due = "2026-03-01T07:00:00.000000+00:00"
    firing = Firing(
        number=0,
        job=job,
        due=due,
        first_due="2026-03-01T05:00:00.000000+00:00",
        missed=2,
        ruling=Ruling.LATE,
        state=FiringState.OVER,
        claimed=due,
        claimed_by="process 1 on here",
        started="2026-03-01T07:10:00.000000+00:00",
        finished="2026-03-01T07:30:00.000000+00:00",
        lateness_s=600.0,
        result=Result.FAILED,
        found=Findings(exit_code=5, message="the engine is away"),
    )
    with SqliteStore(tmp_path / "store") as store, FiringTable(store).changing() as changing:
        changing.add(firing)
    done = assay("schedule", "history", "--config", schedule)
    assert done.code == 0
    assert "failed, at 2026-03-01T07:30:00Z, late, for 3 times since 2026-03-01T05:00:00Z, 600 s late" in done.out
    assert "the engine is away" in done.out
    assert assay("schedule", "history", "--store", tmp_path / "store", "--json").json[0]["found"]["exit_code"] == 5
    assert assay("schedule", "history", "--job", "other", "--store", tmp_path / "store").out == "no firing yet\n"
    assert assay("schedule", "history", "--store", tmp_path / "nowhere").code == 2


def test_health_and_metrics(schedule: Path, tmp_path: Path) -> None:
    with served(schedule) as (serving, address):
        assert address.startswith("http://127.0.0.1:")
        assert get(address, "/healthz") == (200, '{"status": "ok", "jobs": 1, "running": 0}\n')
        status, text = get(address, "/metrics?x=1")
        assert status == 200
        assert 'assay_job_running{job="yearly",kind="run"} 0' in text
        assert "assay_trial_slots 3" in text
        assert get(address, "/")[0] == 404
        serving._problem = "the disk is full"
        assert get(address, "/healthz")[0] == 503


def test_a_store_that_refuses_for_a_while_is_told_and_outlived(schedule: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuses = [False]
    tick = Scheduler.tick

    def refusing(self: Scheduler) -> None:
        if refuses[0]:
            raise StoreError("another process has kept the store locked for too long")
        tick(self)

    monkeypatch.setattr(Scheduler, "tick", refusing)
    with served(schedule) as (serving, address):
        refuses[0] = True
        serving.wake()
        assert seen(lambda: get(address, "/healthz")[0] == 503)
        assert "kept the store locked" in get(address, "/healthz")[1]
        assert "assay_schedule_store_errors_total 1" in get(address, "/metrics")[1]
        refuses[0] = False
        serving.wake()
        assert seen(lambda: get(address, "/healthz")[0] == 200)


def test_a_store_that_is_locked_when_it_starts_is_refused(
    schedule: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    SqliteStore(tmp_path / "store").close()
    monkeypatch.setattr("harness.api.schedule_serve.SqliteStore", partial(SqliteStore, busy_s=0.05))
    other = sqlite3.connect(tmp_path / "store" / "evidence.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="kept the store locked for too long") as caught:
        Serving(read_schedule(schedule)).run(lambda address: None)
    assert caught.value.exit_code == 2
    other.close()


def seen(what: object) -> bool:
    """Whether it comes to be so within ten seconds."""
    assert callable(what)
    moment = threading.Event()
    for _ in range(500):
        if what():
            return True
        moment.wait(0.02)
    return False


def test_a_port_that_is_taken_and_a_store_that_is_none_are_refused(schedule: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run([*COMMAND, "serve", schedule, "--port", str(port)], capture_output=True, text=True)
    assert (done.returncode, f"127.0.0.1:{port}: cannot listen: Address already in use" in done.stderr) == (5, True)
    (tmp_path / "file").write_text("")
    done = subprocess.run([*COMMAND, "serve", schedule, "--store", tmp_path / "file"], capture_output=True, text=True)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    schedule.write_text(schedule.read_text().replace("30 2", "99 2"))
    done = subprocess.run([*COMMAND, "serve", schedule], capture_output=True, text=True)
    assert done.returncode == 2
    assert "schedule.toml:5: job.0.cron: '99 2 29 2 *': not a cron line: bad minute" in done.stderr


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order(schedule: Path, sent: signal.Signals) -> None:
    with subprocess.Popen([*COMMAND, "serve", schedule], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "1 job(s) on" in process.stderr.readline()
        assert "/healthz" in process.stderr.readline()
        os.kill(process.pid, sent)
        assert "schedule.draining" in process.stderr.read()
    assert process.returncode == 0


def test_the_scheduler_carries_no_engine_and_no_arrays() -> None:
    code = "import sys, json, harness.cli.serve; print(json.dumps([m for m in sys.modules if '.' not in m]))"
    loaded = json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
    assert not {"numpy", "scipy", "pandas", "docker", "httpx", "uvicorn"} & set(loaded)
