"""Who did what in an action list that mixes an agent's calls with the grader's replay of the reference. Pure.

After Algorithm 1 of the paper on silent instrument errors (SOURCES S2): the calls that the agent executed, from the
model log, are matched to the list in order, by name and arguments; reference actions that stay unmatched, anywhere in
the list, are the grader's. Where several matchings are as good, an entry is the agent's only if it is in all of them;
the rest is decided by whole copies of the reference that follow an action which can end an episode, if just one such
reading exists. Otherwise it is ambiguous, and said to be.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations, pairwise
from typing import Any

ENDING = frozenset({"respond", "transfer_to_human_agents"})  # actions that can end an episode, and so start grading
TERMINAL = frozenset({"transfer_to_human_agents"})  # never replayed, and nothing of the agent's need follow it
_MOST_COPIES = 3
_MOST_CELLS = 4_000_000  # of the matching table: two lists of 2,000 calls

Call = tuple[str, Any]


class Confidence(StrEnum):
    """How sure an attribution is."""

    MATCHED = "matched"  # by the model log, in one way only
    STRUCTURAL = "structural"  # by whole copies of the reference in places where only the grader puts them
    AMBIGUOUS = "ambiguous"  # more than one reading; the one given is not the only one
    NONE = "none"  # nothing to tell apart: no list


@dataclass(frozen=True)
class Attribution:
    """`grader` are the indices of the list that the grader did; all others are the agent's.

    `copies` are the starts of whole replays of the reference. `lost` are executed calls that the list does not hold,
    `lost_at` the places of the list before which they belong.
    """

    grader: frozenset[int]
    copies: tuple[int, ...]
    confidence: Confidence
    why: str
    lost: tuple[int, ...] = ()
    lost_at: tuple[int, ...] = ()
    strangers: tuple[int, ...] = ()  # neither executed nor of the reference

    @property
    def graded(self) -> bool:
        """Whether a replay of the reference was found: evidence that grading happened."""
        return bool(self.grader)


def attribute(log: Sequence[Call], reference: Sequence[Call], executed: Sequence[Call] | None = None) -> Attribution:
    """Tell the grader's entries of `log` from the agent's. `executed` None: there is no model log."""
    keys = [_key(call) for call in log]
    wanted = [_key(call) for call in reference if call[0] not in TERMINAL]
    ends = [call[0] in ENDING for call in log]
    terminal = [call[0] in TERMINAL for call in log]
    if not keys:
        return Attribution(frozenset(), (), Confidence.NONE, "the action list is empty")
    starts = _copies(keys, wanted, ends)
    if executed is None or len(executed) * len(keys) > _MOST_CELLS:
        return _structural(keys, wanted, starts, terminal)
    return _matched(keys, wanted, starts, [_key(call) for call in executed])


def _key(call: Call) -> str:
    return json.dumps(call, sort_keys=True, default=str)


def _copies(keys: list[str], wanted: list[str], ends: list[bool]) -> list[int]:
    """Where a whole copy of the reference stands right after an action that can end an episode."""
    if not wanted:
        return []
    size = len(wanted)
    return [at for at in range(1, len(keys) - size + 1) if ends[at - 1] and keys[at : at + size] == wanted]


def _structural(keys: list[str], wanted: list[str], starts: list[int], terminal: list[bool]) -> Attribution:
    """Without a model log. A terminal action starts grading, so copies before it are the agent's own work; without one
    the grader's copy can only be the last thing in the list."""
    size = len(wanted)
    if not wanted:
        why = "the reference has no actions: whether it was replayed cannot be seen"
        return Attribution(frozenset(), (), Confidence.AMBIGUOUS, why)
    over = terminal.index(True) if True in terminal else None
    apart: list[int] = []
    for at in starts:
        possible = at + size == len(keys) if over is None else at > over
        if possible and (not apart or at >= apart[-1] + size):
            apart.append(at)
    if not apart:
        return Attribution(frozenset(), (), Confidence.STRUCTURAL, "no whole copy of the reference follows an ending")
    certain = over is not None or _repeated(keys, wanted, apart[0])
    taken = frozenset(index for at in apart for index in range(at, at + size))
    where = "a terminal action" if over is not None else "a message"
    why = f"{len(apart)} whole cop{'y' if len(apart) == 1 else 'ies'} of the reference after {where}; no model log"
    return Attribution(taken, tuple(apart), Confidence.STRUCTURAL if certain else Confidence.AMBIGUOUS, why)


def _repeated(keys: list[str], wanted: list[str], at: int) -> bool:
    """Whether a copy at the very end repeats what was done before: then it is not work that the agent did there for the
    first time, without a word to the user after it."""
    return at + len(wanted) == len(keys) and all(key in keys[:at] for key in wanted)


