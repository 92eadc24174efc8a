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

from harness.records.grade import TrialResult
from harness.records.vocabulary import Outcome, StopReason
from harness.report.text import LONGEST_LINE, ending_text
from harness.report.words import printable
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
        self._message = ""  # the last one that was told: once is enough

    def __call__(self, snapshot: Snapshot) -> None:
        if not snapshot.run:
            self._console.print(snapshot.message, soft_wrap=True, markup=False)
        if snapshot.last is None:
            return
        now = time.monotonic()
        task, result = snapshot.last
        problem = problem_of(task, result)
        done = done_of(snapshot) >= snapshot.planned
        if not (problem or done or snapshot.message) and now - self._last_s < PLAIN_EVERY_S:
            return
        self._last_s = now
        line = f"{done_of(snapshot)}/{snapshot.planned}  {counts(snapshot)}  {spend(snapshot)}"
        if problem:
            # What a run halted for says the detail, and trials that were under way met the same.
            line += f"  {problem_of(task, without_details(result)) if snapshot.message else problem}"
        if snapshot.message != self._message:
            line += f"  {snapshot.message}"
            self._message = snapshot.message
        self._console.print(line.rstrip(), soft_wrap=True, markup=False)


@contextmanager
def _redrawn(console: Console) -> Iterator[Observer]:
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=console
    )
    row = bar.add_task("tasks", total=None)
    lines = Text()
    problems: list[str] = []  # the last one stays in sight
    with Live(Group(bar, lines), console=console, refresh_per_second=8) as live:

        def observe(snapshot: Snapshot) -> None:
            bar.update(
                row,
                total=snapshot.planned or None,
                completed=done_of(snapshot),
                description=snapshot.run or snapshot.message,
            )
            problem = problem_of(*snapshot.last) if snapshot.last is not None else ""
            problems[:] = [problem] if problem else problems
            shown = [*_lines(snapshot), *([] if snapshot.message else problems)] if snapshot.run else []
            live.update(Group(bar, Text("\n".join(shown))))

        yield observe


def _lines(snapshot: Snapshot) -> list[str]:
    flying = [f"{task} {state.value}" for task, state in snapshot.in_flight if state.value != "done"]
    shown = ", ".join(flying[:SHOWN_IN_FLIGHT]) + (" …" if len(flying) > SHOWN_IN_FLIGHT else "")
    lines = [counts(snapshot), spend(snapshot), f"in flight {len(flying)}: {shown}"]
    if snapshot.message:
        lines.append(snapshot.message)
    return lines


def without_details(result: TrialResult) -> TrialResult:
    """A result whose end is told elsewhere."""
    return result.model_copy(update={"detail": "", "stop_detail": ""})


def problem_of(task: str, result: TrialResult) -> str:
    """What to say at once of an ended trial: that it has no grade, or that its solver crashed; else ""."""
    if result.outcome.graded and result.stop is not StopReason.SOLVER_ERROR:
        return ""
    details = (result.stop_detail, result.detail)
    return f"{printable(task)}: {ending_text(result.outcome, result.reason, result.stop, details)}"[:LONGEST_LINE]


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
    if snapshot.cost_unknown and not snapshot.cost_usd:
        return f"cost unknown, {snapshot.tokens:,} tokens"
    at_least = "at least " if snapshot.cost_unknown else ""
    return f"{at_least}${snapshot.cost_usd:.2f}, {snapshot.tokens:,} tokens"
