"""The bill of a span tree. Pure.

Going down from each root, the first span that carries usage is billed and nothing below it: an agent's span
that holds the sum of its calls is not added to them (CASES K01). Attempts of one call share a span id and are
judged together: each that carries usage is billed. Records of one provider response (`provider`,
`response_id`) bill once, however often it was recorded. A call without usage anywhere on its path is missing
coverage, and makes the total a lower bound. What contradicts itself is billed by these rules and named.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce

from harness.records.usage import Span, Usage


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
        if self.usage is None or self.all_spans is None or self.usage.total == 0:
            return None
        return self.all_spans.total / self.usage.total

    def agrees_with(self, archived_tokens: int) -> str:
        """Which sum an archived total is: "billed", "all spans", "both" or "neither"."""
        billed = self.tokens == archived_tokens
        flat = self.all_spans is not None and self.all_spans.total == archived_tokens
        return {(True, True): "both", (True, False): "billed", (False, True): "all spans"}.get(
            (billed, flat), "neither"
        )


def fold(spans: Iterable[Span]) -> Bill:
    """Bill a forest of spans. The order of the spans changes nothing but the order of what is listed."""
    tree = _Tree(spans)
    reached = [span for root in tree.roots for span in tree.first_with_usage(root)]
    kept, duplicate_conflicts = _once_per_response(reached)
    billed = tuple(span for span in kept if span.charged)
    missing = tuple(tree.missing)
    costs = [span.cost_usd for span in billed]
    known = [cost for cost in costs if cost is not None]
    uncharged = tuple(span for span in kept if not span.charged)
    complete = len(known) == len(costs) and not missing and bool(billed or uncharged)
    return Bill(
        usage=_total(billed),
        cost_usd=sum(known) if complete else None,
        cost_at_least_usd=sum(known),
        billed=billed,
        missing=missing,
        uncharged=uncharged,
        all_spans=_total(tree.spans),
        conflicts=(*tree.conflicts, *duplicate_conflicts),
    )


class _Tree:
    """Spans by parent. The attempts that share a span id are one node."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self.spans = _distinct(spans)
        self.conflicts: list[str] = []
        self.missing: list[str] = []
        self.nodes: dict[str, list[Span]] = {}
        for span in self.spans:
            self.nodes.setdefault(span.span, []).append(span)
        self.children: dict[str, list[str]] = {name: [] for name in self.nodes}
        parents = {name: self._parent(name, attempts) for name, attempts in self.nodes.items()}
        for name, parent in parents.items():
            if parent is not None:
                self.children[parent].append(name)
        self.roots = [name for name, parent in parents.items() if parent is None]
        self._break_cycles(parents)
        self._compare_with_children()

    def _parent(self, name: str, attempts: list[Span]) -> str | None:
        named = {span.parent for span in attempts}
        if len(named) > 1:
            self.conflicts.append(f"span {name} has several parents")
        if len({span.attempt for span in attempts}) < len(attempts):
            self.conflicts.append(f"span {name} stands twice with different content")
        known = sorted(parent for parent in named if parent is not None and parent in self.nodes)
        if any(parent is not None and parent not in self.nodes for parent in named):
            self.conflicts.append(f"the parent of span {name} is not among the spans; it counts as a root")
        return known[0] if known else None

    def _break_cycles(self, parents: Mapping[str, str | None]) -> None:
        """Whatever no root leads to lies on or below a cycle: its least member becomes a root."""
        reached = {name for root in self.roots for name in self._below(root)}
        for name in sorted(parents):
            if name not in reached:
                start = _on_cycle(name, parents)
                self.conflicts.append(f"span {start} is its own ancestor")
                parent = parents[start]
                if parent is not None:
                    self.children[parent].remove(start)
                self.roots.append(start)
                reached.update(self._below(start))

    def _below(self, name: str) -> set[str]:
        found, open_ = {name}, [name]
        while open_:
            for child in self.children[open_.pop()]:
                if child not in found:
                    found.add(child)
                    open_.append(child)
        return found

    def _compare_with_children(self) -> None:
        """A span whose usage is less than its children's sum is not their total (CASES K07)."""
        for name, attempts in self.nodes.items():
            own = _total(attempts)
            below = _total(span for child in self.children[name] for span in self.nodes[child])
            if own is not None and below is not None and own.total < below.total:
                self.conflicts.append(
                    f"span {name} reports {own.total} tokens, its children {below.total}: it is no total of them"
                )

    def first_with_usage(self, root: str) -> list[Span]:
        """The spans to bill below and including `root`, noting calls that have no usage anywhere."""
        found: list[Span] = []
        open_ = [root]
        while open_:
            name = open_.pop()
            attempts = self.nodes[name]
            carrying = [span for span in attempts if span.usage is not None]
            if carrying:
                found += carrying
                self.missing += [span.span for span in attempts if span.usage is None and _is_call(span)]
                continue
            # A call whose parts carry usage is covered by them.
            if any(_is_call(span) for span in attempts) and not self._usage_below(name):
                self.missing += [span.span for span in attempts if _is_call(span)]
                continue
            open_ += reversed(self.children[name])
        return found

    def _usage_below(self, name: str) -> bool:
        return any(span.usage is not None for below in self._below(name) for span in self.nodes[below])


def _is_call(span: Span) -> bool:
    """Whether a span without usage is a model call that may have been charged, not a mere bracket around others."""
    return span.charged and (span.model is not None or span.provider is not None or span.response_id is not None)


def _on_cycle(name: str, parents: Mapping[str, str | None]) -> str:
    """The least span id on the cycle that the ancestors of `name` run into."""
    path: list[str] = []
    current: str | None = name
    while current is not None and current not in path:
        path.append(current)
        current = parents[current]
    return min(path[path.index(current) :]) if current is not None else name


def _once_per_response(spans: Iterable[Span]) -> tuple[list[Span], list[str]]:
    """One span per provider response: of several records the most complete. Others as they are."""
    records: dict[tuple[str | None, ...], list[Span]] = {}
    providers: dict[str, set[str | None]] = {}
    for number, span in enumerate(spans):
        key = (str(number),) if span.response_id is None else (span.provider, span.response_id)
        records.setdefault(key, []).append(span)
        if span.response_id is not None:
            providers.setdefault(span.response_id, set()).add(span.provider)
    conflicts = []
    for same in records.values():
        if any(span.usage != same[0].usage for span in same):
            where = ", ".join(sorted(span.span for span in same))
            conflicts.append(f"response {same[0].response_id} is recorded with different usage in {where}")
    conflicts += [
        f"response {id_} is recorded under several providers" for id_, who in providers.items() if len(who) > 1
    ]
    return [max(same, key=_completeness) for same in records.values()], conflicts


def _completeness(span: Span) -> tuple[bool, bool, int, bool, float, str]:
    usage = span.usage or Usage()
    cost = span.cost_usd
    return span.charged, usage.known, usage.total, cost is not None, cost or 0.0, span.span


def _total(spans: Iterable[Span]) -> Usage | None:
    usages = [span.usage for span in spans if span.usage is not None]
    return reduce(lambda a, b: a + b, usages) if usages else None


def _distinct(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The spans without exact repetitions, which say nothing new."""
    seen: dict[str, list[Span]] = {}
    kept: list[Span] = []
    for span in spans:
        twins = seen.setdefault(span.span, [])
        if span not in twins:
            twins.append(span)
            kept.append(span)
    return tuple(kept)
