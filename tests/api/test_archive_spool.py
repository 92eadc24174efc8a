"""What is made of an episode before its trial has a name: the bytes the store would make, and the same account."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.api.archive_account import Spending, ending_of, with_usage
from harness.api.archive_bodies import payload_text, unmeasured_body
from harness.api.archive_spool import spooling
from harness.billing.account import account
from harness.records.archive import ArchiveEpisode, ArchiveTask, SourceRef, Step
from harness.records.base import canonical_text
from harness.records.errors import StoreError
from harness.records.event import Event, EventDraft, event_body
from harness.records.vocabulary import Actor, Phase
from harness.store.encoding import UnstorableError, storable

names = st.none() | st.text(max_size=5)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


steps = st.builds(
    Step,
    st.sampled_from(["message", "model.call"]),
    st.sampled_from(Actor),
    st.dictionaries(st.text(max_size=4), values, max_size=3),
    st.none() | st.sampled_from(Phase),
    st.text(max_size=5),
    names,
    names,
)


@given(
    st.text(max_size=5),
    st.integers(0, 99),
    steps,
)
def test_a_body_is_what_the_store_makes_of_the_event(stream: str, seq: int, step: Step) -> None:
    draft = EventDraft(
        stream=stream,
        kind=step.kind,
        actor=step.actor,
        phase=step.phase,
        wall=step.wall,
        monotonic_s=0.0,
        span=step.span,
        parent=step.parent,
        payload=storable(step.payload),
    )
    made = unmeasured_body(stream, step, seq, payload_text(step.payload))
    assert made.encode() == event_body(draft, seq)


@pytest.mark.parametrize(
    "value",
    [
        {"n": float("nan")},
        {"n": 10**3950},
        {"n": "9" * 8000},
        {"a": "x" * 777, "n": [10**3920]},
        {"b": b"bytes", "s": {"set"}},
        {"t": (1, 2)},
    ],
)
def test_a_payload_is_tagged_where_the_store_tags_it(value: dict[str, Any]) -> None:
    assert payload_text(value) == canonical_text(storable(value))


def test_a_payload_that_cannot_be_stored_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    for value in (endless, {"o": object()}):
        with pytest.raises(StoreError):
            payload_text(value)


usages = st.fixed_dictionaries(
    {"prompt_tokens": st.integers(0, 99), "completion_tokens": st.integers(0, 99)},
    optional={
        "total_tokens": st.integers(0, 99),
        "prompt_tokens_details": st.fixed_dictionaries({"cached_tokens": st.integers(0, 50)}),
    },
)
calls = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "usage_raw": usages,
            "cost_usd": st.floats(0, 10),
            "gen_ai.response.id": st.sampled_from(["r1", "r2"]),
            "charged": st.booleans(),
        },
    ),
    max_size=6,
)


@given(calls)
def test_calls_that_stand_alone_are_added_up_as_the_tree_would(payloads: list[dict[str, Any]]) -> None:
    spending, events = Spending(), []
    for number, payload in enumerate(payloads):
        payload = with_usage(payload) if "usage_raw" in payload else payload
        spending.take("model.call", payload, f"s{number}", None)
        events.append(
            EventDraft(
                stream="t",
                kind="model.call",
                actor=Actor.AGENT,
                wall="",
                monotonic_s=0.0,
                span=f"s{number}",
                payload=payload,
            )
        )
    assert spending.account() == (account(cast("list[Event]", events)) if payloads else None)


@pytest.mark.parametrize("cost", [-1.0, float("nan"), float("inf"), "free"])
def test_a_cost_that_cannot_be_is_no_cost(cost: Any) -> None:
    spending = Spending()
    spending.take("model.call", {"cost_usd": cost, "usage": None}, "s1", None)
    found = spending.account()
    assert found is not None
    assert (found.cost_usd, found.cost_at_least_usd, found.calls_without_usage) == (None, 0.0, 1)


def _episode(number: int, task: ArchiveTask, run: str = "r") -> ArchiveEpisode:
    source = SourceRef(file="f", offset=0, length=3, sha256="")
    return ArchiveEpisode(run, task, source, repeat=number, stated={"nan": float("nan")}, flags=("a", "b"))


@given(st.lists(st.lists(steps, max_size=4), min_size=1, max_size=4))
def test_what_was_kept_comes_back_as_it_was(told: list[list[Step]]) -> None:
    task = ArchiveTask("t", "Ask.", {"d": 1})
    with tempfile.TemporaryDirectory() as folder, spooling(Path(folder)) as spool:
        for number, some in enumerate(told):
            spool.take(_episode(number, task), some, "s")
        found = list(spool)
    assert [repr(one.steps) for one in found] == [repr(some) for some in told]  # NaN is not equal to itself
    assert [one.ending for one in found] == [ending_of(_episode(n, task)) for n in range(len(told))]


def test_episodes_come_back_in_order_with_their_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.api.archive_spool._MOST_TASKS", 1)
    definition = {"d": 1}
    with spooling(tmp_path) as spool:
        for number in range(5):
            task = ArchiveTask(str(number // 2), "Ask.", definition)
            assert spool.task(task, "s").id == task.id
            spool.take(_episode(number % 2, task), [Step("message", Actor.USER, {})], "s")
        found = list(spool)
    assert [(one.task.id, one.repeat, one.size) for one in found] == [
        *(("0", 0, 3), ("0", 1, 3)),
        *(("1", 0, 3), ("1", 1, 3), ("2", 0, 3)),
    ]
    assert found[0].task is found[1].task
    assert found[2].task == found[3].task


def test_values_that_are_not_plain_are_kept_too_and_the_unstorable_refused(tmp_path: Path) -> None:
    task = ArchiveTask("t")
    deep: list[Any] = []
    for _ in range(3000):
        deep = [deep]
    with spooling(tmp_path) as spool:
        spool.take(_episode(0, task), [Step("message", Actor.USER, {"phase": Phase.SETUP, "b": Path("x")})], "s")
        for value in (deep, object()):
            with pytest.raises(UnstorableError):
                spool.take(_episode(1, task), [Step("message", Actor.USER, {"content": value})], "s")
        (found,) = spool
    assert found.steps[0].payload == {"phase": Phase.SETUP, "b": Path("x")}
