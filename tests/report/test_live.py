"""The live display as plain lines: what has no grade, and what crashed, is said at once."""

from __future__ import annotations

import io

from rich.console import Console

from harness.records.grade import TrialResult
from harness.records.vocabulary import Outcome, Reason, StopReason
from harness.report.live import PlainLines, live_display, problem_of
from harness.runner.progress import Tally


def result(outcome: Outcome, stop: StopReason, said: str = "", reason: Reason | None = None) -> TrialResult:
    return TrialResult(trial="t", outcome=outcome, stop=stop, stop_detail=said, reason=reason, cost_usd=0.0)


CRASHED = result(Outcome.FAILED, StopReason.SOLVER_ERROR, "KeyError: '\x1b[31mx'")


def test_a_solver_that_crashed_and_was_graded_has_a_line_of_its_own() -> None:
    stream = io.StringIO()
    lines = PlainLines(Console(file=stream, highlight=False, width=200))
    tally = Tally("r1", planned=9)
    for number, ended in enumerate((result(Outcome.PASSED, StopReason.FINISHED), CRASHED, CRASHED)):
        tally.add(ended, settled=True)
        lines(tally.snapshot((f"task-{number}", ended)))
    said = stream.getvalue().splitlines()
    assert len(said) == 3
    assert "solver_error" not in said[0]
    assert said[1].endswith("task-1: failed, stop solver_error: KeyError: '\\x1b[31mx'")
    assert "task-2" in said[2]


def test_what_has_no_grade_says_why_and_a_plain_fail_says_nothing() -> None:
    assert problem_of("t", result(Outcome.FAILED, StopReason.TIME, "60 s used")) == ""
    lost = result(Outcome.UNGRADED, StopReason.INFRASTRUCTURE, "gone", Reason.CONTAINER_LOST)
    assert problem_of("t", lost) == "t: ungraded (engine.container_lost), stop infrastructure: gone"


def test_on_a_terminal_the_last_problem_stays_in_sight() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    tally = Tally("r1", planned=2)
    with live_display(stream) as observe:
        tally.add(CRASHED, settled=True)
        observe(tally.snapshot(("task-0", CRASHED)))
        passed = result(Outcome.PASSED, StopReason.FINISHED)
        tally.add(passed, settled=True)
        observe(tally.snapshot(("task-1", passed)))
    last = stream.getvalue()[-600:]
    assert "task-0: failed, stop solver_error: KeyError" in last
    assert "\x1b[31mx" not in stream.getvalue()
