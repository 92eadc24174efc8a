"""The store on disk: schema, refusals, durability, several processes, a full disk, a torn file."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from harness.records.errors import StoreError
from harness.records.event import Event
from harness.store import schema
from harness.store.blobs import BlobFolder
from harness.store.salvage import examine
from harness.store.sqlite import SqliteStore
from harness.store.verify import verify_run
from tests.store.samples import carry_out, draft, result_of, run_row, trial_plan

ROOT = Path(__file__).parents[2]


def raw(folder: Path) -> sqlite3.Connection:
    return sqlite3.connect(folder / "evidence.db", isolation_level=None)


def filled(folder: Path, trials: int = 2) -> None:
    with SqliteStore(folder) as store:
        store.create_run(run_row())
        store.plan([trial_plan(slot=slot) for slot in range(trials)])
        for slot in range(trials):
            carry_out(store, trial_plan(slot=slot).trial)


def start(script: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
        text=True,
    )


def test_settings_that_make_evidence_durable(tmp_path: Path) -> None:
    with SqliteStore(tmp_path) as store:
        pragma = {name: store._one(f"PRAGMA {name}") for name in ("journal_mode", "synchronous", "foreign_keys")}
    assert pragma == {"journal_mode": ("wal",), "synchronous": (2,), "foreign_keys": (1,)}


def test_evidence_survives_reopening_and_chains_go_on(tmp_path: Path) -> None:
    filled(tmp_path)
    with SqliteStore(tmp_path) as store:
        last = list(store.events("run-a"))[-1]
        (added,) = store.append([draft("run-a")])
        assert (added.seq, added.previous) == (last.seq + 1, last.hash)
        assert verify_run(store, "run-a").ok


@pytest.mark.parametrize("table", ["runs", "tasks", "trials", "events", "results"])
def test_triggers_refuse_to_change_evidence(tmp_path: Path, table: str) -> None:
    filled(tmp_path)
    connection = raw(tmp_path)
    for statement in (f"UPDATE {table} SET body = '{{}}'", f"DELETE FROM {table}"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            connection.execute(statement)
    with SqliteStore(tmp_path) as store:
        assert verify_run(store, "run-a").ok


def test_insert_or_replace_does_not_slip_past_the_triggers(tmp_path: Path) -> None:
    filled(tmp_path)
    connection = raw(tmp_path)
    for table in ("runs", "tasks", "trials", "events", "results"):
        with pytest.raises(sqlite3.IntegrityError, match=f"REPLACE on {table} refused"):
            connection.execute(f"INSERT OR REPLACE INTO {table} SELECT * FROM {table}")
    with pytest.raises(sqlite3.IntegrityError, match="REPLACE on events refused"):
        connection.execute(
            "REPLACE INTO events (stream, seq, kind, previous, hash, body) VALUES ('run-a', 1, '', '', '', '')"
        )


def test_the_schema_says_its_name_version_and_history(tmp_path: Path) -> None:
    SqliteStore(tmp_path).close()
    connection = raw(tmp_path)
    assert connection.execute("PRAGMA user_version").fetchone() == (schema.SCHEMA_VERSION,)
    assert connection.execute("PRAGMA application_id").fetchone() == (schema.APPLICATION_ID,)
    history = connection.execute("SELECT version, name FROM schema_history ORDER BY version").fetchall()
    assert history == [(number, name) for number, (name, _) in enumerate(schema.MIGRATIONS, start=1)]


def test_every_older_version_is_migrated_with_its_evidence(tmp_path: Path) -> None:
    for version in range(1, schema.SCHEMA_VERSION):
        folder = tmp_path / str(version)
        folder.mkdir()
        connection = raw(folder)
        schema.migrate(connection, target=version)
        connection.close()
        assert schema.version_of(raw(folder)) == version
        filled(folder)
        with SqliteStore(folder) as store:
            assert verify_run(store, "run-a").ok
        assert schema.version_of(raw(folder)) == schema.SCHEMA_VERSION


def test_a_future_version_and_a_strange_file_are_refused_in_one_sentence(tmp_path: Path) -> None:
    filled(tmp_path)
    connection = raw(tmp_path)
    connection.execute("PRAGMA user_version = 999")
    connection.close()
    with pytest.raises(StoreError, match="has schema assay-evidence version 999; this Assay reads up to") as caught:
        SqliteStore(tmp_path)
    assert "\n" not in str(caught.value)
    other = tmp_path / "other"
    other.mkdir()
    raw(other).execute("CREATE TABLE mine (x)")
    with pytest.raises(StoreError, match="not an Assay evidence store"):
        SqliteStore(other)


def test_a_failed_migration_leaves_the_old_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(tmp_path)
    broken = (*schema.MIGRATIONS, ("breaks halfway", "CREATE TABLE half (x); SELECT * FROM nowhere;"))
    monkeypatch.setattr(schema, "MIGRATIONS", broken)
    connection = raw(tmp_path)
    with pytest.raises(sqlite3.OperationalError, match="nowhere"):
        schema.migrate(connection, target=len(broken))
    assert schema.version_of(connection) == len(broken) - 1
    assert connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'half'").fetchone() == (0,)


WRITER = """
import sys
from tests.store.samples import *
from harness.store.sqlite import SqliteStore
folder, run = sys.argv[1:]
store = SqliteStore(folder)
store.create_run(run_row(run))
with store.own(run):
    print("ready", flush=True)
    sys.stdin.readline()
    store.plan([trial_plan(run, slot=slot) for slot in range(4)])
    for slot in range(4):
        carry_out(store, f"{run}.{slot:04d}.1")
