"""Spans as columns: a million of them in a few dozen megabytes, and a fold that works on arrays.

Names (span, provider, response, model) are numbered in the order in which they are met; −1 is none. A parent that is
only named, and never comes, has a number and no record.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, count, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.records.usage import Span, Usage

BUCKETS = tuple(Usage.model_fields)
CHUNK = 512  # rows at a time: few enough that the garbage collector is not called for them
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
    """Read rows into columns, some thousands at a time; nothing of a row is kept but its numbers and new names."""
    spans, providers, responses, models = (_Numbering() for _ in range(4))
    codes = [array("q") for _ in range(6)]
    tokens, costs, charged, used = array("q"), array("d"), array("b"), array("b")
    nan, waiting = float("nan"), iter(rows)
    while chunk := list(islice(waiting, CHUNK)):
        span, parent, attempt, provider, response, model, counts, cost, paid = zip(*chunk, strict=True)
        codes[0].extend(spans.numbers(span))
        codes[1].extend(spans.numbers(parent))
        codes[2].extend(attempt)
        codes[3].extend(providers.numbers(provider))
        codes[4].extend(responses.numbers(response))
        codes[5].extend(models.numbers(model))
        tokens.extend(chain.from_iterable(_NO_USAGE if one is None else one for one in counts))
        used.extend(one is not None for one in counts)
        costs.extend(nan if one is None else one for one in cost)
        charged.extend(paid)
    node, named_parent, attempts, of_provider, of_response, of_model = (np.asarray(one, np.int64) for one in codes)
    return SpanColumns(
        names=spans.names(),
        providers=providers.names(),
        responses=responses.names(),
        models=models.names(),
        node=node,
        parent=named_parent,
        attempt=attempts,
        provider=of_provider,
        response=of_response,
        model=of_model,
        tokens=np.asarray(tokens, np.int64).reshape(-1, len(BUCKETS)),
        has_usage=np.asarray(used, np.bool_),
        cost_usd=np.asarray(costs, np.float64),
        charged=np.asarray(charged, np.bool_),
    )


def joined(parts: Sequence[SpanColumns]) -> SpanColumns:
    """Several columns as one: names that are the same are one name."""
    if len(parts) == 1:
        return parts[0]
    names = {kind: _Numbering() for kind in ("names", "providers", "responses", "models")}
    kinds = {"node": "names", "parent": "names", "provider": "providers", "response": "responses", "model": "models"}
    renumbered: dict[str, list[Ints]] = {column: [] for column in kinds}
    for part in parts:
        table = {
            kind: np.array([*numbering.numbers(getattr(part, kind)), -1], dtype=np.int64)
            for kind, numbering in names.items()
        }
        for column, kind in kinds.items():
            renumbered[column].append(table[kind][getattr(part, column)])  # −1 takes the last entry, which is −1
    alike = ("attempt", "tokens", "has_usage", "cost_usd", "charged")
    fields: dict[str, Any] = {kind: numbering.names() for kind, numbering in names.items()}
    fields |= {column: np.concatenate(numbers) for column, numbers in renumbered.items()}
    fields |= {column: np.concatenate([getattr(part, column) for part in parts]) for column in alike}
    return SpanColumns(**fields)


class _Numbering:
    """Numbers names in the order in which they are met; None is −1. The work is done by the dictionary itself."""

    def __init__(self) -> None:
        self._numbers: defaultdict[str | None, int] = defaultdict()
        self._numbers.default_factory = count().__next__
        self._numbers[None] = -1

    def numbers(self, names: Iterable[str | None]) -> Iterable[int]:
        return map(self._numbers.__getitem__, names)

    def names(self) -> tuple[str, ...]:
        """All names by number, once: the numbering, as large as they are, is given up."""
        found = tuple(name for name in self._numbers if name is not None)
        self._numbers.clear()
        return found


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


def usage_of(columns: SpanColumns, records: Ints) -> Usage | None:
    """Records added up bucket by bucket; None without a record. What none of them reports stays unknown."""
    if records.size == 0:
        return None
    found: dict[str, int | None] = {}
    for bucket, name in enumerate(BUCKETS):
        counts = columns.tokens[records, bucket]
        reported = counts[counts >= 0]
        found[name] = int(reported.sum()) if reported.size else None
    return Usage(**found)


def totals_of(columns: SpanColumns, records: Ints) -> Ints:
    """All reported tokens of each record. Bucket by bucket, here and elsewhere: a copy of all of them is large."""
    total = np.zeros(records.size, dtype=np.int64)
    for bucket in range(len(BUCKETS)):
        total += np.maximum(columns.tokens[records, bucket], 0)
    return total


def same_usage(columns: SpanColumns, first: Ints, second: Ints) -> Bools:
    """Which of two lists of records report the same tokens in every bucket."""
    same = np.ones(first.size, dtype=np.bool_)
    for bucket in range(len(BUCKETS)):
        same &= columns.tokens[first, bucket] == columns.tokens[second, bucket]
    return same
