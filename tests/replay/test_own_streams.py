"""Faults in a stored run of our own: its chain is derived again in a replay, and says from where it does not hold."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.inside import Ended, assay

Fault = Callable[[sqlite3.Connection, str, list[int]], None]  # done to the stream, at one of the calls' seqs


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one conversation in it, in which the reference looks twice before it acts."""
    store = tmp_path_factory.mktemp("own") / "store"
    made = assay("run", "--suite", "airline", "--solver", "reference", "--task", "errands/01", "--store", store)
    assert made.code == 0, made.err
    return store


def replay(store: Path) -> Ended:
    return assay("replay", "latest", "--store", store, "--no-keep", "--json")


def drop(connection: sqlite3.Connection, stream: str, calls: list[int]) -> None:
    """A call with its answer, and the numbers closed up after it."""
    at = calls[0]
    connection.execute("DELETE FROM events WHERE stream = ? AND seq IN (?, ?)", (stream, at, at + 1))
    for (seq,) in connection.execute("SELECT seq FROM events WHERE stream = ? AND seq > ? ORDER BY seq", (stream, at)):
        connection.execute("UPDATE events SET seq = ? WHERE stream = ? AND seq = ?", (seq - 2, stream, seq))


def swap(connection: sqlite3.Connection, stream: str, calls: list[int]) -> None:
    first, second = calls[0], calls[1]
    for old, new in (
        (first, -1),
        (second, first),
        (-1, second),
        (first + 1, -1),
        (second + 1, first + 1),
        (-1, second + 1),
    ):
        connection.execute("UPDATE events SET seq = ? WHERE stream = ? AND seq = ?", (new, stream, old))


def edit(connection: sqlite3.Connection, stream: str, calls: list[int]) -> None:
    (body,) = connection.execute("SELECT body FROM events WHERE stream = ? AND seq = ?", (stream, calls[0])).fetchone()
    other = body.replace('"arguments":{', '"arguments":{"unasked":1,')
    assert other != body
    connection.execute("UPDATE events SET body = ? WHERE stream = ? AND seq = ?", (other, stream, calls[0]))


def edit_answer(connection: sqlite3.Connection, stream: str, calls: list[int]) -> None:
    at = calls[0] + 1
    (body,) = connection.execute("SELECT body FROM events WHERE stream = ? AND seq = ?", (stream, at)).fetchone()
    connection.execute("UPDATE events SET body = ? WHERE stream = ? AND seq = ?", (body + " ", stream, at))


@pytest.mark.parametrize("fault", [drop, swap, edit, edit_answer])
def test_a_changed_stream_is_invalid_from_where_it_was_changed(fault: Fault, run: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    shutil.copytree(run, store)
    whole = replay(store).json
    assert {row["fidelity"]["invalid"] for row in whole["episodes"]} == {None}
    assert all(row["fidelity"]["unshown"] == [] for row in whole["episodes"])
    connection = sqlite3.connect(store / "evidence.db")
    for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        connection.execute(f"DROP TRIGGER {trigger}")
    trial = whole["episodes"][0]["trial"]
    rows = connection.execute("SELECT seq, kind FROM events WHERE stream = ? ORDER BY seq", (trial,)).fetchall()
    calls = [seq for seq, kind in rows if kind == "tool.call"]
    steps = [seq for seq, kind in rows if kind in ("message", "tool.call", "tool.result")]
    fault(connection, trial, calls)
    connection.commit()
    connection.close()
    ended = replay(store)
    assert ended.code == 3
    fidelity = ended.json["episodes"][0]["fidelity"]
    assert fidelity["invalid"] in ("truncated", "diverged")
    assert abs(fidelity["invalid_at"] - steps.index(calls[0])) <= 1, fidelity
    assert {row["fidelity"]["invalid"] for row in ended.json["episodes"][1:]} <= {None}


def test_a_trial_is_shown_by_its_id_alone(run: Path) -> None:
    trial = replay(run).json["episodes"][0]["trial"]
    shown = assay("replay", "show", trial, "--store", run)
    assert shown.code == 0, shown.err
    assert f"{trial} in airline@v1, mode normal: " in shown.out
    assert "valid: " in shown.out
    assert assay("replay", "show", "no-such-trial", "--store", run).code == 2
    unsaid = assay("replay", "show", run, "--store", run)
    assert (unsaid.code, "which of its episodes is meant" in unsaid.err) == (2, True)