"""


def test_two_processes_write_two_runs_into_a_store_they_create_together(tmp_path: Path) -> None:
    processes = [start(WRITER, str(tmp_path), run) for run in ("one", "two")]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.communicate("go\n")
        assert process.returncode == 0
    with SqliteStore(tmp_path) as store:
        assert sorted(row.run for row in store.runs()) == ["one", "two"]
        for run in ("one", "two"):
            report = verify_run(store, run)
            assert report.ok, report.problems
            assert len(report.trials) == 4
        assert store._one("SELECT count(*) FROM tasks") == (1,)


def test_a_second_writer_of_a_stream_is_refused_not_mixed_in(tmp_path: Path) -> None:
    with SqliteStore(tmp_path) as one, SqliteStore(tmp_path) as two:
        one.append([draft("s", payload={"by": 1})])
        two.append([draft("s", payload={"by": 2})])
        with pytest.raises(StoreError, match="another process has written to other, s since"):
            one.append([draft("other"), draft("s", payload={"by": 1})])
        assert [event.payload["by"] for event in one.events("s")] == [1, 2]
        assert list(one.events("other")) == []
        with one.own("s"):  # an owner looks anew
            assert one.append([draft("s")])[0].seq == 2


KILLED = """
import sys, time
from tests.store.samples import *
from harness.store.sqlite import SqliteStore
store = SqliteStore(sys.argv[1])
store.create_run(run_row())
with store.own("run-a"):
    n = 0
    while True:
        store.append([draft("run-a", payload={"n": n + i}) for i in range(5)])
        n += 5
        print(n, flush=True)
