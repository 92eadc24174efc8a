"""Summaries, trials and events as plain text."""

from __future__ import annotations

import json

from harness.records.event import Event
from harness.records.vocabulary import Outcome
from harness.report.summary import Summary

LONGEST_LINE = 160


def summary_text(summary: Summary, store: str) -> str:
    """The score line and everything behind it, for a terminal."""
    counts = ", ".join(f"{summary.outcomes[outcome]} {outcome.value}" for outcome in Outcome)
    stops = ", ".join(f"{count} {stop.value}" for stop, count in sorted(summary.stops.items()))
    graded = summary.outcomes[Outcome.PASSED] + summary.outcomes[Outcome.FAILED]
    rows = [
        ("run", f"{summary.run}  ({summary.agent} on {summary.suite}, version {summary.suite_version[7:19]})"),
        ("score", score_line(summary)),
        ("outcomes", f"{counts}; {graded} of {summary.planned} planned have a grade ({100 * summary.coverage:.0f} %)"),
        ("stops", stops or "none"),
        ("spent", spend_line(summary)),
        ("ceiling", summary.ceiling),
        ("evidence", f"{store}; assay show {summary.run} --trials, assay verify {summary.run}"),
    ]
    if summary.truth is not None:
        rows.insert(2, ("truth", truth_line(summary)))
    if summary.halted is not None:
        rows.append(("halted", summary.halted))
    rows += [("note", warning) for warning in summary.warnings]
    return "\n".join(f"{name:9} {text}" for name, text in rows)


def score_line(summary: Summary) -> str:
    """The score with its kind and interval, never a bare rate."""
    if summary.score is None or summary.interval is None:
        return "none: nothing was graded"
    lower, upper = (100 * bound for bound in summary.interval)
    if summary.level is None:
        graded = summary.outcomes[Outcome.PASSED] + summary.outcomes[Outcome.FAILED]
        passed = summary.outcomes[Outcome.PASSED]
        return f"{100 * summary.score:.1f} % = {passed}/{graded} graded; all planned: [{lower:.1f}, {upper:.1f}] %"
    return (
        f"{100 * summary.score:.1f} % of the full suite, {100 * summary.level:.0f} % interval"
        f" [{lower:.1f}, {upper:.1f}]; {summary.score_kind}"
    )


def truth_line(summary: Summary) -> str:
    """How far off an estimate was, where the agent is simulated and the truth is known."""
    truth = 100 * (summary.truth or 0.0)
    if summary.score is None or summary.interval is None:
        return f"{truth:.1f} % (simulated agent)"
    inside = summary.interval[0] <= (summary.truth or 0.0) <= summary.interval[1]
    off = 100 * summary.score - truth
    return f"{truth:.1f} % (simulated agent): off by {off:+.1f} pp, {'inside' if inside else 'OUTSIDE'} the interval"


def spend_line(summary: Summary) -> str:
    """Cost, tokens and solver time; an unknown cost is a lower bound, never 0."""
    if summary.tokens == 0 and summary.cost_usd == 0:
        money = "no model calls"
    elif summary.cost_usd is None:
        money = f"at least ${summary.cost_at_least_usd:.4f} (some cost is unknown)"
    else:
        money = f"${summary.cost_usd:.4f}"
    at_least = "" if summary.tokens_are_known else "at least "
    tokens = "" if not summary.tokens else f", {at_least}{summary.tokens:,} tokens"
    clocks = f"{summary.elapsed_s:.0f} s elapsed, {summary.seconds:.0f} s on the solver's clock"
    return f"{money}{tokens}; {clocks}; {summary.attempts} attempt(s)"


def trials_text(summary: Summary) -> str:
    """One line per slot."""
    lines = []
    for line in summary.trials:
        outcome = line.outcome.value if line.outcome else "unfinished"
        reason = f" ({line.reason.value})" if line.reason else ""
        stop = line.stop.value if line.stop else "-"
        lines.append(f"{line.trial}  {line.task:32} {outcome}{reason}, {stop}  {line.detail}".rstrip()[:LONGEST_LINE])
    return "\n".join(lines)


def event_text(event: Event) -> str:
    """One event on one line: sequence, time, phase, actor, kind, and the start of its payload."""
    payload = json.dumps(event.payload, ensure_ascii=True)
    head = f"{event.seq:4} {event.wall[11:23]} {event.phase or '-':11} {event.actor:11} {event.kind:24}"
    room = LONGEST_LINE - len(head)
    return head + " " + (payload if len(payload) <= room else payload[: room - 1] + "…")
