"""A release decision: the record, and the record as text."""

from __future__ import annotations

from typing import Literal

from harness.records.base import Record
from harness.report.words import one_line


class DecisionReport(Record):
    """Candidate against baseline; differences, margin and error rates are shares.

    `verdict` is better, no worse, worse, or undecided; `sentence` says all of it. `lower` and `upper` bound the
    difference at every look. `paired` of the `tasks` compared both have run, `executed` the candidate. `baseline` is a
    run, or a rate. `truth` is what the difference is of: full runs of this suite, or the agents behind them.
    """

    candidate: str
    candidate_agent: str
    baseline: str
    baseline_agent: str | None
    verdict: Literal["better", "no worse", "worse", "undecided"]
    sentence: str
    truth: Literal["suite", "agent"]
    difference: float
    standard_error: float
    lower: float
    upper: float
    margin: float
    alpha: float
    beta: float
    tasks: int
    executed: int
    remaining: int
    paired: int
    within_reach: float
    notes: tuple[str, ...]


def decision_text(report: DecisionReport) -> str:
    """The verdict first, then what it rests on."""
    against = report.baseline
    if report.baseline_agent is not None:
        against += f"  ({one_line(report.baseline_agent)})"
    rows = [
        ("verdict", report.verdict.upper()),
        ("because", report.sentence),
        ("candidate", f"{report.candidate}  ({one_line(report.candidate_agent)})"),
        ("baseline", against),
    ]
    if report.verdict == "undecided":
        left = f"{report.remaining} tasks are left to run"
        reach = f"; all of them decide with a chance of at most {100 * report.within_reach:.0f} %"
        rows.append(("to decide", left + reach if report.remaining else "nothing is left to run: a wider margin would"))
    rows += [("note", one_line(note)) for note in report.notes]
    return "\n".join(f"{name:10} {text}" for name, text in rows)