"""


def test_what_append_returned_from_is_there_after_sigkill_and_the_run_is_free(tmp_path: Path) -> None:
    process = start(KILLED, str(tmp_path))
    assert process.stdout is not None
    acknowledged = 0
    for _ in range(10):
        acknowledged = int(process.stdout.readline())
    with SqliteStore(tmp_path) as store:
        assert store.owned("run-a")
        with pytest.raises(StoreError, match=f"owned by process {process.pid} on "), store.own("run-a"):
            pytest.fail("owned twice")
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not store.owned("run-a")
        kept = [event.payload["n"] for event in store.events("run-a")]
        assert kept == list(range(len(kept)))
        assert len(kept) >= acknowledged
        assert len(kept) % 5 == 0  # a batch is whole or absent
        with store.own("run-a"):
            assert store.append([draft("run-a")])[0].seq == len(kept)


def fill_up(store: SqliteStore, stream: str) -> tuple[list[Event], StoreError]:
    kept: list[Event] = []
    while len(kept) < 10_000:
        try:
            kept += store.append([draft(stream, payload={"n": len(kept), "body": "x" * 2000})])
        except StoreError as error:
            return kept, error
    raise AssertionError("the store never filled up")


def test_a_full_database_says_so_and_loses_nothing(tmp_path: Path) -> None:
    filled(tmp_path)
    with SqliteStore(tmp_path) as store:
        pages = store._one("PRAGMA page_count")
        assert pages is not None
        store._one(f"PRAGMA max_page_count = {pages[0] + 20}")
        kept, error = fill_up(store, "s")
        assert "disk is full" in str(error)
        assert "free space" in str(error)
        assert list(store.events("s")) == kept
        assert kept
        assert verify_run(store, "run-a").ok
        store._one("PRAGMA max_page_count = 1000000")
        (event,) = store.append([draft("s")])
        assert (event.seq, event.previous) == (len(kept), kept[-1].hash)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a file system needs root")
def test_a_store_on_a_read_only_medium_can_be_read(tmp_path: Path) -> None:
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(tmp_path)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip(f"no mount: {mounted.stderr.decode(errors='replace')}")
    try:
        with SqliteStore(tmp_path) as store:
            store.create_run(run_row())
            (event,) = store.append([draft("run-a")])
            blob = store.put_blob(b"body")
        subprocess.run(["mount", "-o", "remount,ro", str(tmp_path)], check=True)
        with SqliteStore(tmp_path) as sealed:
            assert list(sealed.events("run-a")) == [event]
            assert sealed.blob(blob) == b"body"
            assert verify_run(sealed, "run-a").ok
            assert not sealed.owned("run-a")
            with pytest.raises(StoreError, match="cannot be written to"):
                sealed.append([draft("run-a")])
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_full_file_system_says_so_and_loses_nothing(tmp_path: Path) -> None:
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(tmp_path)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip(f"no mount: {mounted.stderr.decode(errors='replace')}")
    try:
        with SqliteStore(tmp_path) as store:
            small = store.put_blob(b"small")
            kept, error = fill_up(store, "s")
            assert "disk is full" in str(error)
            with pytest.raises(StoreError, match="disk is full"):
                store.put_blob(os.urandom(4_000_000))
            assert store.blob(small) == b"small"
            assert list(store.events("s")) == kept
        assert not list((tmp_path / "blobs").glob(".tmp*"))
        assert examine(tmp_path).findings == ()
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_a_torn_database_is_named_with_what_can_be_read(tmp_path: Path) -> None:
    filled(tmp_path, trials=40)
    path = tmp_path / "evidence.db"
    whole = path.read_bytes()
    sound = examine(tmp_path)
    assert sound.ok
    assert sound.readable == {"runs": 1, "tasks": 1, "trials": 40, "events": 400, "results": 40}
    named: list[str] = []
    for share in (0.02, 0.3, 0.6, 0.95):
        path.write_bytes(whole[: int(len(whole) * share)])
        found = examine(tmp_path)
        assert not found.ok
        try:
            with SqliteStore(tmp_path) as store:
                report = verify_run(store, "run-a")
                assert not report.ok
        except StoreError as error:
            named.append(str(error))
    assert named
    assert all("damaged" in message for message in named)
    path.write_bytes(b"not a database at all" * 500)
    with pytest.raises(StoreError, match=r"damaged .*nothing can be read of it"):
        SqliteStore(tmp_path)


def test_a_damaged_page_costs_only_what_is_on_it(tmp_path: Path) -> None:
    filled(tmp_path, trials=40)
    path = tmp_path / "evidence.db"
    data = bytearray(path.read_bytes())
    middle = len(data) // 8192 * 4096
    data[middle : middle + 4096] = os.urandom(4096)
    path.write_bytes(bytes(data))
    found = examine(tmp_path)
    assert not found.ok
    assert found.findings
    assert sum(found.readable.values()) > 400
    assert "readable: 1 runs" in str(found)


def test_a_wal_cut_at_any_place_costs_at_most_the_last_batches(tmp_path: Path) -> None:
    folder = tmp_path / "live"
    store = SqliteStore(folder)  # left open: closing would move the log into the database
    store.create_run(run_row())
    for n in range(30):
        store.append([draft("run-a", payload={"n": 2 * n + i}) for i in range(2)])
    log, database = (folder / "evidence.db-wal").read_bytes(), (folder / "evidence.db").read_bytes()
    copy = tmp_path / "copy"
    copy.mkdir()
    counts = []
    for cut in range(0, len(log) + 1, max(1, len(log) // 40)):
        (copy / "evidence.db").write_bytes(database)
        (copy / "evidence.db-wal").write_bytes(log[:cut])
        (copy / "evidence.db-shm").unlink(missing_ok=True)
        with SqliteStore(copy) as reader:
            kept = [event.payload["n"] for event in reader.events("run-a")]
        assert kept == list(range(len(kept)))
        counts.append(len(kept))
    store.close()
    assert counts == sorted(counts)
    assert counts[0] == 0
    assert counts[-1] >= 56


def test_a_blob_is_never_seen_torn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blobs = BlobFolder(tmp_path)

    def refuse(source: object, target: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(StoreError, match="disk is full"):
        blobs.put(b"body")
    monkeypatch.undo()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    digest = blobs.put(b"body")
    assert blobs.path(digest).read_bytes() == b"body"
    blobs.path(digest).write_bytes(b"bo")
    with pytest.raises(StoreError, match="damaged"):
        blobs.get(digest)
    assert blobs.put(b"body") == digest  # torn by something else: written anew
    assert blobs.get(digest) == b"body"
    for nonsense in ("sha256:../../etc/passwd", "", "md5:00"):
        with pytest.raises(StoreError, match="not a digest"):
            blobs.get(nonsense)


def test_names_never_become_paths(tmp_path: Path) -> None:
    inside = tmp_path / "store"
    names = ["../x", "a/b c", "CON", "x" * 200, ".", "\u202eabc", "a\x00b"]
    with SqliteStore(inside) as store:
        for name in names:
            store.create_run(run_row(name, agent=name))
            with store.own(name):
                assert store.owned(name)
        assert [row.config.agent for row in store.runs()] == names
    assert [path.name for path in tmp_path.iterdir()] == ["store"]
    assert {path.name for path in inside.iterdir()} >= {"evidence.db", "blobs", "leases"}
    assert all(path.suffix == ".lock" for path in (inside / "leases").iterdir())


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="file"):
        SqliteStore(tmp_path / "file" / "store")


def test_finishing_is_one_transaction(tmp_path: Path) -> None:
    with SqliteStore(tmp_path) as store:
        store.create_run(run_row())
        store.plan([trial_plan()])
        trial = trial_plan().trial
        store._connection.execute(
            "CREATE TRIGGER no_result BEFORE INSERT ON results BEGIN SELECT RAISE(ABORT, 'no'); END"
        )
        with pytest.raises(StoreError, match="refused: no"):
            store.finish(result_of(trial), [draft(trial)])
        assert list(store.events(trial)) == []
        store._connection.execute("DROP TRIGGER no_result")
        assert store.finish(result_of(trial), [draft(trial)])[0].seq == 0
