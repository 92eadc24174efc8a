"""Records that say the same thing twice: exact repetitions, and several records of one response."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from harness.billing.columns import BUCKETS, Ints, SpanColumns

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
    named = columns.response >= 0
    keys = np.full(len(columns), -1, dtype=np.int64)
    if not named.any():
        return keys
    rank = np.argsort(np.argsort(np.array([*columns.providers, ""], dtype=object)[:-1]))
    width = max(1, len(columns.providers))
    provider = np.where(columns.provider >= 0, rank[columns.provider] if rank.size else 0, width)
    first = np.full(len(columns.responses), width, dtype=np.int64)
    np.minimum.at(first, columns.response[named], provider[named])
    own = np.where(provider[named] == width, first[columns.response[named]], provider[named])
    code = columns.response[named] * (width + 1) + own
    keys[named] = np.unique(code, return_inverse=True)[1].reshape(-1)
    return keys


def once_per_response(columns: SpanColumns, records: Ints, keys: Ints) -> tuple[Ints, list[Ints]]:
    """Of records with usage the fullest of each response, in order, and the groups whose usage differs.

    Fullest: charged before not charged, both sides known, most tokens, a known cost, the higher one.
    """
    key = keys[records]
    shared = np.flatnonzero((np.bincount(key + 1, minlength=1) > 1)[key + 1] & (key >= 0))
    if not shared.size:
        return records, []
    some = records[shared]
    ranks = [*reversed(columns.tokens[some].T), np.nan_to_num(columns.cost_usd[some], nan=-1.0)]
    both = (columns.tokens[some][:, SIDES] >= 0).all(axis=1)
    total = np.where(columns.tokens[some] >= 0, columns.tokens[some], 0).sum(axis=1)
    order = np.lexsort((*ranks, total, both, columns.charged[some], keys[some]))
    ordered = keys[some][order]
    last = np.append(ordered[1:] != ordered[:-1], True)
    dropped = np.ones(some.size, dtype=np.bool_)
    dropped[order[last]] = False
    kept = np.ones(records.size, dtype=np.bool_)
    kept[shared[dropped]] = False
    return records[kept], _differing(columns, some[order], ordered)


def _differing(columns: SpanColumns, ordered: Ints, keys: Ints) -> list[Ints]:
    """Groups of records, given in order of `keys`, that disagree on their usage."""
    tokens = columns.tokens[ordered]
    unequal = (keys[1:] == keys[:-1]) & (tokens[1:] != tokens[:-1]).any(axis=1)
    if not unequal.any():
        return []
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    group = np.searchsorted(starts, np.flatnonzero(unequal), side="right") - 1
    ends: NDArray[np.int64] = np.append(starts[1:], keys.size)
    return [ordered[starts[one] : ends[one]] for one in np.unique(group)]
