"""What runs next: the plan of a fixed run, or the adaptive engine's choice. Synchronous and deterministic.

A *slot* is a planned (task, repeat) pair. A slot is settled by a grade; an attempt that brought none leaves it open
for a retry or for `resume`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from harness.adaptive.engine import AdaptiveEngine
from harness.adaptive.estimators import Estimate
from harness.adaptive.evidence import Draw
from harness.adaptive.selection import Choice
from harness.adaptive.state import NOT_KNOWN, Spent
from harness.records.grade import TrialResult
from harness.records.vocabulary import UNAVAILABLE_REASONS, Outcome, Reason

CHOICE = "adaptive.choice"
UPDATE = "adaptive.update"
STOP = "adaptive.stop"


@dataclass(frozen=True)
class Slot:
    """One planned pair, and the number its next attempt gets."""

    number: int
    task: str
    repeat: int = 0
    attempt: int = 1


RunEvents = list[tuple[str, dict[str, Any]]]  # (kind, payload) to be stored in the run's stream before acting


class Schedule(Protocol):
    """Hands out slots and takes in how they ended."""

    planned: int

    def next(self, in_flight: Sequence[str]) -> tuple[Slot | None, RunEvents]:
        """The next slot given the tasks in flight, or None when there is nothing to start now."""
        ...

    def attempted(self, slot: int, result: TrialResult) -> None:
        """An attempt at a slot has ended, whether or not another follows: what it took counts."""
        ...

    def settle(self, slot: Slot, outcome: Outcome, reason: Reason | None) -> RunEvents:
        """A slot's last attempt in this process has ended."""
        ...

    def estimate(self) -> Estimate | None:
        """The estimated full-suite pass rate; None for a fixed run."""
        ...


class FixedSchedule:
    """Every slot once, in order."""

    def __init__(self, slots: Iterable[Slot], planned: int) -> None:
        self._waiting = deque(slots)
        self.planned = planned

    def next(self, in_flight: Sequence[str]) -> tuple[Slot | None, RunEvents]:
        return (self._waiting.popleft() if self._waiting else None), []

    def attempted(self, slot: int, result: TrialResult) -> None:
        """Nothing: a fixed plan does not depend on what it takes."""

    def settle(self, slot: Slot, outcome: Outcome, reason: Reason | None) -> RunEvents:
        return []

    def estimate(self) -> Estimate | None:
        return None


@dataclass
class AdaptiveSchedule:
    """The engine's choices, each an event with θ, information, top candidates and seed.

    `waiting` are slots chosen earlier that still need a grade (after `resume`); they go first.
    """

    engine: AdaptiveEngine
    planned: int
    waiting: deque[Slot] = field(default_factory=deque)
    next_number: int = 0
    _stopped: bool = False
    _attempts: dict[int, list[TrialResult]] = field(default_factory=dict)  # by slot, since it was last settled

    def next(self, in_flight: Sequence[str]) -> tuple[Slot | None, RunEvents]:
        if self.waiting:
            return self.waiting.popleft(), []
        step = self.engine.next(tuple(in_flight))
        if isinstance(step, Choice):
            slot = Slot(self.next_number, step.item)
            self.next_number += 1
            return slot, [(CHOICE, {"slot": slot.number, **step.as_event()})]
        if step.final and not self._stopped:
            self._stopped = True
            return None, [(STOP, step.as_event())]
        return None, []

    def attempted(self, slot: int, result: TrialResult) -> None:
        self._attempts.setdefault(slot, []).append(result)

    def settle(self, slot: Slot, outcome: Outcome, reason: Reason | None) -> RunEvents:
        if reason is Reason.CANCELLED:
            return []  # still wanted: resume runs it
        before = len(self.engine.events)
        spent = spent_on(self._attempts.pop(slot.number, []))
        if outcome.graded:
            self.engine.observe(slot.task, outcome is Outcome.PASSED, spent=spent)
        else:
            kind = "unavailable" if reason in UNAVAILABLE_REASONS else "ungraded"
            self.engine.withdraw(slot.task, kind, reason.value if reason else outcome.value, spent)
        return [(UPDATE, event) for event in self.engine.events[before:]]

    def estimate(self) -> Estimate | None:
        return self.engine.estimate()

    def restore(self, choices: Iterable[Mapping[str, Any]], updates: Iterable[Mapping[str, Any]]) -> None:
        """Rebuild from the run's own events: same engine state, same next choice, to the bit."""
        told = list(choices)
        for choice in told:
            if "draw" in choice:  # not in runs of the first version
                self.engine.recall(choice["item"], Draw(**choice["draw"]))
        self.engine.replay(updates)
        numbers = [int(choice["slot"]) for choice in told]
        self.next_number = max(numbers, default=-1) + 1

    def reinstate(self, slots: Iterable[Slot]) -> RunEvents:
        """Put withdrawn items back, because their slots are to be attempted again."""
        before = len(self.engine.events)
        withdrawn = {self.engine.bank.item_ids[position] for position in self.engine.state.withdrawn}
        for slot in slots:
            if slot.task in withdrawn:
                self.engine.reinstate(slot.task)
        return [(UPDATE, event) for event in self.engine.events[before:]]


def spent_on(attempts: Sequence[TrialResult]) -> Spent:
    """What attempts took together; a sum with an unknown part is not known."""
    if not attempts:
        return NOT_KNOWN
    costs = [result.cost_usd for result in attempts]
    known = [cost for cost in costs if cost is not None]
    return Spent(sum(known) if len(known) == len(costs) else None, sum(result.seconds or 0.0 for result in attempts))
