"""Many ended trials at once: the rows that single writes make, one batch after the other, and no batch after a gap."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.records.base import canonical_text
from harness.records.errors import StoreError
from harness.records.event import EventDraft, event_body
from harness.records.vocabulary import Actor
from harness.store.chain import Head
from harness.store.ended import EndedRows, EndedTrial, writing
from harness.store.sqlite import SqliteStore
from tests.store.samples import result_of, run_row, trial_plan

RUN = "run-a"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with SqliteStore(tmp_path / "store") as opened:
        opened.create_run(run_row(RUN))
        yield opened


def _draft(stream: str, kind: str, **payload: object) -> EventDraft:
    return EventDraft(stream=stream, kind=kind, actor=Actor.HARNESS, wall="", monotonic_s=0.0, payload=payload)


def _closing(trial: str, head: Head) -> EventDraft:
    return _draft(RUN, "trial.closed", trial=trial, head=head.hash, events=head.seq)


def _ended(slot: int, *, planned: bool = False) -> EndedTrial:
    plan = trial_plan(RUN, slot)
    drafts = [_draft(plan.trial, "trial.state", to="planned"), _draft(plan.trial, "message", content="é\ud800" * slot)]
    return EndedTrial(
        plan=plan,
        planned=planned,
        kinds=[draft.kind for draft in drafts],
        bodies=[event_body(draft, seq).decode() for seq, draft in enumerate(drafts)],
        result=canonical_text(result_of(plan.trial).model_dump()),
        closing=("trial.closed", lambda head, seq: event_body(_closing(plan.trial, head), seq).decode()),
    )


def _write(store: SqliteStore, *ended: EndedTrial) -> None:
    with writing(store) as writer:
        writer.begin(RUN)
        for one in ended:
            writer.take(one, 100)


def _rows(store: SqliteStore) -> list[list[tuple[object, ...]]]:
    return [store.select(f"SELECT * FROM {table} ORDER BY 1") for table in ("tasks", "trials", "results")] + [
        store.select("SELECT stream, seq, kind, previous, hash, body FROM events ORDER BY stream, seq")
    ]


def test_batches_make_the_rows_that_single_writes_make(tmp_path: Path, store: SqliteStore, small: None) -> None:
    _write(store, *(_ended(slot) for slot in range(5)))
    with SqliteStore(tmp_path / "other") as other:
        other.create_run(run_row(RUN))
        for slot in range(5):
            one = _ended(slot)
            other.plan([one.plan])
            other.append([_draft(one.plan.trial, "trial.state", to="planned")])
            message = _draft(one.plan.trial, "message", content="é\ud800" * slot)
            other.finish(result_of(one.plan.trial), [message])
            other.append([_closing(one.plan.trial, other.head(one.plan.trial))])
        assert _rows(store) == _rows(other)


def test_an_older_sqlite_is_given_smaller_statements(store: SqliteStore) -> None:
    with store.transaction() as connection:
        connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 20)
    _write(store, *(_ended(slot) for slot in range(9)))
    assert [row.slot for row in store.trials(RUN)] == list(range(9))


def test_a_trial_that_had_begun_goes_on_from_its_head(store: SqliteStore) -> None:
    one = _ended(0, planned=True)
    store.plan([one.plan])
    begun = store.append([_draft(one.plan.trial, "trial.state", to="planned")])
    closed = store.append([_draft(RUN, "noted")])
    with writing(store) as writer:
        writer.begin(RUN)
        writer.begin(one.plan.trial)
        writer.take(one, 100)
    assert [event.previous for event in store.events(one.plan.trial)][1] == begun[0].hash
    assert [event.previous for event in store.events(RUN)][1] == closed[0].hash
    assert store.append([_draft(RUN, "noted")])[0].seq == 2  # the store knows where its streams end


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.store.ended._BATCH_TRIALS", 1)
    monkeypatch.setattr("harness.store.ended._ROWS", 2)


@pytest.mark.parametrize("count", [1, 2, 3, 9])
def test_a_fault_of_the_writing_thread_reaches_the_caller_and_nothing_is_written_after_it(
    store: SqliteStore, small: None, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    asked: list[int] = []
    whole, interval = store.add_ended, sys.getswitchinterval()

    def full(rows: EndedRows) -> None:
        asked.append(len(rows.results))
        if len(asked) == min(count, 2):
            raise StoreError("the disk is full", place="here", remedy="free space")
        whole(rows)

    monkeypatch.setattr(store, "add_ended", full)
    with pytest.raises(StoreError, match="here: the disk is full — free space"):
        _write(store, *(_ended(slot) for slot in range(count)))
    assert len(asked) == min(count, 2)
    assert [row.slot for row in store.trials(RUN)] == ([0] if count > 1 else [])
    assert sys.getswitchinterval() == interval


def test_what_is_in_the_way_is_named(store: SqliteStore) -> None:
    _write(store, _ended(0))
    for again, said in ((_ended(0), "is planned already"), (_ended(0, planned=True), "has its result already")):
        with pytest.raises(StoreError, match=said):
            _write(store, _ended(1), again)
    with writing(store) as late:
        late.begin(RUN)
        store.append([_draft(RUN, "noted")])  # by one who did not own the run
        late.take(_ended(1), 100)
        with pytest.raises(StoreError, match="another process has written to run-a"):
            late.finish()
    assert [row.slot for row in store.trials(RUN)] == [0]
