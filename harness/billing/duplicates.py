"""Records that say the same thing twice: exact repetitions, and several records of one response."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from harness.billing.columns import BUCKETS, Bools, Floats, Ints, SpanColumns, same_usage, totals_of

SIDES = [BUCKETS.index("input"), BUCKETS.index("output")]
_MIX = np.uint64(0x9E3779B97F4A7C15)


def distinct_records(columns: SpanColumns) -> Ints:
    """The records without exact repetitions (an archive imported twice), the first of each, in order."""
    counts = np.bincount(columns.node, minlength=1)
    repeated = np.flatnonzero(counts[columns.node] > 1)
    if not repeated.size:
        return np.arange(len(columns), dtype=np.int64)
    fields = _fields(columns, repeated)
    # Sorted by a digest of the row, equal rows are neighbours; whether they are equal is asked of the rows themselves.
    digest = np.zeros(repeated.size, dtype=np.uint64)
    for field in fields:
        digest = (digest ^ field.view(np.uint64)) * _MIX
        digest ^= digest >> np.uint64(29)
    order = np.lexsort((digest, columns.node[repeated]))
    same = np.ones(max(0, order.size - 1), dtype=np.bool_)
    for field in fields:
        ordered = field[order]
        same &= ordered[1:] == ordered[:-1]
    kept = np.ones(len(columns), dtype=np.bool_)
    kept[repeated[order[1:][same]]] = False
    return np.flatnonzero(kept).astype(np.int64)


def _fields(columns: SpanColumns, records: Ints) -> list[Ints]:
    named = ("node", "parent", "attempt", "provider", "response", "model")
    found = [np.ascontiguousarray(getattr(columns, name)[records]) for name in named]
    found += [np.ascontiguousarray(column[records]) for column in columns.tokens.T]
    cost = columns.cost_usd[records] + 0.0  # −0.0 is 0.0
    flags = columns.has_usage[records] + 2 * columns.charged[records].astype(np.int64)
    return [*found, cost.view(np.int64), flags.astype(np.int64)]


def response_keys(columns: SpanColumns) -> Ints:
    """A number for the response that each record is of, −1 for those without an id.

    Ids are compared within a provider. A record that names no provider is one of the first's, by name, that uses the
    id: what is recorded without its provider is the same response, not another.
    """
    keys = columns.response.copy()
    several = provider_span(columns)
    at = np.flatnonzero((keys >= 0) & (several[0] < several[1])[keys]) if keys.size else keys
    if at.size:  # an id that two providers use: each has a number of its own, past all ids
        provider = np.where(columns.provider[at] < 0, _first_by_name(columns, at)[keys[at]], columns.provider[at])
        pairs = keys[at] * len(columns.providers) + provider
        keys[at] = len(columns.responses) + np.unique(pairs, return_inverse=True)[1].reshape(-1)
    return keys


def provider_span(columns: SpanColumns) -> tuple[Ints, Ints]:
    """For each response id the least and the greatest number of a provider named with it: equal for one provider."""
    least = np.full(len(columns.responses) + 1, len(columns.providers), dtype=np.int64)
    greatest = np.full(len(columns.responses) + 1, -1, dtype=np.int64)
    if len(columns.providers) < 2:
        return least, least  # nothing to tell apart
    named = (columns.response >= 0) & (columns.provider >= 0)
    np.minimum.at(least, columns.response[named], columns.provider[named])
    np.maximum.at(greatest, columns.response[named], columns.provider[named])
    return least, greatest


def _first_by_name(columns: SpanColumns, records: Ints) -> Ints:
    """For each response id the provider, of those named with it in `records`, whose name comes first."""
    order = sorted(range(len(columns.providers)), key=columns.providers.__getitem__)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    named = records[columns.provider[records] >= 0]
    least = np.full(len(columns.responses), len(order) - 1, dtype=np.int64)
    np.minimum.at(least, columns.response[named], rank[columns.provider[named]])
    return np.asarray(order, dtype=np.int64)[least]


def once_per_response(columns: SpanColumns, records: Ints, keys: Ints) -> tuple[Ints, list[Ints]]:
    """Of records with usage the fullest of each response, in order, and the groups whose usage differs.

    Fullest: charged before not charged, both sides known, most tokens, a known cost, the higher one.
    """
    key = keys[records]
    shared = np.flatnonzero((np.bincount(key + 1, minlength=1) > 1)[key + 1] & (key >= 0))
    order = shared[np.argsort(key[shared], kind="stable")]
    kept = np.ones(records.size, dtype=np.bool_)
    same = key[order[1:]] == key[order[:-1]]
    kept[order[1:][same]] = False
    first, second = records[order[:-1]], records[order[1:]]
    unlike = (columns.charged[first] != columns.charged[second]) | ~_equal(columns.cost_usd, first, second)
    unlike = same & (unlike | ~same_usage(columns, first, second))
    if not unlike.any():
        return records[kept], []
    mixed = np.zeros(int(key.max()) + 1, dtype=np.bool_)
    mixed[key[order[1:][unlike]]] = True
    some = order[mixed[key[order]]]
    some = some[_by_fullness(columns, records[some], key[some])]
    last = np.append(key[some[1:]] != key[some[:-1]], True)
    kept[some] = last
    return records[kept], _differing(columns, records[some], key[some])


def _equal(values: Floats, first: Ints, second: Ints) -> Bools:
    a, b = values[first], values[second]
    return np.asarray((a == b) | (np.isnan(a) & np.isnan(b)), dtype=np.bool_)


def _by_fullness(columns: SpanColumns, records: Ints, keys: Ints) -> Ints:
    """The order of records by key, within a key from the emptiest to the fullest."""
    tokens = columns.tokens[records]
    both = (tokens[:, SIDES] >= 0).all(axis=1)
    costs = np.nan_to_num(columns.cost_usd[records], nan=-1.0)
    return np.lexsort((*reversed(tokens.T), costs, totals_of(columns, records), both, columns.charged[records], keys))


def _differing(columns: SpanColumns, ordered: Ints, keys: Ints) -> list[Ints]:
    """Groups of records, given in order of `keys`, that disagree on their usage."""
    unequal = (keys[1:] == keys[:-1]) & ~same_usage(columns, ordered[1:], ordered[:-1])
    if not unequal.any():
        return []
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    group = np.searchsorted(starts, np.flatnonzero(unequal), side="right") - 1
    ends: NDArray[np.int64] = np.append(starts[1:], keys.size)
    return [ordered[starts[one] : ends[one]] for one in np.unique(group)]
