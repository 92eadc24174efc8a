"""The tree behind spans, on arrays: parents, cycles, and what lies above and below a node.

Walks up a tree are done by pointer doubling, in about log2(depth) passes over all nodes, so that a chain a million
spans deep costs no more than twenty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.billing.columns import Bools, Ints, SpanColumns


@dataclass(frozen=True, eq=False)
class Forest:
    """Nodes by number, a node being all records (attempts) of one span id.

    `parent` has shape (nodes + 1,): the last entry is the ground, which is every root's parent and its own. Lists of
    numbers say what was contradictory: nodes with several parents, whose parent is missing, cut out of a cycle.
    """

    parent: Ints
    several_parents: Ints
    orphans: Ints
    cut: tuple[int, ...]

    @property
    def ground(self) -> int:
        return self.parent.size - 1

    def first_at_or_above(self, wanted: Bools) -> Ints:
        """For each node, the nearest one at or above it that is `wanted` (nodes,), or the ground."""
        stop = np.append(wanted, True)
        jump = np.where(stop, np.arange(stop.size), self.parent)
        while True:
            further = jump[jump]
            if np.array_equal(further, jump):
                return jump
            jump = further

    def first_above(self, wanted: Bools) -> Ints:
        """For each node, shape (nodes,), the nearest `wanted` one strictly above it, or the ground."""
        return self.first_at_or_above(wanted)[self.parent[:-1]]

    def any_at_or_below(self, marked: Bools) -> Bools:
        """For each node, whether it or anything below it is `marked` (nodes,)."""
        found = np.append(marked, False)
        jump = self.parent
        # After pass k, found covers everything at most 2^k − 1 below; `jump` is the ancestor 2^k above.
        while (jump[:-1] != self.ground).any():
            found[jump[found]] = True
            found[self.ground] = False
            jump = jump[jump]
        return found[:-1]


def forest_of(columns: SpanColumns, records: Ints) -> Forest:
    """The forest of the given records. Its nodes are all numbers of `columns.names`, with a record or without."""
    nodes = len(columns.names)
    node, named = columns.node[records], columns.parent[records]
    present = np.zeros(nodes, dtype=np.bool_)
    present[node] = True
    parent = np.full(nodes + 1, nodes, dtype=np.int64)
    missing = (named >= 0) & ~present[named]
    known = np.where((named < 0) | missing, nodes, named)
    parent[node] = known
    last_named = np.full(nodes, -2, dtype=np.int64)
    last_named[node] = named
    several = np.unique(node[last_named[node] != named])
    if several.size:
        _settle(parent, several, node, known, columns.names)
    cut = _cut_cycles(parent, columns.names)
    return Forest(parent, several, np.unique(node[missing]), tuple(cut))


def _settle(parent: Ints, several: Ints, node: Ints, known: Ints, names: Sequence[str]) -> None:
    """Where records of one span name several parents, the least of those that are there counts."""
    ground = parent.size - 1
    candidates: dict[int, set[int]] = {int(one): set() for one in several}
    among = np.isin(node, several)
    for one, above in zip(node[among].tolist(), known[among].tolist(), strict=True):
        if above != ground:
            candidates[one].add(above)
    for one, above in candidates.items():
        parent[one] = min(above, key=names.__getitem__) if above else ground


def _cut_cycles(parent: Ints, names: Sequence[str]) -> list[int]:
    """Make the least member of every cycle a root; returns those."""
    ground = parent.size - 1
    jump = parent
    for _ in range(max(1, ground).bit_length() + 1):
        if (jump == ground).all():
            return []
        jump = jump[jump]
    # Whoever has not reached the ground by now lies on or below a cycle, and `jump` of it lies on one.
    cut: list[int] = []
    done: set[int] = set()
    for start in np.unique(jump[jump != ground]).tolist():
        if start in done:
            continue
        cycle, at = [start], int(parent[start])
        while at != start:
            cycle.append(at)
            at = int(parent[at])
        done.update(cycle)
        cut.append(min(cycle, key=names.__getitem__))
    parent[cut] = ground
    return cut
