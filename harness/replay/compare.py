"""A recorded answer beside the replayed one: the same, the same in other words, or another. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

from harness.records.replay import Match
from harness.replay.normalise import Fields, Normalisation, Tree, Written, tree_of

_LONGEST_SHOWN = 60
_ABSENT = object()


class Compared(NamedTuple):
    """`rule` names the normalisations under which two answers are one, or says where they differ."""

    match: Match
    rule: str = ""


def compare(recorded: str, replayed: str, rules: Sequence[Normalisation]) -> Compared:
    """Byte for byte, then under each rule alone, then under all of them together."""
    if recorded == replayed:
        return Compared(Match.SAME)
    trees = _trees(recorded, replayed)
    if trees is None:
        return _texts(recorded, replayed, rules)
    old, new = trees
    for rule in rules:
        if rule.form(old) == rule.form(new):
            return Compared(Match.COSMETIC, rule.name)
    together = _together(old, new, rules)
    if together:
        return Compared(Match.COSMETIC, together)
    for rule in rules:
        old, new = rule.form(old), rule.form(new)
    return Compared(Match.KEY, difference(old, new) or "only the layout differs")


def difference(old: Tree, new: Tree, place: str = "") -> str:
    """The first place where two trees differ, and what stands there; empty when they are equal."""
    if isinstance(old, Fields) and isinstance(new, Fields):
        keys, others = [key for key, _ in old.pairs], [key for key, _ in new.pairs]
        if keys != others:
            return f"{place or 'the object'}: {_keys(keys, others)}"
        dotted = f"{place}." if place else ""
        pairs = [(dotted + key, a, b) for (key, a), (_, b) in zip(old.pairs, new.pairs, strict=True)]
    elif isinstance(old, list) and isinstance(new, list):
        pairs = [(f"{place}[{number}]", a, b) for number, (a, b) in enumerate(zip_longest(old, new, fillvalue=_ABSENT))]
    else:
        return "" if old == new else f"{place + ': ' if place else ''}{_shown(old)} became {_shown(new)}"
    return next((found for where, a, b in pairs if (found := difference(a, b, where))), "")


def _keys(old: Sequence[str], new: Sequence[str]) -> str:
    lacking, added = [key for key in old if key not in new], [key for key in new if key not in old]
    parts = [f"without {', '.join(lacking)}"] if lacking else []
    parts += [f"with {', '.join(added)}"] if added else []
    return " and ".join(parts) or "its keys stand in another order"


def _trees(recorded: str, replayed: str) -> tuple[Tree, Tree] | None:
    try:
        return tree_of(recorded), tree_of(replayed)
    except ValueError:
        return None


def _together(old: Tree, new: Tree, rules: Sequence[Normalisation]) -> str:
    """The names of the rules that are needed, when all of them together make the two one; empty when they do not."""
    needed = list(rules)
    if not _equal_under(old, new, needed):
        return ""
    for rule in rules:
        fewer = [other for other in needed if other is not rule]
        if _equal_under(old, new, fewer):
            needed = fewer
    return " + ".join(rule.name for rule in needed)


def _equal_under(old: Tree, new: Tree, rules: Sequence[Normalisation]) -> bool:
    for rule in rules:
        old, new = rule.form(old), rule.form(new)
    return bool(old == new)


def _texts(recorded: str, replayed: str, rules: Sequence[Normalisation]) -> Compared:
    """Texts that are no JSON are leaves."""
    for rule in rules:
        if rule.form(recorded) == rule.form(replayed):
            return Compared(Match.COSMETIC, rule.name)
    at = next((n for n, (a, b) in enumerate(zip_longest(recorded, replayed)) if a != b), 0)
    start = max(0, at - 20)
    return Compared(Match.KEY, f"character {at}: {_cut(repr(recorded[start:]))} became {_cut(repr(replayed[start:]))}")


def _shown(tree: Tree) -> str:
    if tree is _ABSENT:
        return "nothing"
    if isinstance(tree, Written):
        return tree.text
    if isinstance(tree, Fields):
        return f"an object of {len(tree.pairs)}"
    if isinstance(tree, list):
        return f"a list of {len(tree)}"
    return _cut(json.dumps(tree, ensure_ascii=False))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "…"
