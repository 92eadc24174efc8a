"""Retries below wrappers, ids across providers, own usage, files; and what no order or copy may change."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.billing.fold import fold
from harness.records.usage import Span, Usage


def call(name: str, tokens: int | None, parent: str | None = None, **fields: Any) -> Span:
    usage = None if tokens is None else Usage(input=tokens, output=0)
    return Span(span=name, parent=parent, usage=usage, **{"model": "m", "provider": "p", **fields})


def test_a_retry_that_was_charged_below_the_record_of_the_answer_bills_beside_it() -> None:
    outer = call("outer", 100, response_id="r2")
    tries = [call("try 1", 90, "outer", response_id="r1"), call("try 2", 100, "outer", response_id="r2")]
    bill = fold([outer, *tries])
    assert (bill.tokens, bill.missing, bill.conflicts) == (190, (), ())
    assert bill.all_spans == Usage(input=290, output=0)


def test_a_total_above_its_parts_stays_a_total_even_with_an_id_of_its_own() -> None:
    outer = call("outer", 190, response_id="wrapper-1")
    tries = [call("try 1", 90, "outer", response_id="r1"), call("try 2", 100, "outer", response_id="r2")]
    assert fold([outer, *tries]).tokens == 190
    named_as_one = [call("outer", 190, response_id="r2"), *tries]
    assert fold(named_as_one).tokens == 190


def test_retries_without_ids_bill_each_when_no_span_above_has_usage() -> None:
    spans = [Span(span="agent"), call("a", 50, "agent"), call("b", 50, "agent")]
    assert fold(spans).tokens == 100


def test_a_lost_attempt_below_the_record_of_the_answer_is_missing() -> None:
    outer = call("outer", 100, response_id="r2")
    spans = [outer, call("try 1", None, "outer"), call("try 2", 100, "outer", response_id="r2")]
    bill = fold(spans)
    assert (bill.tokens, bill.missing) == (100, ("try 1",))
    copy = [outer, call("copy", None, "outer", response_id="r2"), call("inner", 100, "outer", response_id="r2")]
    assert fold(copy).missing == ()


def test_the_same_id_from_two_providers_is_two_responses_and_without_a_provider_it_is_one_of_them() -> None:
    two = [call("a", 10, response_id="1", provider="p"), call("b", 20, response_id="1", provider="q")]
    assert fold(two).tokens == 30
    assert fold([*two, call("c", 10, response_id="1", provider=None)]).tokens == 30
    assert fold([two[0], call("c", 10, response_id="1", provider=None)]).tokens == 10


def test_usage_declared_own_is_added_up_and_each_response_still_once() -> None:
    """CASES K07: root 100 of its own, children 300: 400."""
    spans = [call("root", 100), call("a", 200, "root"), call("b", 100, "root")]
    assert fold(spans, own=True).tokens == 400
    assert fold(spans, own=True).conflicts == ()
    assert fold(spans).conflicts != ()
    twice = [call("root", 100, response_id="r"), call("a", 100, "root", response_id="r")]
    assert fold(twice, own=True).tokens == 100


def test_a_child_dearer_than_its_parent_is_shown() -> None:
    bill = fold([call("outer", 100, cost_usd=0.1), call("inner", 100, "outer", cost_usd=0.25)])
    assert bill.cost_usd == 0.1
    assert bill.conflicts == ("span outer costs 0.1 USD, its children 0.25: it is dearer below",)


def test_an_orchestrator_without_usage_loses_nothing_and_late_parents_change_nothing() -> None:
    spans = [call("inner", 7, "outer"), call("outer", 7, "root"), Span(span="root"), call("other", 5, "root")]
    assert fold(spans).tokens == fold(spans[::-1]).tokens == 12


def test_a_chain_of_twenty_thousand_spans_is_no_deep_recursion() -> None:
    chain = [Span(span=str(n), parent=str(n - 1) if n else None) for n in range(20_000)]
    assert fold([*chain, call("call", 5, "19999")]).tokens == 5


def test_many_conflicts_of_one_kind_are_counted_not_listed() -> None:
    bill = fold([call(f"s{n:03}", 1, "gone") for n in range(50)])
    assert bill.tokens == 50
    assert len(bill.conflicts) == 21
    assert bill.conflicts[-1].startswith("… and 30 more like: the parent of span s020")


forests = st.lists(
    st.builds(
        Span,
        span=st.sampled_from("abcdefgh"),
        parent=st.none() | st.sampled_from("abcdefghz"),
        attempt=st.integers(1, 3),
        provider=st.none() | st.sampled_from("pq"),
        response_id=st.none() | st.sampled_from(["r1", "r2", "r3"]),
        model=st.none() | st.just("m"),
        usage=st.none() | st.builds(Usage, input=st.integers(0, 9), output=st.none() | st.integers(0, 3)),
        cost_usd=st.none() | st.floats(0, 1),
        charged=st.booleans(),
    ),
    max_size=12,
)


@given(forests, st.integers(), st.booleans())
def test_a_bill_is_the_same_in_any_order_imported_twice_or_split_into_files(
    forest: list[Span], seed: int, own: bool
) -> None:
    bill = fold(forest, own=own)
    random_ = random.Random(seed)
    cut = random_.randint(0, len(forest))
    for again in (random_.sample(forest, len(forest)), forest + forest, forest[cut:] + forest[:cut]):
        other = fold(again, own=own)
        assert (other.usage, other.cost_usd, other.cost_at_least_usd) == (
            bill.usage,
            bill.cost_usd,
            bill.cost_at_least_usd,
        )
        assert (other.all_spans, other.all_spans_cost_usd) == (bill.all_spans, bill.all_spans_cost_usd)
        assert sorted(other.missing) == sorted(bill.missing)
        assert sorted(other.conflicts) == sorted(bill.conflicts)


@given(forests, st.booleans())
def test_all_spans_are_never_less_than_the_bill(forest: list[Span], own: bool) -> None:
    bill = fold(forest, own=own)
    flat = 0 if bill.all_spans is None else bill.all_spans.total
    assert flat >= (bill.tokens or 0)
    assert (bill.all_spans_cost_usd or 0.0) >= bill.cost_at_least_usd - 1e-9
    assert (fold(forest, own=True).tokens or 0) >= (fold(forest).tokens or 0)


@pytest.mark.parametrize("empty", [[], [Span(span="a")], [Span(span="a", parent="a")]])
def test_nothing_billed_is_unknown_not_zero(empty: list[Span]) -> None:
    bill = fold(empty)
    assert (bill.usage, bill.tokens, bill.ratio, bill.cost_usd) == (None, None, None, None)
