"""The live display: a few lines that redraw on a terminal, plain lines elsewhere. Always on stderr."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from harness.records.vocabulary import Outcome
from harness.runner.progress import Observer
from harness.runner.progress import Progress as Snapshot

PLAIN_EVERY_S = 5.0
SHOWN_IN_FLIGHT = 6


@contextmanager
def live_display(stream: TextIO) -> Iterator[Observer]:
    """An observer that draws on `stream` until the context ends."""
    console = Console(file=stream, highlight=False)
    if console.is_terminal:
        with _redrawn(console) as observer:
            yield observer
    else:
        yield PlainLines(console)


class PlainLines:
    """A line when a trial ends, at most one per five seconds beside problems and the last."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._last_s = float("-inf")

    def __call__(self, snapshot: Snapshot) -> None:
        if not snapshot.run:
            self._console.print(snapshot.message, soft_wrap=True, markup=False)
        if snapshot.last is None:
            return
        now = time.monotonic()
        task, result = snapshot.last
        problem = not result.outcome.graded
        done = done_of(snapshot) >= snapshot.planned
        if not (problem or done or snapshot.message) and now - self._last_s < PLAIN_EVERY_S:
            return
        self._last_s = now
        line = f"{done_of(snapshot)}/{snapshot.planned}  {counts(snapshot)}  {spend(snapshot)}"
        if problem:
            line += f"  {task}: {result.outcome.value} ({result.reason}) {result.detail}"
        self._console.print(f"{line}  {snapshot.message}".rstrip(), soft_wrap=True, markup=False)


@contextmanager
def _redrawn(console: Console) -> Iterator[Observer]:
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console
    )
    row = bar.add_task("tasks", total=None)
    lines = Text()
    with Live(Group(bar, lines), console=console, refresh_per_second=8) as live:

        def observe(snapshot: Snapshot) -> None:
            bar.update(
                row,
                total=snapshot.planned or None,
                completed=done_of(snapshot),
                description=snapshot.run or snapshot.message,
            )
            live.update(Group(bar, Text("\n".join(_lines(snapshot) if snapshot.run else []))))

        yield observe


def _lines(snapshot: Snapshot) -> list[str]:
    flying = [f"{task} {state.value}" for task, state in snapshot.in_flight if state.value != "done"]
    shown = ", ".join(flying[:SHOWN_IN_FLIGHT]) + (" …" if len(flying) > SHOWN_IN_FLIGHT else "")
    lines = [counts(snapshot), spend(snapshot), f"in flight {len(flying)}: {shown}"]
    if snapshot.message:
        lines.append(snapshot.message)
    return lines


def done_of(snapshot: Snapshot) -> int:
    """What counts towards `planned`: grades in an adaptive run, where a lost task is replaced; else all that ended."""
    return snapshot.graded if snapshot.estimate is not None else snapshot.settled


def counts(snapshot: Snapshot) -> str:
    """Outcomes so far, and the estimate with its interval."""
    counted = {outcome: snapshot.outcomes[outcome] for outcome in Outcome}
    words = [f"{counted[Outcome.PASSED]} passed", f"{counted[Outcome.FAILED]} failed"]
    words += [f"{counted[o]} {o.value}" for o in (Outcome.UNGRADED, Outcome.INVALID) if counted[o]]
    if snapshot.unavailable:
        words.append(f"{snapshot.unavailable} unavailable")
    if snapshot.estimate is not None:
        value, lower, upper = (100 * part for part in snapshot.estimate)
        words.append(f"estimate {value:.1f} % [{lower:.1f}, {upper:.1f}]")
    return ", ".join(words)


def spend(snapshot: Snapshot) -> str:
    """Money and tokens so far; "at least" where something is unknown."""
    if not snapshot.tokens and not snapshot.cost_usd:
        return "no model calls"
    at_least = "at least " if snapshot.cost_unknown else ""
    return f"{at_least}${snapshot.cost_usd:.2f}, {snapshot.tokens:,} tokens"
