"""What a run still has to do: exactly what was planned minus what passed or failed. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harness.records.run import RunConfig, TrialRow
from harness.runner.schedule import Slot


def planned_slots(config: RunConfig) -> tuple[Slot, ...]:
    """The slots of a fixed run: all tasks once, then all again for the next repeat."""
    pairs = [(task, repeat) for repeat in range(config.repeats) for task in config.tasks]
    return tuple(Slot(number, task, repeat) for number, (task, repeat) in enumerate(pairs))


def chosen_slots(choices: Iterable[Mapping[str, Any]]) -> tuple[Slot, ...]:
    """The slots of an adaptive run so far, from its choice events."""
    return tuple(Slot(int(choice["slot"]), str(choice["item"])) for choice in choices)


def open_slots(slots: Iterable[Slot], rows: Sequence[TrialRow]) -> tuple[Slot, ...]:
    """Slots without a grade, each with its next attempt number. Attempts that left no result count as made."""
    graded = {row.slot for row in rows if row.result is not None and row.result.outcome.graded}
    made: dict[int, int] = {}
    for row in rows:
        made[row.slot] = max(made.get(row.slot, 0), row.attempt)
    return tuple(
        Slot(slot.number, slot.task, slot.repeat, made.get(slot.number, 0) + 1)
        for slot in slots
        if slot.number not in graded
    )


def abandoned(rows: Iterable[TrialRow]) -> tuple[TrialRow, ...]:
    """Attempts of a dead process: begun, and without a result."""
    return tuple(row for row in rows if row.result is None)
