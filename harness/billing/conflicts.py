"""What contradicts itself in a span tree, as sentences. A bill follows its rules all the same, and shows these."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from harness.billing.columns import Bools, Ints, SpanColumns
from harness.billing.forest import Forest

MOST_NAMED = 20  # of one kind; how many more there are is said


def conflicts_of(
    columns: SpanColumns, records: Ints, forest: Forest, totals: Bools, keys: Ints, differing: Sequence[Ints]
) -> tuple[str, ...]:
    """All contradictions by kind, each kind in order of names. `totals` are nodes that stand for what is below."""
    names = columns.names
    twins = _twins(columns, records)
    kinds = (
        [f"span {name} has several parents" for name in _named(names, forest.several_parents)],
        [f"span {name} stands twice with different content" for name in _named(names, twins)],
        [
            f"the parent of span {name} is not among the spans; it counts as a root"
            for name in _named(names, forest.orphans)
        ],
        [f"span {name} is its own ancestor" for name in sorted(names[node] for node in forest.cut)],
        _more_below(columns, records, forest, totals, keys),
        [_differs(columns, group) for group in differing],
        _several_providers(columns, records),
    )
    return tuple(line for kind in kinds for line in _shortened(kind))


def _named(names: Sequence[str], nodes: Ints) -> list[str]:
    return sorted(names[node] for node in nodes.tolist())


def _shortened(lines: list[str]) -> Iterable[str]:
    yield from lines[:MOST_NAMED]
    if len(lines) > MOST_NAMED:
        yield f"… and {len(lines) - MOST_NAMED} more like: {lines[MOST_NAMED]}"


def _twins(columns: SpanColumns, records: Ints) -> Ints:
    """Nodes of which two different records claim to be the same attempt."""
    node = columns.node[records]
    several = np.flatnonzero((np.bincount(node, minlength=1) > 1)[node])
    order = several[np.lexsort((columns.attempt[records[several]], node[several]))]
    first, second = records[order[:-1]], records[order[1:]]
    same = (columns.node[first] == columns.node[second]) & (columns.attempt[first] == columns.attempt[second])
    return np.unique(columns.node[first[same]])


def _more_below(columns: SpanColumns, records: Ints, forest: Forest, totals: Bools, keys: Ints) -> list[str]:
    """Spans whose usage, or cost, is less than their children's sum are not their total (CASES K07)."""
    used = records[columns.has_usage[records]]
    node, parent = columns.node[used], forest.parent[columns.node[used]]
    tokens = np.where(columns.tokens[used] >= 0, columns.tokens[used], 0).sum(axis=1).astype(np.float64)
    costs = columns.cost_usd[used]
    size = forest.ground + 1
    suspects = np.zeros(size, dtype=np.bool_)
    for amounts in (tokens, np.nan_to_num(costs)):
        below = np.bincount(parent, amounts, minlength=size)
        suspects |= np.bincount(node, amounts, minlength=size) < below
    suspects[:-1] &= totals
    suspects[-1] = False
    if not suspects.any():
        return []
    own: dict[int, list[int]] = {}
    children: dict[int, list[int]] = {}
    for index in np.flatnonzero(suspects[node]).tolist():
        own.setdefault(int(node[index]), []).append(index)
    for index in np.flatnonzero(suspects[parent]).tolist():
        children.setdefault(int(parent[index]), []).append(index)
    lines = []
    for suspect in sorted(own.keys() & children.keys(), key=columns.names.__getitem__):
        below_it = _once(children[suspect], keys[used])
        mine, theirs = (sum(tokens[part].tolist()) for part in (own[suspect], below_it))
        name = columns.names[suspect]
        if mine < theirs:
            lines.append(f"span {name} reports {int(mine)} tokens, its children {int(theirs)}: it is no total of them")
            continue
        paid, spent = (math.fsum(costs[part].tolist()) for part in (own[suspect], below_it))
        if paid < spent and not math.isclose(paid, spent, rel_tol=1e-9):
            lines.append(f"span {name} costs {paid:.6g} USD, its children {spent:.6g}: it is dearer below")
    return lines


def _once(indices: list[int], keys: Ints) -> list[int]:
    """Of several records of one response among siblings, one."""
    kept: dict[tuple[int, int], int] = {}
    for index in indices:
        key = int(keys[index])
        kept.setdefault((key, index if key < 0 else -1), index)
    return list(kept.values())


def _differs(columns: SpanColumns, group: Ints) -> str:
    where = ", ".join(sorted(columns.names[node] for node in columns.node[group].tolist()))
    response = columns.responses[int(columns.response[group[0]])]
    return f"response {response} is recorded with different usage in {where}"


def _several_providers(columns: SpanColumns, records: Ints) -> list[str]:
    """Ids that two named providers use: two responses, or one provider by two names."""
    named = records[(columns.response[records] >= 0) & (columns.provider[records] >= 0)]
    pairs = np.unique(columns.response[named] * max(1, len(columns.providers)) + columns.provider[named])
    response, count = np.unique(pairs // max(1, len(columns.providers)), return_counts=True)
    ids = sorted(columns.responses[one] for one in response[count > 1].tolist())
    return [f"response {id_} is recorded under several providers" for id_ in ids]
