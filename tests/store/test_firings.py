"""The schedule's tables: kept apart from evidence, and strict about what is over."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.records.errors import StoreError
from harness.records.schedule import Findings, Firing, FiringState, Job, JobKind, JobTimes, Result, Ruling
from harness.store import schema
from harness.store.firings import FiringTable, who
from harness.store.sqlite import SqliteStore

JOB = Job(name="nightly", cron="0 * * * *", zone="UTC", kind=JobKind.GOLD, suite="demo")


def firing(hour: int, **changes: object) -> Firing:
    due = f"2026-03-01T{hour:02}:00:00.000000+00:00"
    made = Firing(
        number=0,
        job=JOB,
        due=due,
        first_due=due,
        ruling=Ruling.ON_TIME,
        state=FiringState.CLAIMED,
        claimed=due,
        claimed_by="process 1 on here",
    )
    return made.model_copy(update=changes)


def ended(hour: int, result: Result) -> Firing:
    at = f"2026-03-01T{hour:02}:30:00.000000+00:00"
    return firing(hour, state=FiringState.OVER, finished=at, result=result, found=Findings(exit_code=0))


@pytest.fixture
def table(tmp_path: Path) -> FiringTable:
    return FiringTable(SqliteStore(tmp_path / "store"))


def test_firings_are_numbered_listed_and_counted(table: FiringTable) -> None:
    with table.changing() as changing:
        for hour, result in ((1, Result.OK), (2, Result.ALERT), (3, Result.OK)):
            changing.add(ended(hour, result))
        last = changing.add(firing(4))
    assert [one.number for one in table.history()] == [4, 3, 2, 1]
    assert [one.number for one in table.history("nightly", 1)] == [4]
    assert table.history("other") == ()
    assert table.counts() == {("nightly", "ok"): 2, ("nightly", "alert"): 1}
    assert table.open_firings() == (last,)
    assert table.firing(4) == last
    newest = table.last("nightly", "alert")
    assert newest is not None
    assert newest.due[11:13] == "02"
    with pytest.raises(StoreError, match="there is no firing 9"):
        table.firing(9)


def test_a_time_has_one_firing_and_a_job_one_that_is_open(table: FiringTable) -> None:
    with table.changing() as changing:
        changing.add(firing(1))
        assert changing.fired("nightly", firing(1).due)
        assert not changing.fired("nightly", firing(2).due)
    for second in (ended(1, Result.OK), firing(2)):
        with pytest.raises(StoreError, match="UNIQUE"), table.changing() as changing:
            changing.add(second)
    assert len(table.history()) == 1


def test_a_transaction_is_all_or_nothing(table: FiringTable) -> None:
    def cut_short() -> None:
        with table.changing() as changing:
            changing.add(firing(1))
            changing.decide(JobTimes(job="nightly", line=JOB.line, decided=firing(1).due))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        cut_short()
    assert table.history() == ()
    assert table.looking().times("nightly") is None


def test_settings_and_locks(table: FiringTable) -> None:
    assert table.setting("served") is None
    table.set("served", "a")
    table.set("served", "b")
    assert table.setting("served") == "b"
    lock = table.take("nightly")
    assert lock is not None
    assert table.take("nightly") is None
    assert f"process {os.getpid()} on " in who(table.held("nightly"))
    os.close(lock)
    assert table.held("nightly") is None


def test_an_archive_of_an_earlier_assay_is_read_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a medium that cannot be written to, a store without the schedule's tables still shows its evidence."""
    folder = tmp_path / "store"
    with monkeypatch.context() as earlier:
        earlier.setattr("harness.store.sqlite.SCHEMA_VERSION", schema.EVIDENCE_VERSION)
        migrate = schema.migrate
        earlier.setattr(
            "harness.store.sqlite.migrate", lambda connection: migrate(connection, target=schema.EVIDENCE_VERSION)
        )
        SqliteStore(folder).close()
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with SqliteStore(folder) as store:
        assert store.runs() == ()
        assert not FiringTable(store).there
    monkeypatch.undo()
    with SqliteStore(folder) as store:
        assert FiringTable(store).there