def _matched(keys: list[str], wanted: list[str], starts: list[int], executed: list[str]) -> Attribution:
    forward, backward = _tables(executed, keys)
    best = forward[-1][-1]
    must = _in_every(forward, backward, best, keys)
    may = _in_some(forward, backward, best, keys, executed)
    known = frozenset(wanted)
    outside = frozenset(index for index in range(len(keys)) if index not in may)
    strangers = tuple(sorted(index for index in outside if keys[index] not in known))
    left = len(keys) - best - len(strangers)  # reference actions that nobody executed
    lost, places = _unmatched(executed, keys)
    if left == 0:
        why = "every entry was executed by the agent, or is no reference action" + (
            "" if wanted else "; the reference has no actions"
        )
        sure = Confidence.MATCHED if wanted else Confidence.AMBIGUOUS
        return Attribution(frozenset(), (), sure, why, lost, places, strangers)
    free = [index for index in range(len(keys)) if index not in must]
    readings = _readings(starts, len(wanted), left, frozenset(free), outside - frozenset(strangers))
    if len(readings) == 1:
        copies = readings[0]
        grader = frozenset(index for at in copies for index in range(at, at + len(wanted)))
        why = f"{left} entries without an executed call: {len(copies)} whole replay(s) of the reference"
        return Attribution(grader, copies, Confidence.MATCHED, why, lost, places, strangers)
    if readings:
        copies = readings[0]
        grader = frozenset(index for at in copies for index in range(at, at + len(wanted)))
        why = f"{len(readings)} places fit {len(copies)} replay(s): the agent did the same as the reference"
        return Attribution(grader, copies, Confidence.AMBIGUOUS, why, lost, places, strangers)
    grader = outside - frozenset(strangers)
    why = f"{len(grader)} unmatched reference action(s), not as whole copies"
    return Attribution(grader, (), Confidence.AMBIGUOUS, why, lost, places, strangers)


def _readings(
    starts: list[int], size: int, left: int, free: frozenset[int], outside: frozenset[int]
) -> list[tuple[int, ...]]:
    """The ways to explain all unexecuted entries as whole replays that do not overlap."""
    if not size or left % size or left // size > _MOST_COPIES:
        return []
    possible = [at for at in starts if all(index in free for index in range(at, at + size))]
    found = []
    for copies in combinations(possible, left // size):
        apart = all(later >= earlier + size for earlier, later in pairwise(copies))
        covered = {index for at in copies for index in range(at, at + size)}
        if apart and outside <= covered:
            found.append(copies)
    return found


def _tables(a: list[str], b: list[str]) -> tuple[list[list[int]], list[list[int]]]:
    """Lengths of the longest common subsequence: of every pair of beginnings, and of every pair of ends."""
    forward = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, x in enumerate(a):
        row, above = forward[i + 1], forward[i]
        for j, y in enumerate(b):
            row[j + 1] = above[j] + 1 if x == y else max(above[j + 1], row[j])
    backward = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in range(len(a) - 1, -1, -1):
        row, below = backward[i], backward[i + 1]
        for j in range(len(b) - 1, -1, -1):
            row[j] = below[j + 1] + 1 if a[i] == b[j] else max(below[j], row[j + 1])
    return forward, backward


def _in_every(forward: list[list[int]], backward: list[list[int]], best: int, keys: list[str]) -> frozenset[int]:
    """Entries without which no matching is as long."""
    rows = range(len(forward))
    return frozenset(j for j in range(len(keys)) if max(forward[i][j] + backward[i][j + 1] for i in rows) < best)


def _in_some(
    forward: list[list[int]], backward: list[list[int]], best: int, keys: list[str], executed: list[str]
) -> frozenset[int]:
    """Entries that some longest matching uses."""
    return frozenset(
        j
        for j, key in enumerate(keys)
        if any(key == done and forward[i][j] + 1 + backward[i + 1][j + 1] == best for i, done in enumerate(executed))
    )


def _unmatched(executed: list[str], keys: list[str]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Executed calls that the list does not hold in their place, and where in the list that is."""
    _, backward = _tables(executed, keys)
    i = j = 0
    lost, places = [], []
    while i < len(executed):
        if j < len(keys) and executed[i] == keys[j]:
            i, j = i + 1, j + 1
        elif j == len(keys) or backward[i + 1][j] >= backward[i][j + 1]:
            lost.append(i)
            places.append(j)
            i += 1
        else:
            j += 1
    return tuple(lost), tuple(places)
