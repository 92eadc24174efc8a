"""The bill of a span tree. Pure.

Going down from each root, the first span that carries usage is billed and nothing below it: an agent's span that
holds the sum of its calls is not added to them (CASES K01). There are two refinements, both by response ids:

- Records of one provider response (`provider`, `response_id`) bill once, however often it was recorded. Ids are
  compared within a provider; a record that names none joins the others of its id.
- A span below which its own response stands again, with the same usage, is the record of that one response and no
  total. What else was answered below it (an earlier attempt that was charged too) is billed beside it.

Attempts of one call share a span id and are judged together: each that carries usage is billed. A call without usage
anywhere on its path is missing coverage, and makes the total a lower bound. Where a source says that usage is each
span's `own` and never a total, every span that carries usage is billed, each response still once (CASES K07). What
contradicts itself is billed by these rules and named.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from harness.billing.columns import Bools, Ints, SpanColumns, columns_of, row_of, same_usage, usage_of
from harness.billing.conflicts import conflicts_of
from harness.billing.duplicates import distinct_records, once_per_response, response_keys
from harness.billing.forest import Forest, forest_of
from harness.records.usage import Span, Usage


@dataclass(frozen=True, eq=False)
class FoldedColumns:
    """A bill over columns: the numbers of the records on it, and sums. None: unknown.

    `distinct` are the records without exact repetitions, which say nothing new; `all_spans` adds those up, as a flat
    reading would. `all_spans_cost_usd` is None when no record has a cost, else the sum of those that have one.
    """

    distinct: Ints
    billed: Ints
    missing: Ints
    uncharged: Ints
    usage: Usage | None
    cost_usd: float | None
    cost_at_least_usd: float
    all_spans: Usage | None
    all_spans_cost_usd: float | None
    conflicts: tuple[str, ...]


@dataclass(frozen=True)
class Bill:
    """What a tree of spans amounts to. None: unknown. `all_spans` is the sum that a flat reading would give."""

    usage: Usage | None  # of the billed spans; None when none carries usage
    cost_usd: float | None  # None when any billed cost is unknown, or any call lacks its usage
    cost_at_least_usd: float
    billed: tuple[Span, ...]  # in the order given
    missing: tuple[str, ...]  # ids of calls without usage
    uncharged: tuple[Span, ...]  # with usage, known not to be charged (a local cache): recorded, not billed
    all_spans: Usage | None
    all_spans_cost_usd: float | None = None
    conflicts: tuple[str, ...] = ()

    @property
    def calls(self) -> int:
        """Calls that were charged or may have been."""
        return len(self.billed) + len(self.missing)

    @property
    def tokens(self) -> int | None:
        """All billed tokens; None when nothing is known, a lower bound when calls are missing."""
        return None if self.usage is None else self.usage.total

    @property
    def ratio(self) -> float | None:
        """Tokens of all spans over billed tokens: 2.0 means that a flat sum counts everything twice."""
        return ratio_of(self.all_spans, self.usage)

    def agrees_with(self, archived_tokens: int) -> str:
        """Which sum an archived total is: "billed", "all spans", "both" or "neither"."""
        return agreement(self.tokens, None if self.all_spans is None else self.all_spans.total, archived_tokens)


def fold(spans: Iterable[Span], *, own: bool = False) -> Bill:
    """Bill a forest of spans. The order of the spans changes nothing but the order of what is listed."""
    given = tuple(spans)
    folded = fold_columns(columns_of(map(row_of, given)), own=own)
    return Bill(
        usage=folded.usage,
        cost_usd=folded.cost_usd,
        cost_at_least_usd=folded.cost_at_least_usd,
        billed=tuple(given[number] for number in folded.billed),
        missing=tuple(given[number].span for number in folded.missing),
        uncharged=tuple(given[number] for number in folded.uncharged),
        all_spans=folded.all_spans,
        all_spans_cost_usd=folded.all_spans_cost_usd,
        conflicts=folded.conflicts,
    )


def fold_columns(columns: SpanColumns, *, own: bool = False) -> FoldedColumns:
    """:func:`fold` for columns, quick enough for a million spans."""
    records = distinct_records(columns)
    tree = _Tree.of(columns, records)
    used = columns.has_usage[records]
    totals = np.zeros_like(tree.carrying) if own else tree.carrying & ~_single_responses(tree, records[used])
    node = columns.node[records]
    reached = tree.forest.first_above(totals)[node] == tree.forest.ground
    told_apart = own | ~tree.below_usage[node] | (tree.keys[records] >= 0)
    kept, differing = once_per_response(columns, records[used & reached & told_apart], tree.keys)
    missing = _missing(tree, records[reached & ~used], kept)
    billed, uncharged = kept[columns.charged[kept]], kept[~columns.charged[kept]]
    costs = columns.cost_usd[billed]
    known = costs[~np.isnan(costs)]
    complete = known.size == costs.size and missing.size == 0 and kept.size > 0
    at_least = math.fsum(known.tolist())  # exact, so that the order of the spans does not show
    every = columns.cost_usd[records]
    every = every[~np.isnan(every)]
    return FoldedColumns(
        distinct=records,
        billed=billed,
        missing=missing,
        uncharged=uncharged,
        usage=usage_of(columns, billed),
        cost_usd=at_least if complete else None,
        cost_at_least_usd=at_least,
        all_spans=usage_of(columns, records[used]),
        all_spans_cost_usd=math.fsum(every.tolist()) if every.size else None,
        conflicts=conflicts_of(columns, records, tree.forest, totals, tree.keys, differing),
    )


def ratio_of(all_spans: Usage | None, billed: Usage | None) -> float | None:
    """Tokens of all spans over billed tokens, or None where there are none."""
    if billed is None or all_spans is None or billed.total == 0:
        return None
    return all_spans.total / billed.total


def agreement(billed: int | None, all_spans: int | None, archived: int) -> str:
    """Which of two sums an archived total is: "billed", "all spans", "both" or "neither"."""
    same = (billed == archived, all_spans == archived)
    return {(True, True): "both", (True, False): "billed", (False, True): "all spans"}.get(same, "neither")


@dataclass(frozen=True, eq=False)
class _Tree:
    """Columns with their forest. Of each node: whether it carries usage, and whether one above it does. Of each
    record: the number of its response."""

    columns: SpanColumns
    forest: Forest
    keys: Ints
    carrying: Bools
    next_usage_above: Ints
    below_usage: Bools

    @classmethod
    def of(cls, columns: SpanColumns, records: Ints) -> _Tree:
        forest = forest_of(columns, records)
        carrying = np.zeros(len(columns.names), dtype=np.bool_)
        carrying[columns.node[records[columns.has_usage[records]]]] = True
        above = forest.first_above(carrying)
        return cls(columns, forest, response_keys(columns), carrying, above, above != forest.ground)


def _single_responses(tree: _Tree, used: Ints) -> Bools:
    """Nodes that record one response and are no total: that response is the next usage below, and the same."""
    columns, keys = tree.columns, tree.keys
    single = np.zeros_like(tree.carrying)
    repeated = np.bincount(keys[used] + 1, minlength=1) > 1
    repeated[0] = False  # records without a response id
    records = used[repeated[keys[used] + 1]]
    if not records.size:
        return single
    width = int(keys.max()) + 1
    place = columns.node[records] * width + keys[records]
    order = np.argsort(place, kind="stable")
    above = tree.next_usage_above[columns.node[records]]
    asked = above * width + keys[records]
    at = np.minimum(np.searchsorted(place[order], asked), records.size - 1)
    partner = records[order[at]]
    same = (place[order[at]] == asked) & (above != tree.forest.ground)
    single[above[same & same_usage(columns, partner, records)]] = True
    return single


def _missing(tree: _Tree, unused: Ints, kept: Ints) -> Ints:
    """Records of calls that may have been charged and of which no usage is known: not at the span, not below it where
    it carries none, and not in the record of its response above it. Of nested ones the uppermost counts."""
    columns, keys = tree.columns, tree.keys
    named = (columns.model[unused] >= 0) | (columns.provider[unused] >= 0) | (keys[unused] >= 0)
    seen = np.zeros(int(keys.max(initial=-1)) + 2, dtype=np.bool_)
    seen[keys[kept] + 1] = True
    seen[0] = False
    covered = seen[keys[unused] + 1] & tree.below_usage[columns.node[unused]]
    records = unused[columns.charged[unused] & named & ~covered]
    node = columns.node[records]
    bare = ~tree.forest.any_at_or_below(tree.carrying)
    lacking = np.zeros_like(tree.carrying)
    lacking[node] = True
    uppermost = tree.forest.first_above(lacking & bare)[node] == tree.forest.ground
    return np.asarray(records[uppermost & (tree.carrying[node] | bare[node])], dtype=np.int64)
