"""Scores on the achievable denominator as plain text."""

from __future__ import annotations

from collections.abc import Iterator

from harness.records.audit import CAUSE_TEXT
from harness.records.score import Comparison, Score, TaskState
from harness.report.text import percent
from harness.report.words import one_line

MOST_TASKS = 20


def comparison_text(found: Comparison) -> str:
    """The three numbers of a run, and beside a baseline what of the change is whose."""
    rows = list(_rows(found.score))
    if found.baseline is not None:
        rows.append(
            ("baseline", f"{found.baseline.run} ({one_line(found.baseline.agent)}): {_headline(found.baseline)}")
        )
    if found.incomparable is not None:
        rows.append(("diagnosis", f"not comparable: {one_line(found.incomparable)}"))
    if found.diagnosis is not None:
        rows.append(("diagnosis", found.diagnosis.sentence))
        for name, tasks in (("died", found.diagnosis.died), ("opened", found.diagnosis.opened)):
            if tasks:
                more = f" and {len(tasks) - MOST_TASKS} more" if len(tasks) > MOST_TASKS else ""
                rows.append((name, ", ".join(tasks[:MOST_TASKS]) + more))
    return "\n".join(f"{name:11} {text}" for name, text in rows)


def _rows(score: Score) -> Iterator[tuple[str, str]]:
    version = score.suite_version[7:19] if score.suite_version.startswith("sha256:") else score.suite_version
    yield "run", f"{score.run}  ({one_line(score.agent)} on {one_line(score.suite)}, version {version})"
    yield "score", _headline(score)
    if score.measured:
        counted = score.score_kind.startswith("passes")
        meaning = "with every task without a grade a fail, and a pass" if counted else "of the estimate"
        yield "interval", f"{_span(score.interval)} {meaning}"
        yield "ceiling", score.ceiling
        for cause, count in sorted(score.causes.items(), key=lambda item: -item[1]):
            yield "unavailable", f"{count} {CAUSE_TEXT[cause]}"
        yield "states", _states(score)
        raw = "none" if score.raw_score is None else percent(score.raw_score)
        yield "raw", f"{raw} over all {len(score.states)} tasks, {_span(score.raw_interval)}: not to be reported"
    for note in score.notes:
        yield "note", one_line(note)


def _headline(score: Score) -> str:
    if not score.measured:
        raw = _span(score.raw_interval)
        return f"none: ceiling not measured; between {raw} of all {score.tasks} tasks passed"
    if score.score is None:
        return f"none: nothing was graded; {score.ceiling}"
    exact = f" = {score.passed:g}/{score.passed + score.failed:g}" if score.score_kind.startswith("passes") else ""
    kind = "" if exact else f" ({score.score_kind})"
    return f"{percent(score.score)}{exact} of the achievable{kind}"


def _states(score: Score) -> str:
    counts = {state: sum(one.state is state for one in score.states) for state in TaskState}
    told = ", ".join(f"{count} {state.value}" for state, count in counts.items() if count)
    if score.passes_elsewhere:
        told += f"; {score.passes_elsewhere:g} passes on unavailable tasks count nowhere"
    return told


def _span(interval: tuple[float, float] | None) -> str:
    return "nothing" if interval is None else f"[{100 * interval[0]:.1f}, {100 * interval[1]:.1f}] %"
