"""Canonical JSON, frozen records, the transition table, the event chain and usage: laws, not examples."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from harness.records.base import canonical_json, digest_of, sha256_of
from harness.records.event import Event, EventDraft, chain_start, event_body, fields_body, link, link_body
from harness.records.grade import Grade, TrialResult
from harness.records.task import Budget, Environment, FileTree, ImagePin, Task, TreeFile
from harness.records.trial import LEGAL_MOVES, IllegalMove, TrialState, move, trial_id
from harness.records.usage import Usage
from harness.records.vocabulary import Actor, Outcome, Phase, StopReason

texts = st.text(max_size=12) | st.sampled_from(["\ud800", "\x00", "\u2028", "a\udcffb", "\U0001f600"])
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=15,
)


@given(plain)
def test_canonical_json_is_ascii_and_reads_back(value: Any) -> None:
    text = canonical_json(value)
    assert text.isascii()
    assert b"\n" not in text
    assert json.loads(text) == value


@given(st.dictionaries(texts, plain, max_size=6), st.randoms())
def test_canonical_json_does_not_depend_on_the_order_of_keys(value: dict[str, Any], random: Any) -> None:
    items = list(value.items())
    random.shuffle(items)
    assert canonical_json(dict(items)) == canonical_json(value)
    assert digest_of(dict(items)) == digest_of(value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), [1, {"x": float("nan")}]])
def test_canonical_json_refuses_what_json_has_no_word_for(value: Any) -> None:
    with pytest.raises(ValueError, match="Out of range float"):
        canonical_json(value)


def test_canonical_json_refuses_bytes() -> None:
    with pytest.raises(TypeError):
        canonical_json(b"raw")


def test_known_digests_do_not_drift() -> None:
    """Archives carry these for years: a change here breaks every stored chain."""
    value = {"b": [1, 2.5, None, True], "a": "ü\u2028"}
    assert canonical_json(value) == b'{"a":"\\u00fc\\u2028","b":[1,2.5,null,true]}'
    assert sha256_of(b"abc") == "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    start = "15babe2ed138e93ef426bf7a9d242f76896d5790d2e66ea70d814d062a844753"
    assert chain_start("s") == start
    draft = EventDraft(stream="s", kind="k", actor=Actor.AGENT, wall="w", monotonic_s=0.5, payload={"ü": [1]})
    assert link(draft, 0, start) == "5bf023d1b0f8082290ace77385dd1318b9c70d8c779a4c42f6c4f0bce6ffaf05"


@given(st.binary(max_size=50), st.binary(max_size=50))
def test_files_are_part_of_a_tasks_version_and_source_is_not(one: bytes, two: bytes) -> None:
    def task(content: bytes, **changes: Any) -> Task:
        files = FileTree(files=(TreeFile(path="f", content=content),))
        return Task(
            id="a/1",
            family="a",
            instruction="x",
            image=ImagePin(reference="i"),
            environment=Environment(files=files),
            **changes,
        )

    assert (task(one).version == task(two).version) == (one == two)
    assert task(one, source="/elsewhere", metadata={"k": 1}).version == task(one).version
    assert task(one, budget=Budget(wall_s=1.0)).version != task(one).version
    assert Task.model_validate_json(task(one).model_dump_json()) == task(one)


def test_records_are_frozen_and_know_their_keys() -> None:
    usage = Usage(input=1)
    with pytest.raises(ValidationError, match="frozen"):
        setattr(usage, "input", 2)  # noqa: B010  (an assignment is what mypy would refuse)
    with pytest.raises(ValidationError, match="Extra inputs"):
        Usage.model_validate({"tokens": 1})
    for impossible in (float("nan"), float("inf")):
        with pytest.raises(ValidationError):
            Grade(grader="g@1", outcome=Outcome.PASSED, reward=impossible)
        with pytest.raises(ValidationError):
            TrialResult(trial="t", outcome=Outcome.PASSED, stop=StopReason.FINISHED, reward=impossible)


# --- moves ---------------------------------------------------------------------------------------------

ORDER = list(TrialState)


@given(st.sampled_from(ORDER), st.sampled_from(ORDER))
def test_a_move_goes_one_step_forward_or_to_the_end(current: TrialState, following: TrialState) -> None:
    step = ORDER.index(following) - ORDER.index(current)
    legal = step == 1 or (following is TrialState.DONE and step > 0)
    if legal:
        assert move(current, following) is following
    else:
        with pytest.raises(IllegalMove, match=f"from {current.value} to {following.value}"):
            move(current, following)


def test_every_state_has_a_row_and_only_done_has_no_way_on() -> None:
    assert set(LEGAL_MOVES) == set(TrialState)
    assert [state for state, onward in LEGAL_MOVES.items() if not onward] == [TrialState.DONE]


@given(st.text(min_size=1, max_size=8), st.tuples(st.integers(0, 9999), st.integers(1, 9)), st.data())
def test_trial_ids_are_distinct_and_sort_by_slot(run: str, first: tuple[int, int], data: st.DataObject) -> None:
    second = data.draw(st.tuples(st.integers(0, 9999), st.integers(1, 9)))
    assert (trial_id(run, *first) == trial_id(run, *second)) == (first == second)
    assert (trial_id(run, *first) < trial_id(run, *second)) == (first < second)


# --- the chain -----------------------------------------------------------------------------------------

drafts = st.builds(
    EventDraft,
    stream=st.sampled_from(["s", "t"]),
    kind=st.sampled_from(["exec", "note"]),
    actor=st.sampled_from(Actor),
    phase=st.none() | st.sampled_from(Phase),
    wall=st.just("2025-01-01T00:00:00+00:00") | texts,
    monotonic_s=st.floats(allow_nan=False, allow_infinity=False),
    span=st.none() | st.text(max_size=4),
    state_digest=st.none() | st.text(max_size=4),
    attempt=st.integers(1, 3),
    payload=st.dictionaries(st.text(max_size=5), plain, max_size=4),
    blobs=st.dictionaries(st.text(max_size=3), st.just(sha256_of(b"")), max_size=2),
)


@given(drafts, st.integers(0, 9), st.text(alphabet="0123456789abcdef", min_size=64, max_size=64))
def test_a_link_covers_the_draft_its_place_and_what_was_before(draft: EventDraft, seq: int, previous: str) -> None:
    hash_ = link(draft, seq, previous)
    assert hash_ == link_body(previous, event_body(draft, seq))
    assert hash_ != link(draft, seq + 1, previous)
    assert hash_ != link(draft, seq, previous[::-1] + "0")
    for changed in (
        draft.model_copy(update={"kind": draft.kind + "x"}),
        draft.model_copy(update={"stream": draft.stream + "x"}),
        draft.model_copy(update={"attempt": draft.attempt + 1}),
        draft.model_copy(update={"payload": {**draft.payload, "new key": 1}}),
        draft.model_copy(update={"state_digest": "x"}),
    ):
        assert link(changed, seq, previous) != hash_
    event = Event(**dict(draft), seq=seq, previous=previous, hash=hash_)
    assert link(event, seq, previous) == hash_  # an event is linked as the draft it was


@given(drafts)
def test_a_body_names_every_field_of_a_draft(draft: EventDraft) -> None:
    body = json.loads(event_body(draft, 4))
    assert set(body) == set(EventDraft.model_fields) | {"seq"}
    assert fields_body(dict(draft), 4) == event_body(draft, 4) == canonical_json({**dict(draft), "seq": 4})


@given(texts, texts)
def test_streams_start_differently(one: str, two: str) -> None:
    assert (chain_start(one) == chain_start(two)) == (one == two)


# --- usage ---------------------------------------------------------------------------------------------

counts = st.none() | st.integers(0, 10**9)
usages = st.builds(Usage, input=counts, cache_read=counts, cache_write=counts, output=counts, reasoning=counts)


@given(usages, usages, usages)
def test_usage_adds_like_numbers_and_keeps_unknown_unknown(a: Usage, b: Usage, c: Usage) -> None:
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert a + Usage() == a
    assert (a + b).total == a.total + b.total
    for name, value in a + b:
        assert (value is None) == (getattr(a, name) is None and getattr(b, name) is None)


@given(usages)
def test_usage_is_known_when_both_sides_are(usage: Usage) -> None:
    assert usage.known == (usage.input is not None and usage.output is not None)
    assert usage.total == sum(value for _, value in usage if value is not None)


def test_a_negative_count_is_no_count() -> None:
    with pytest.raises(ValidationError, match="greater than or equal to 0"):
        Usage(input=-1)
