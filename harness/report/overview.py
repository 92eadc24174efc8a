"""All runs of a store, a line each: newest first, with what a person looks for when choosing one."""

from __future__ import annotations

from harness.adaptive.errors import AdaptiveError
from harness.protocols import EvidenceStore
from harness.records.base import Record
from harness.records.errors import AssayError
from harness.records.run import RunRow
from harness.records.vocabulary import Outcome
from harness.report.summary import Estimator, RunState, Summary, summarise
from harness.report.text import percent
from harness.report.words import one_line
from harness.store.flat import agent_name


class RunLine(Record):
    """One run. What cannot be read is null, and `problem` says why."""

    run: str
    created: str
    suite: str
    agent: str
    adaptive: bool
    state: RunState | None
    planned: int | None
    done: int | None  # slots carried out to an end, with a grade or without
    graded: int | None
    outcomes: dict[Outcome, int] | None
    score: float | None
    score_kind: str | None
    interval: tuple[float, float] | None
    survivors: int | None  # of a mutated run: how many mutants the grader passed
    running: bool
    problem: str | None = None


def overview(store: EvidenceStore, estimator: Estimator | None = None) -> tuple[RunLine, ...]:
    """A line for every run, newest first; one that is damaged hides no other. Raises StoreError."""
    return tuple(_line(row, store, estimator) for row in reversed(store.runs()))


def _line(row: RunRow, store: EvidenceStore, estimator: Estimator | None) -> RunLine:
    summary, problem = _read(row, store, estimator)
    return RunLine(
        run=row.run,
        created=row.created,
        suite=row.config.suite,
        agent=agent_name(row.config),
        adaptive=row.config.adaptive is not None,
        state=summary.state if summary else None,
        planned=summary.planned if summary else None,
        done=summary.done if summary else None,
        graded=summary.graded if summary else None,
        outcomes=summary.outcomes if summary else None,
        score=summary.score if summary and problem is None else None,
        score_kind=summary.score_kind if summary and problem is None else None,
        interval=summary.interval if summary and problem is None else None,
        survivors=len(summary.survivors) if summary and summary.survivors is not None else None,
        running=store.owned(row.run),
        problem=problem,
    )


def _read(row: RunRow, store: EvidenceStore, estimator: Estimator | None) -> tuple[Summary | None, str | None]:
    """The summary of a run and what is wrong with it. Without its bank a run has no estimate, but counts it has."""
    try:
        return summarise(store, row.run, estimator), None
    except (AssayError, AdaptiveError) as error:
        problem = str(error)
    try:
        return summarise(store, row.run), problem
    except AssayError:
        return None, problem


def overview_text(lines: tuple[RunLine, ...]) -> str:
    """The lines as a table."""
    rows = [("run", "created (UTC)", "state", "graded", "score", "suite", "agent")]
    rows += [
        (
            line.run,
            line.created[:16].replace("T", " "),
            line.state.value if line.state else "unreadable",
            "-" if line.graded is None else f"{line.graded}/{line.planned}",
            _score(line),
            one_line(line.suite),
            one_line(line.agent) + (f"  ({one_line(line.problem)})" if line.problem else ""),
        )
        for line in lines
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(6)] + [0]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def _score(line: RunLine) -> str:
    if line.survivors is not None:
        return f"{line.survivors} survived"
    if line.score is None:
        return "-"
    if line.adaptive and line.interval is not None:
        lower, upper = line.interval
        return f"{percent(line.score)} [{100 * lower:.1f}, {100 * upper:.1f}]"
    return percent(line.score)
