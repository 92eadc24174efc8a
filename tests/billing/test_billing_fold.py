"""The bill of a span tree."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.billing.fold import Bill, fold
from harness.records.usage import Span, Usage


def used(tokens: int) -> Usage:
    return Usage(input=tokens, output=0)


def call(name: str, tokens: int | None, parent: str | None = None, **fields: Any) -> Span:
    usage = None if tokens is None else used(tokens)
    return Span(span=name, parent=parent, usage=usage, **{"model": "m", "provider": "p", **fields})


def tokens(*spans: Span) -> int | None:
    return fold(spans).tokens


def test_a_root_that_holds_the_sum_is_not_added_to_its_parts() -> None:
    """CASES K01."""
    parts = [3_031, 4_421, 10_709, 11_738]
    spans = [Span(span="root", usage=used(29_899)), *(call(f"c{n}", part, "root") for n, part in enumerate(parts))]
    bill = fold(spans)
    assert bill.tokens == 29_899
    assert bill.all_spans == used(2 * 29_899)
    assert bill.ratio == 2.0
    assert bill.conflicts == ()
    assert bill.agrees_with(29_899) == "billed"
    assert bill.agrees_with(59_798) == "all spans"
    assert bill.agrees_with(1) == "neither"
    assert fold(spans[1:]).agrees_with(29_899) == "both"


def test_the_first_span_with_usage_on_each_way_down_is_billed() -> None:
    spans = [
        Span(span="run"),
        Span(span="agent", parent="run"),
        call("a", 10, "agent"),
        call("a.1", 7, "a"),
        Span(span="tool", parent="agent"),
        call("sub", 5, "tool"),
        call("b", 20, "run"),
    ]
    bill = fold(spans)
    assert [span.span for span in bill.billed] == ["a", "sub", "b"]
    assert bill.tokens == 35
    assert bill.calls == 3


def test_one_response_recorded_twice_bills_once() -> None:
    twice = [call("a", 10, response_id="r1"), call("b", 10, response_id="r1"), call("c", 10, response_id="r2")]
    assert tokens(*twice) == 20
    assert fold(twice).conflicts == ()
    other = call("d", 10, response_id="r1", provider="q")
    bill = fold([*twice, other])
    assert bill.tokens == 30
    assert bill.conflicts == ("response r1 is recorded under several providers",)


def test_records_of_one_response_that_differ_are_named_and_the_fuller_one_counts() -> None:
    spans = [call("a", 10, response_id="r1", cost_usd=0.1), call("b", 12, response_id="r1", cost_usd=0.2)]
    for order in (spans, spans[::-1]):
        bill = fold(order)
        assert (bill.tokens, bill.cost_usd) == (12, 0.2)
        assert len(bill.conflicts) == 1
        assert "r1 is recorded with different usage" in bill.conflicts[0]


def test_two_charged_attempts_bill_twice_and_their_children_never() -> None:
    spans = [
        call("a", 10, attempt=1, response_id="r1"),
        call("a", 11, attempt=2, response_id="r2"),
        call("inner", 9, "a", response_id="r3"),
    ]
    assert tokens(*spans) == 21


def test_a_call_without_usage_is_missing_and_makes_the_cost_unknown() -> None:
    """CASES K05: three calls, one without usage, one of unknown shape (which is no usage either)."""
    spans = [call("a", 10, cost_usd=0.5), call("b", None), call("c", None)]
    bill = fold(spans)
    assert bill.missing == ("b", "c")
    assert (bill.tokens, bill.cost_usd, bill.cost_at_least_usd, bill.calls) == (10, None, 0.5, 3)


def test_what_covers_a_call_makes_it_not_missing() -> None:
    below = fold([call("a", None), call("part", 5, "a")])
    assert (below.missing, below.tokens) == ((), 5)
    above = fold([call("a", 5), call("part", None, "a")])
    assert (above.missing, above.tokens) == ((), 5)
    bracket = fold([Span(span="agent"), Span(span="tool", parent="agent")])
    assert (bracket.missing, bracket.usage, bracket.cost_usd) == ((), None, None)


def test_a_failed_attempt_that_may_be_charged_is_missing_beside_one_that_is_billed() -> None:
    bill = fold([call("a", None, attempt=1), call("a", 7, attempt=2, cost_usd=1.0)])
    assert (bill.missing, bill.tokens, bill.cost_usd) == (("a",), 7, None)


def test_what_a_local_cache_answered_is_recorded_not_billed() -> None:
    """CASES K12."""
    spans = [call("a", 10, cost_usd=0.1), call("b", 10, charged=False), call("c", None, charged=False)]
    bill = fold(spans)
    assert (bill.tokens, bill.cost_usd, len(bill.billed)) == (10, 0.1, 1)
    assert [span.span for span in bill.uncharged] == ["b"]
    assert fold(spans[1:2]).cost_usd == 0
    assert fold(spans[1:2]).usage is None


def test_a_billed_call_without_a_price_makes_the_cost_unknown_never_zero() -> None:
    bill = fold([call("a", 10, cost_usd=0.25), call("b", 10)])
    assert (bill.cost_usd, bill.cost_at_least_usd) == (None, 0.25)
    assert fold([]) == Bill(None, None, 0, (), (), (), None)


def test_a_parent_with_less_than_its_children_is_flagged() -> None:
    """CASES K07: its usage is its own, not a total; billing 100 without a word would hide 300."""
    bill = fold([call("root", 100), call("a", 200, "root"), call("b", 100, "root")])
    assert bill.tokens == 100
    assert bill.conflicts == ("span root reports 100 tokens, its children 300: it is no total of them",)


def test_broken_trees_are_billed_and_named() -> None:
    orphan = fold([call("a", 3, "gone")])
    assert (orphan.tokens, orphan.conflicts) == (
        3,
        ("the parent of span a is not among the spans; it counts as a root",),
    )
    cycle = fold([Span(span="b", parent="c"), Span(span="c", parent="b"), call("x", 4, "c"), call("y", 5)])
    assert cycle.tokens == 9
    assert cycle.conflicts == ("span b is its own ancestor",)
    self_parent = fold([call("a", 3, "a")])
    assert (self_parent.tokens, self_parent.conflicts) == (3, ("span a is its own ancestor",))
    two_parents = fold([Span(span="r"), call("a", 1, "r", attempt=1), call("a", 2, attempt=2)])
    assert two_parents.tokens == 3
    assert "span a has several parents" in two_parents.conflicts
    twins = fold([call("a", 1), call("a", 2)])
    assert twins.tokens == 3
    assert twins.conflicts == ("span a stands twice with different content",)
    assert fold([call("a", 1), call("a", 1)]).tokens == 1  # the same record twice says nothing new


spans = st.lists(
    st.builds(
        Span,
        span=st.sampled_from("abcdefg"),
        parent=st.none() | st.sampled_from("abcdefgz"),
        attempt=st.integers(1, 2),
        provider=st.none() | st.just("p"),
        response_id=st.none() | st.sampled_from(["r1", "r2", "r3"]),
        model=st.none() | st.just("m"),
        usage=st.none() | st.builds(used, st.integers(0, 50)),
        cost_usd=st.none() | st.integers(0, 8).map(lambda eighths: eighths / 8),
        charged=st.booleans(),
    ),
    max_size=9,
)


@given(spans, st.integers())
def test_any_forest_is_billed_whatever_the_order(forest: list[Span], seed: int) -> None:
    bill = fold(forest)
    shuffled = forest[:]
    random.Random(seed).shuffle(shuffled)
    again = fold(shuffled)
    assert (again.usage, again.cost_usd, again.cost_at_least_usd) == (bill.usage, bill.cost_usd, bill.cost_at_least_usd)
    assert sorted(again.missing) == sorted(bill.missing)
    assert sorted(again.conflicts) == sorted(bill.conflicts)


@given(spans)
def test_a_bill_never_exceeds_the_flat_sum_nor_bills_a_response_twice(forest: list[Span]) -> None:
    bill = fold(forest)
    flat = bill.all_spans.total if bill.all_spans is not None else 0
    assert (bill.tokens or 0) <= flat
    keys = [(span.provider, span.response_id) for span in bill.billed if span.response_id is not None]
    assert len(keys) == len(set(keys))
    assert all(span.usage is not None and span.charged for span in bill.billed)
    assert bill.cost_usd is None or bill.cost_usd == pytest.approx(bill.cost_at_least_usd)
    assert not (bill.missing and bill.cost_usd is not None)


@given(st.recursive(st.integers(0, 99), lambda inner: st.lists(inner, min_size=1, max_size=4), max_leaves=12))
def test_totals_on_the_way_up_change_nothing(shape: Any) -> None:
    """Leaves are calls. Brackets without usage bill the leaves; brackets with their true sums bill the same."""
    bare: list[Span] = []
    summed: list[Span] = []

    def grow(node: Any, name: str, parent: str | None) -> int:
        if isinstance(node, int):
            bare.append(call(name, node, parent))
            summed.append(call(name, node, parent))
            return node
        at = len(summed)
        total = sum(grow(child, f"{name}.{n}", name) for n, child in enumerate(node))
        bare.append(Span(span=name, parent=parent))
        summed.insert(at, Span(span=name, parent=parent, usage=used(total)))
        return total

    total = grow(shape, "root", None)
    assert fold(bare).tokens == fold(summed).tokens == total
    assert fold(summed).conflicts == ()
