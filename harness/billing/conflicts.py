"""What contradicts itself in a span tree, as sentences. A bill follows its rules all the same, and shows these."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from harness.billing.columns import Bools, Ints, SpanColumns, totals_of
from harness.billing.duplicates import provider_span
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
        _several_providers(columns),
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
    tokens = totals_of(columns, used).astype(np.float64)
    costs = columns.cost_usd[used]
    known = np.nan_to_num(costs)  # a lower bound of what is below
    size = forest.ground + 1
    suspects = np.zeros(size, dtype=np.bool_)
    for amounts in (tokens, known):
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
        below_it = _once(children[suspect], keys[used], lambda index: (tokens[index], known[index]))
        mine, theirs = (sum(tokens[part].tolist()) for part in (own[suspect], below_it))
        name = columns.names[suspect]
        if mine < theirs:
            lines.append(f"span {name} reports {int(mine)} tokens, its children {int(theirs)}: it is no total of them")
            continue
        paid, spent = math.fsum(costs[own[suspect]].tolist()), math.fsum(known[below_it].tolist())
        if paid < spent and not math.isclose(paid, spent, rel_tol=1e-9):
            lines.append(f"span {name} costs {paid:.6g} USD, its children {spent:.6g}: it is dearer below")
    return lines


def _once(indices: list[int], keys: Ints, amounts: Callable[[int], tuple[float, float]]) -> list[int]:
    """Of several records of one response among siblings, the one with most tokens, and of those the dearest."""
    kept: dict[tuple[int, int], int] = {}
    for index in indices:
        key = int(keys[index])
        place = (key, index if key < 0 else -1)
        if place not in kept or amounts(index) > amounts(kept[place]):
            kept[place] = index
    return list(kept.values())


def _differs(columns: SpanColumns, group: Ints) -> str:
    where = ", ".join(sorted(columns.names[node] for node in columns.node[group].tolist()))
    response = columns.responses[int(columns.response[group[0]])]
    return f"response {response} is recorded with different usage in {where}"


def _several_providers(columns: SpanColumns) -> list[str]:
    """Ids that two named providers use: two responses, or one provider by two names."""
    least, greatest = provider_span(columns)
    ids = sorted(columns.responses[one] for one in np.flatnonzero(least < greatest).tolist())
    return [f"response {id_} is recorded under several providers" for id_ in ids]
