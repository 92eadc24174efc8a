"""Whatever is done to the database behind the store's back is named: by stream, event and what is wrong."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.records.base import canonical_json
from harness.records.errors import StoreError
from harness.records.event import chain_start, link_body
from harness.records.vocabulary import Outcome
from harness.store.memory import MemoryStore
from harness.store.sqlite import SqliteStore
from harness.store.verify import RunReport, verify_run, verify_stream, verify_trial
from tests.store.samples import carry_out, draft, move, result_of, run_row, trial_plan

TRIAL, OTHER = "run-a.0000.1", "run-a.0001.1"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with SqliteStore(tmp_path) as store:
        store.create_run(run_row())
        store.plan([trial_plan(slot=slot) for slot in range(3)])
        carry_out(store, TRIAL)
        carry_out(store, OTHER)
        store.append([draft("run-a", "adaptive.choice", {"item": "x"})])
    return tmp_path


@contextmanager
def tampering(folder: Path) -> Iterator[sqlite3.Connection]:
    """A connection without the triggers, as somebody with the file has it."""
    connection = sqlite3.connect(folder / "evidence.db", isolation_level=None)
    for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
        connection.execute(f"DROP TRIGGER {name}")
    yield connection
    connection.close()


def tamper(folder: Path, *statements: str) -> RunReport:
    with tampering(folder) as connection:
        for statement in statements:
            connection.execute(statement)
    with SqliteStore(folder) as store:
        return verify_run(store, "run-a")


def first(report: RunReport) -> tuple[str, int | None, str]:
    assert not report.ok
    problem = report.problems[0]
    return problem.stream, problem.seq, problem.what


def test_whole_evidence_verifies(folder: Path) -> None:
    with SqliteStore(folder) as store:
        report = verify_run(store, "latest")
        assert report.ok
        assert report.problems == ()
        assert report.notices == ()
        assert [trial.trial for trial in report.trials] == [TRIAL, OTHER, "run-a.0002.1"]
        assert report.events == sum(1 for stream in store.streams("run-a") for _ in store.events(stream))
        chain = verify_stream(store, TRIAL)
        assert (chain.ok, chain.events, chain.first) == (True, 9, None)
        assert chain.head == list(store.events(TRIAL))[-1].hash
        assert verify_trial(store, TRIAL).ok
        with pytest.raises(StoreError, match="no run"):
            verify_run(store, "nope")


def test_the_store_in_memory_verifies_by_the_same_rules() -> None:
    store = MemoryStore()
    store.create_run(run_row())
    store.plan([trial_plan()])
    carry_out(store, TRIAL)
    assert verify_run(store, "run-a").ok
    store._streams[TRIAL].pop()
    assert not verify_run(store, "run-a").ok


OF = f"WHERE trial = '{TRIAL}'"
AT = f"stream = '{TRIAL}' AND seq ="


@pytest.mark.parametrize(
    ("statements", "stream", "seq", "what"),
    [
        ([f"UPDATE events SET body = replace(body, '\"ls\"', '\"rm\"') WHERE {AT} 3"], TRIAL, 3, "was changed"),
        ([f"UPDATE events SET body = 'no json' WHERE {AT} 3"], TRIAL, 3, "was changed"),
        ([f"UPDATE events SET body = x'ff00' WHERE {AT} 3"], TRIAL, 3, "was changed"),
        ([f"UPDATE events SET body = 'ü' WHERE {AT} 3"], TRIAL, 3, "was changed"),
        ([f"UPDATE events SET hash = '00' WHERE {AT} 0"], TRIAL, 0, "was changed"),
        ([f"UPDATE events SET previous = hash WHERE {AT} 5"], TRIAL, 5, "was changed"),
        ([f"UPDATE events SET kind = 'note' WHERE {AT} 3"], TRIAL, 3, "wrong place"),
        ([f"UPDATE events SET seq = 'x' WHERE {AT} 8"], TRIAL, None, "for its number"),
        ([f"DELETE FROM events WHERE {AT} 0"], TRIAL, 0, "is missing"),
        ([f"DELETE FROM events WHERE {AT} 4"], TRIAL, 4, "is missing"),
        ([f"DELETE FROM events WHERE stream = '{TRIAL}' AND seq BETWEEN 2 AND 4"], TRIAL, 2, "up to 4 are missing"),
        (
            [
                f"UPDATE events SET seq = 99 WHERE {AT} 3",
                f"UPDATE events SET seq = 3 WHERE {AT} 4",
                f"UPDATE events SET seq = 4 WHERE {AT} 99",
            ],
            TRIAL,
            3,
            "does not continue",
        ),
        ([f"DELETE FROM events WHERE {AT} 8"], TRIAL, None, "no `trial.result` event: the tail is lost"),
        ([f"DELETE FROM events WHERE stream = '{TRIAL}' AND seq > 4"], TRIAL, None, "tail is lost"),
        ([f"DELETE FROM events WHERE stream = '{TRIAL}'"], TRIAL, None, "tail is lost"),
        (["DELETE FROM events WHERE stream = 'run-a' AND seq = 0"], "run-a", 0, "is missing"),
        (
            [f"UPDATE results SET body = replace(body, 'passed', 'failed') {OF}"],
            TRIAL,
            8,
            "stored result",
        ),
        ([f"DELETE FROM results {OF}"], TRIAL, 8, "stored result is gone"),
        (
            [f"DELETE FROM results {OF}", f"DELETE FROM events WHERE {AT} 8"],
            TRIAL,
            None,
            "no result",
        ),
        (
            [f"DELETE FROM trials {OF}"],
            "run-a",
            0,
            f"trial {TRIAL} was closed, but its plan is gone",
        ),
        ([f"UPDATE trials SET attempt = 7 {OF}"], TRIAL, None, "differ in attempt"),
        ([f"UPDATE trials SET task = 'easy' {OF}"], TRIAL, None, "differ in task_version"),
        ([f"UPDATE trials SET body = '[]' {OF}"], TRIAL, None, "plan is damaged"),
        (["UPDATE tasks SET body = replace(body, 'join', 'cat')"], TRIAL, None, "task does not have its digest"),
        (["DELETE FROM tasks"], TRIAL, None, "task does not have its digest"),
        (
            ["UPDATE runs SET body = replace(body, 'm/1', 'm/2')"],
            "run-a",
            None,
            "configuration does not have its digest",
        ),
        (["UPDATE runs SET body = '{'"], "run-a", None, "row is damaged"),
    ],
)
def test_every_tampering_is_named(folder: Path, statements: list[str], stream: str, seq: int | None, what: str) -> None:
    report = tamper(folder, *statements)
    assert not report.ok
    found = [(p.stream, p.seq) for p in report.problems if what in p.what]
    assert (stream, seq) in found, [str(problem) for problem in report.problems]
    whole = {OTHER, "run-a.0002.1"}
    if "tasks" not in statements[0]:
        assert not [problem for problem in report.problems if problem.stream in whole]


Body = dict[str, object]


def forge(connection: sqlite3.Connection, stream: str, keep: Callable[[Body], Body | None]) -> None:
    """Rewrite a stream with a chain of its own that is sound, as somebody with the code could."""
    rows = connection.execute("SELECT body FROM events WHERE stream = ? ORDER BY seq", (stream,)).fetchall()
    connection.execute("DELETE FROM events WHERE stream = ?", (stream,))
    previous, seq = chain_start(stream), 0
    for (text,) in rows:
        body = keep(json.loads(text))
        if body is None:
            continue
        encoded = canonical_json({**body, "seq": seq})
        digest = link_body(previous, encoded)
        connection.execute(
            "INSERT INTO events (stream, seq, kind, previous, hash, body) VALUES (?, ?, ?, ?, ?, ?)",
            (stream, seq, body["kind"], previous, digest, encoded.decode()),
        )
        previous, seq = digest, seq + 1


def test_a_forged_chain_that_is_sound_in_itself_is_found_by_the_runs_stream(folder: Path) -> None:
    def flip(body: Body) -> Body:
        forged: Body = json.loads(json.dumps(body).replace('"passed"', '"failed"'))
        return forged

    with tampering(folder) as connection:
        forge(connection, TRIAL, flip)
        connection.execute("UPDATE results SET body = replace(body, 'passed', 'failed') WHERE trial = ?", (TRIAL,))
    with SqliteStore(folder) as store:
        assert verify_stream(store, TRIAL).ok
        report = verify_trial(store, TRIAL)
    assert [(p.seq, p.what) for p in report.problems] == [
        (8, "is not the event that the run's stream closed the trial with")
    ]


def test_a_forged_shorter_and_a_longer_trial_are_found(folder: Path) -> None:
    with tampering(folder) as connection:
        forge(connection, TRIAL, lambda body: None if body["kind"] == "exec" else body)
    with SqliteStore(folder) as store:
        report = verify_trial(store, TRIAL)
        assert [p.what for p in report.problems] == ["the tail is lost: 9 events were closed, 6 are here"]
        store.append([draft(OTHER, "note")])
        report = verify_trial(store, OTHER)
        assert [(p.seq, p.what) for p in report.problems] == [(9, "was added after the trial was closed with 9 events")]


def test_illegal_moves_are_named(tmp_path: Path) -> None:
    with SqliteStore(tmp_path) as store:
        store.create_run(run_row())
        store.plan([trial_plan()])
        store.append([move(TRIAL, "planned"), move(TRIAL, "preparing"), move(TRIAL, "grading"), move(TRIAL, "planned")])
        store.append([move(TRIAL, "resting")])
        report = verify_trial(store, TRIAL)
        assert [(p.seq, p.what) for p in report.problems] == [
            (2, "a trial cannot go from preparing to grading"),
            (3, "a trial cannot go from grading to planned"),
            (4, "its move has no known target"),
        ]
        with pytest.raises(StoreError, match="last move"):
            store.trials("run-a")


def test_a_plan_that_is_not_the_one_the_trial_began_with_is_named(tmp_path: Path) -> None:
    with SqliteStore(tmp_path) as store:
        store.create_run(run_row())
        plan = trial_plan()
        store.plan([plan])
        said = {"to": "planned", "task": plan.task.id, "seed": 8, "solver": plan.solver.plain()}
        store.append([draft(TRIAL, "trial.state", said)])
        report = verify_trial(store, TRIAL)
        assert [p.what for p in report.problems] == ["the stored plan's seed is not the one the trial began with"]


def test_a_crash_between_a_trial_and_the_run_is_a_notice_not_damage(tmp_path: Path) -> None:
    with SqliteStore(tmp_path) as store:
        store.create_run(run_row())
        store.plan([trial_plan()])
        carry_out(store, TRIAL, close=False)
        report = verify_run(store, "run-a")
        assert report.ok
        assert report.notices == (
            f"{TRIAL}: the run's stream does not say where this trial ended; `assay resume` notes it",
        )


def test_streams_without_a_plan_are_verified_too(folder: Path) -> None:
    with SqliteStore(folder) as store:
        store.append([draft("run-a.0009.1"), draft("run-a.0009.1"), draft("run-ab")])
    report = tamper(folder, "UPDATE events SET hash = '0' WHERE stream = 'run-a.0009.1' AND seq = 0")
    assert first(report) == ("run-a.0009.1", 0, "its content does not have its hash: it was changed")
    assert report.notices == ("stream run-a.0009.1 belongs to no planned trial",)


def test_blobs_that_are_gone_or_changed_are_named_once(folder: Path) -> None:
    with SqliteStore(folder) as store:
        (event, *_) = store.events(TRIAL, ["exec"])
        path = store.blobs.path(event.blobs["stdout"])
        path.write_bytes(b"better output")
        assert [(p.seq, p.what.partition("(")[0]) for p in verify_trial(store, TRIAL).problems] == [
            (2, "its blob 'stdout' ")
        ]
        assert "another digest" in verify_trial(store, TRIAL).problems[0].what
        path.unlink()
        assert verify_trial(store, TRIAL).problems[0].what.endswith("is missing")
        assert verify_trial(store, OTHER).ok
        store.append([draft("run-a", blobs={"x": "not a digest"})])
        assert "not a digest" in verify_stream(store, "run-a").problems[0].what


def test_an_unreadable_page_is_a_problem_of_the_stream_not_an_exception(folder: Path) -> None:
    with SqliteStore(folder) as store:
        store.append([draft("run-a", payload={"body": "x" * 30_000}) for _ in range(20)])
    path = folder / "evidence.db"
    data = bytearray(path.read_bytes())
    offset = len(data) // 4096 // 2 * 4096
    data[offset : offset + 16 * 4096] = os.urandom(16 * 4096)
    path.write_bytes(bytes(data))
    with SqliteStore(folder) as store:
        chain = verify_stream(store, "run-a")
        assert not chain.ok
        assert chain.first is not None


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_single_change_to_any_event_is_found(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("any")
    with SqliteStore(folder) as store:
        store.create_run(run_row())
        store.plan([trial_plan()])
        carry_out(store, TRIAL, result_of(TRIAL, Outcome.FAILED))
        rows = list(store.stored_events(TRIAL))
    row = data.draw(st.sampled_from(rows))
    column = data.draw(st.sampled_from(["body", "hash", "previous", "kind"]))
    old = str(getattr(row, column))
    at = data.draw(st.integers(0, len(old) - 1))
    new = old[:at] + data.draw(st.sampled_from("0aZ~").filter(lambda c: c != old[at])) + old[at + 1 :]
    with tampering(folder) as connection:
        connection.execute(f"UPDATE events SET {column} = ? WHERE stream = ? AND seq = ?", (new, TRIAL, row.seq))
    with SqliteStore(folder) as store:
        problems = verify_stream(store, TRIAL).problems
        assert problems
        assert problems[0].seq == row.seq
