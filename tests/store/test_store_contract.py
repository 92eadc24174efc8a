"""What any evidence store does; runs on the one in memory and on the one on disk."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.protocols import EvidenceStore
from harness.records.base import sha256_of
from harness.records.errors import StoreError
from harness.records.event import chain_start, link
from harness.records.trial import TrialState
from harness.records.vocabulary import Outcome
from harness.store.memory import MemoryStore
from harness.store.sqlite import SqliteStore
from harness.store.verify import verify_run
from tests.store.samples import TASK, carry_out, draft, move, result_of, run_row, trial_plan

Store = MemoryStore | SqliteStore


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "memory":
        yield MemoryStore()
        return
    with SqliteStore(tmp_path / "evidence") as opened:
        yield opened


@pytest.fixture
def planned(store: Store) -> Store:
    store.create_run(run_row())
    store.plan([trial_plan(slot=slot) for slot in range(3)])
    return store


def test_satisfies_the_protocol(store: Store) -> None:
    checked: EvidenceStore = store
    assert checked.runs() == ()


def test_runs_come_back_as_they_went_in_oldest_first(store: Store) -> None:
    rows = [run_row(f"r{n}", agent=f"a/b c {n}", extra={"note": "\ud800"}) for n in range(3)]
    for row in rows:
        store.create_run(row)
    assert store.runs() == tuple(rows)
    assert store.run("r1") == rows[1]
    with pytest.raises(StoreError, match="exists already"):
        store.create_run(rows[0])


def test_a_run_is_found_by_id_prefix_and_latest(store: Store) -> None:
    with pytest.raises(StoreError, match="no run yet"):
        store.run("latest")
    for name in ("2025-alpha", "2025-beta", "2025-alphabet"):
        store.create_run(run_row(name))
    assert store.run("latest").run == "2025-alphabet"
    assert store.run("2025-b").run == "2025-beta"
    assert store.run("2025-alpha").run == "2025-alpha"  # exact goes before prefix
    with pytest.raises(StoreError, match="begins 3 runs: 2025-alpha, 2025-alphabet, 2025-beta"):
        store.run("2025")
    with pytest.raises(StoreError, match="did you mean 2025-beta"):
        store.run("2025-bata")
    with pytest.raises(StoreError, match="no run"):
        store.run("")


def test_trials_are_listed_by_slot_and_attempt_with_state_and_result(planned: Store) -> None:
    planned.plan([trial_plan(slot=1, attempt=2)])
    first, second = "run-a.0000.1", "run-a.0001.1"
    carry_out(planned, first)
    planned.append([move(second, "preparing"), draft(second), move(second, "interacting"), draft(second)])
    rows = planned.trials("run-a")
    assert [(row.slot, row.attempt) for row in rows] == [(0, 1), (1, 1), (1, 2), (2, 1)]
    assert [row.state for row in rows] == [
        TrialState.DONE,
        TrialState.INTERACTING,
        TrialState.PLANNED,
        TrialState.PLANNED,
    ]
    assert rows[0].result == result_of(first)
    assert rows[1].result is None
    assert rows[0].task_version == TASK.version
    assert planned.trial("run-a.0001.2") == rows[2]
    assert planned.trial("run-a.0002") == rows[3]
    with pytest.raises(StoreError, match="no trial"):
        planned.trial("run-b.0000.1")


def test_a_plan_comes_back_whole_and_is_written_once(planned: Store) -> None:
    assert planned.planned("run-a.0001.1") == trial_plan(slot=1)
    with pytest.raises(StoreError, match="planned already"):
        planned.plan([trial_plan(slot=9), trial_plan(slot=1)])
    with pytest.raises(StoreError, match="no trial"):
        planned.trial("run-a.0009.1")  # the whole call was refused
    with pytest.raises(StoreError, match="slot 1, attempt 1"):
        planned.plan([trial_plan(slot=1, trial="run-a.other")])
    with pytest.raises(StoreError, match="not in the store"):
        planned.plan([trial_plan(run="run-z")])


def test_events_are_chained_per_stream_from_zero(planned: Store) -> None:
    drafts = [draft("run-a.0000.1"), draft("run-a"), draft("run-a.0000.1", payload={"x": [1, (2, 3)]}), draft("run-a")]
    events = planned.append(drafts[:3]) + planned.append(drafts[3:])
    assert [(event.stream, event.seq) for event in events] == [
        ("run-a.0000.1", 0),
        ("run-a", 0),
        ("run-a.0000.1", 1),
        ("run-a", 1),
    ]
    previous = chain_start("run-a.0000.1")
    for event in planned.events("run-a.0000.1"):
        assert (event.previous, event.hash) == (previous, link(event, event.seq, previous))
        previous = event.hash
    assert tuple(planned.events("run-a")) == (events[1], events[3])
    assert next(iter(planned.append([draft("run-a")]))).previous == events[3].hash
    assert planned.append([]) == ()
    assert list(planned.events("nowhere")) == []


def test_events_can_be_asked_for_by_kind(planned: Store) -> None:
    trial = "run-a.0000.1"
    carry_out(planned, trial)
    assert [event.payload["to"] for event in planned.events(trial, ["trial.state"])] == [
        "preparing",
        "interacting",
        "sealed",
        "grading",
        "done",
    ]
    assert [event.kind for event in planned.events(trial, ["exec", "trial.result"])] == ["exec"] * 3 + ["trial.result"]
    assert list(planned.events(trial, [])) == []


def test_finish_stores_result_and_events_together_and_once(planned: Store) -> None:
    trial = "run-a.0000.1"
    carry_out(planned, trial)
    before = list(planned.events(trial))
    with pytest.raises(StoreError, match="has its result already"):
        planned.finish(result_of(trial, Outcome.FAILED), [draft(trial)])
    with pytest.raises(StoreError, match="never planned"):
        planned.finish(result_of("run-a.0077.1"), [draft("run-a.0077.1")])
    assert list(planned.events(trial)) == before
    assert list(planned.events("run-a.0077.1")) == []
    assert planned.trial(trial).result == result_of(trial)


def test_a_result_that_would_not_read_back_is_refused(planned: Store) -> None:
    trial = "run-a.0000.1"
    with pytest.raises(StoreError, match="cost_usd"):
        planned.finish(result_of(trial, cost_usd=float("nan")), [move(trial, "done")])
    assert planned.trial(trial).state is TrialState.PLANNED


def test_a_draft_that_cannot_be_stored_stores_nothing(planned: Store) -> None:
    with pytest.raises(StoreError, match=r"payload\.deep\.socket: a object cannot be stored"):
        planned.append([draft("run-a"), draft("run-a", payload={"deep": {"socket": object()}})])
    with pytest.raises(StoreError, match="clock"):
        planned.append([draft("run-a"), draft("run-a", monotonic_s=float("inf"))])
    assert list(planned.events("run-a")) == []
    assert planned.append([draft("run-a")])[0].seq == 0


def test_blobs_are_kept_by_content(store: Store) -> None:
    bodies = [b"", b"\x00\xff" * 1000, "\u2028".encode()]
    digests = [store.put_blob(body) for body in bodies]
    assert digests == [sha256_of(body) for body in bodies]
    assert [store.blob(digest) for digest in digests] == bodies
    assert store.put_blob(bodies[1]) == digests[1]
    with pytest.raises(StoreError, match="missing"):
        store.blob(sha256_of(b"never"))


def test_a_run_has_one_owner(store: Store) -> None:
    assert not store.owned("run/../a")
    with store.own("run/../a"):
        assert store.owned("run/../a")
        with pytest.raises(StoreError, match="is owned by"), store.own("run/../a"):
            pytest.fail("owned twice")
        with store.own("another"):
            assert store.owned("another")
        assert store.owned("run/../a")
    assert not store.owned("run/../a")
    with store.own("run/../a"):
        assert store.owned("run/../a")


def test_threads_share_a_store(planned: Store) -> None:
    def write(slot: int) -> None:
        for n in range(40):
            planned.append([draft(f"run-a.{slot:04d}.1", payload={"n": n}), draft("run-a", payload={"slot": slot})])

    threads = [threading.Thread(target=write, args=(slot,)) for slot in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for slot in range(3):
        assert [event.payload["n"] for event in planned.events(f"run-a.{slot:04d}.1")] == list(range(40))
    assert len(list(planned.events("run-a"))) == 120
    assert verify_run(planned, "run-a").ok


def test_events_may_be_read_while_others_are_written(planned: Store) -> None:
    planned.append([draft("run-a", payload={"n": n}) for n in range(1200)])
    seen = []
    for event in planned.events("run-a"):
        if event.seq == 0:
            planned.append([draft("run-a", payload={"n": 1200})])
        seen.append(event.payload["n"])
    assert seen[:1200] == list(range(1200))


texts = st.text(max_size=20) | st.sampled_from(["\ud800", "\x00", "\u2028\u2029", "\U0010ffff", "a\udcffb"])
scalars = st.none() | st.booleans() | st.integers() | st.floats() | texts | st.binary(max_size=8)
payloads = st.dictionaries(
    texts,
    st.recursive(scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4)),
    max_size=5,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=st.lists(st.lists(st.tuples(st.sampled_from("xy"), payloads), max_size=5), max_size=4))
def test_both_stores_make_the_same_chains_of_any_text(
    batches: list[list[tuple[str, dict[str, Any]]]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    memory = MemoryStore()
    with SqliteStore(tmp_path_factory.mktemp("twin")) as disk:
        for batch in batches:
            drafts = [draft(stream, payload=payload) for stream, payload in batch]
            assert memory.append(drafts) == disk.append(drafts)
        for stream in "xy":
            assert list(memory.events(stream)) == list(disk.events(stream))
            assert [event.hash for event in disk.events(stream)] == [
                link(event, event.seq, event.previous) for event in disk.events(stream)
            ]
