"""Spans as columns: a million of them in a few dozen megabytes, and a fold that works on arrays.

Names (span, provider, response, model) are numbered in the order in which they are met; −1 is none. A parent that is
only named, and never comes, has a number and no record.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.records.usage import Span, Usage

BUCKETS = tuple(Usage.model_fields)
UNKNOWN = -1  # a count that was not reported
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

# span, parent, attempt, provider, response id, model, tokens of each bucket (None: no usage), cost in USD, charged
SpanRow = tuple[str, str | None, int, str | None, str | None, str | None, Sequence[int] | None, float | None, bool]
_NO_USAGE = (UNKNOWN,) * len(BUCKETS)


@dataclass(frozen=True, eq=False)
class SpanColumns:
    """Spans in the order given, each column of shape (spans,), `tokens` of shape (spans, buckets)."""

    names: Sequence[str]
    providers: Sequence[str]
    responses: Sequence[str]
    models: Sequence[str]
    node: Ints
    parent: Ints
    attempt: Ints
    provider: Ints
    response: Ints
    model: Ints
    tokens: Ints
    has_usage: Bools
    cost_usd: Floats  # NaN: unknown
    charged: Bools

    def __len__(self) -> int:
        return int(self.node.size)


def columns_of(rows: Iterable[SpanRow]) -> SpanColumns:
    """Read rows into columns; each row is looked at once, and nothing of it is kept but its new names."""
    spans: dict[str, int] = {}
    providers: dict[str, int] = {}
    responses: dict[str, int] = {}
    models: dict[str, int] = {}
    codes, tokens, costs, flags = array("q"), array("q"), array("d"), array("b")
    add_codes, add_tokens, add_cost, add_flag = codes.extend, tokens.extend, costs.append, flags.append
    nan = float("nan")
    for span, parent, attempt, provider, response, model, counts, cost, charged in rows:
        add_codes(
            (
                spans.setdefault(span, len(spans)),
                -1 if parent is None else spans.setdefault(parent, len(spans)),
                attempt,
                -1 if provider is None else providers.setdefault(provider, len(providers)),
                -1 if response is None else responses.setdefault(response, len(responses)),
                -1 if model is None else models.setdefault(model, len(models)),
            )
        )
        add_tokens(_NO_USAGE if counts is None else counts)
        add_cost(nan if cost is None else cost)
        add_flag((counts is not None) + 2 * charged)
    # A numbering is as large as its names: each is gone before the next is listed.
    names = [tuple(spans)]
    del spans
    names.append(tuple(providers))
    names.append(tuple(responses))
    del responses
    names.append(tuple(models))
    code = np.asarray(codes, dtype=np.int64).reshape(-1, 6)
    flag = np.asarray(flags, dtype=np.int8)
    return SpanColumns(
        names=names[0],
        providers=names[1],
        responses=names[2],
        models=names[3],
        node=code[:, 0],
        parent=code[:, 1],
        attempt=code[:, 2],
        provider=code[:, 3],
        response=code[:, 4],
        model=code[:, 5],
        tokens=np.asarray(tokens, dtype=np.int64).reshape(-1, len(BUCKETS)),
        has_usage=(flag & 1).astype(np.bool_),
        cost_usd=np.asarray(costs, dtype=np.float64),
        charged=(flag & 2).astype(np.bool_),
    )


def row_of(span: Span) -> SpanRow:
    """A record as a row."""
    return (
        span.span,
        span.parent,
        span.attempt,
        span.provider,
        span.response_id,
        span.model,
        None if span.usage is None else counts_of(span.usage),
        span.cost_usd,
        span.charged,
    )


def counts_of(usage: Usage) -> tuple[int, ...]:
    """The tokens of each bucket, with −1 for what is unknown."""
    return tuple(UNKNOWN if count is None else count for _, count in usage)


def usage_of(tokens: Ints) -> Usage | None:
    """Rows of tokens added up bucket by bucket; None without a row. What no row reports stays unknown."""
    if tokens.shape[0] == 0:
        return None
    sums = np.where(tokens >= 0, tokens, 0).sum(axis=0)
    known: Bools = np.asarray((tokens >= 0).any(axis=0))
    return Usage(**{name: int(total) if some else None for name, total, some in zip(BUCKETS, sums, known, strict=True)})
