"""Summaries and trials as plain text."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from harness.records.score import UNMEASURED
from harness.records.vocabulary import Outcome, Reason, StopReason
from harness.report.summary import RunState, Summary
from harness.report.words import one_line, printable

LONGEST_LINE = 240
MOST_SURVIVORS = 20
STORE_UNASKED = ".assay"  # the store that commands use when none is named


def summary_text(summary: Summary, store: str) -> str:
    """The score line and everything behind it, for a terminal."""
    counts = ", ".join(f"{summary.outcomes[outcome]} {outcome.value}" for outcome in Outcome)
    stops = ", ".join(f"{count} {stop.value}" for stop, count in sorted(summary.stops.items()))
    of_planned = f"{summary.graded} of {summary.planned} planned have a grade ({100 * summary.coverage:.0f} %)"
    where = store_option(store)
    rows = [
        ("run", f"{summary.run}  ({one_line(summary.agent)} on {tasks_of(summary)}, {version_of(summary)})"),
        *_headline(summary),
        ("outcomes", f"{counts}; {of_planned}"),
        ("stops", stops or "none"),
        ("spent", spend_line(summary)),
        ("ceiling", summary.ceiling),
        ("evidence", f"{store}; assay show {summary.run} --trials{where}, assay verify {summary.run}{where}"),
    ]
    if summary.ended is not None:
        rows.append(("ended", one_line(summary.ended)))
    if summary.halted is not None:
        rows.append(("halted", one_line(summary.halted)))
    rows += [("note", one_line(note)) for note in summary.warnings]
    if summary.state is not RunState.COMPLETE:
        rows.append(("state", f"{summary.state.value}: {whats_next(summary, store)}"))
    return "\n".join(f"{name:9} {text}" for name, text in rows)


def _headline(summary: Summary) -> Iterator[tuple[str, str]]:
    if summary.survivors is None:
        # A rate of passes is a score once it is known what could be passed.
        yield ("rate" if summary.ceiling == UNMEASURED else "score"), score_line(summary)
        if summary.truth is not None:
            yield "truth", truth_line(summary)
        return
    yield "mutants", f"{len(summary.survivors)} of {summary.graded} graded mutants survived (the grader passed them)"
    for survivor in summary.survivors[:MOST_SURVIVORS]:
        yield "survived", one_line(f"{survivor.task}: {survivor.mutant or 'mutant not named'} ({survivor.trial})")
    if len(summary.survivors) > MOST_SURVIVORS:
        yield "survived", f"and {len(summary.survivors) - MOST_SURVIVORS} more: --json lists all"


def tasks_of(summary: Summary) -> str:
    """What a run was about: the suite, or how many of its tasks."""
    suite = one_line(summary.suite)
    if not _narrowed(summary):
        return suite
    return f"{summary.selected} selected task{'s' * (summary.selected != 1)} of suite {suite} ({summary.suite_tasks})"


def version_of(summary: Summary) -> str:
    return f"version {summary.suite_version[7:19]}"


def _narrowed(summary: Summary) -> bool:
    return summary.suite_tasks is not None and summary.selected < summary.suite_tasks


def whats_next(summary: Summary, store: str) -> str:
    """The command that goes on with a run that is not complete."""
    if summary.state is RunState.RUNNING:
        return f"{summary.done} of {summary.planned} planned trials are over"
    lacking = summary.planned - summary.graded
    if summary.solver == "imported":
        return f"{lacking} planned without a grade in the archive it was imported from"
    return f"{lacking} planned without a grade; to carry out the rest: {resume_command(summary, store)}"


def resume_command(summary: Summary, store: str) -> str:
    return f"assay resume {summary.run}{store_option(store)}"


def store_option(store: str) -> str:
    """How a printed command names the store; nothing for the one that commands use unasked."""
    return "" if store == STORE_UNASKED else f" --store {shlex.quote(store)}"


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def score_line(summary: Summary) -> str:
    """The score with its kind and interval, never a bare rate."""
    if summary.score is None or summary.interval is None:
        return "none: nothing was graded"
    lower, upper = (100 * bound for bound in summary.interval)
    if summary.level is None:
        passed = summary.outcomes[Outcome.PASSED]
        return f"{percent(summary.score)} = {passed}/{summary.graded} graded; all planned: [{lower:.1f}, {upper:.1f}] %"
    of = f"the {tasks_of(summary)}" if _narrowed(summary) else "the full suite"
    return (
        f"{percent(summary.score)} of {of}, {100 * summary.level:.0f} % interval"
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
    elif summary.cost_usd is None and summary.cost_at_least_usd == 0:
        money = "cost unknown"
    elif summary.cost_usd is None:
        money = f"at least ${summary.cost_at_least_usd:.4f} (some cost is unknown)"
    else:
        money = f"${summary.cost_usd:.4f}"
    at_least = "" if summary.tokens_are_known else "at least "
    tokens = "" if not summary.tokens else f", {at_least}{summary.tokens:,} tokens"
    clocks = f"{summary.elapsed_s:.0f} s elapsed, {summary.seconds:.0f} s on the solver's clock"
    if summary.solver == "imported" and not summary.seconds:
        clocks = "times are not recorded"
    return f"{money}{tokens}; {clocks}; {summary.attempts} attempt(s)"


def trials_text(summary: Summary) -> str:
    """One line per slot."""
    lines = []
    for line in summary.trials:
        ending = ending_text(line.outcome, line.reason, line.stop, (line.stop_detail, line.detail))
        lines.append(f"{line.trial}  {printable(line.task):32} {ending}"[:LONGEST_LINE])
    return "\n".join(lines)


def ending_text(
    outcome: Outcome | None, reason: Reason | None, stop: StopReason | None, details: tuple[str, str]
) -> str:
    """How a trial ended, on one line. `details` are those of the stop and of the grade, said once when they agree."""
    of_stop, of_grade = (one_line(detail) for detail in details)
    if outcome is None:
        return "unfinished"
    why = f" ({reason.value})" if reason else ""
    stopped = f", stop {stop.value}" if stop else ""
    said = f": {of_stop}" if of_stop else ""
    graded = f"  {of_grade}" if of_grade and of_grade != of_stop else ""
    return f"{outcome.value}{why}{stopped}{said}{graded}"
