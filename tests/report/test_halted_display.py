"""A run that halted says why once, not once for every trial that met it."""

from __future__ import annotations

import io

from rich.console import Console

from harness.records.grade import TrialResult
from harness.records.vocabulary import Outcome, Reason, StopReason
from harness.report.live import PlainLines
from harness.runner.halting import Halting
from harness.runner.progress import Tally

DETAIL = "http://x/v1/chat/completions: the service answered 404 Not Found: no such model — check --model"


def test_why_a_run_halted_is_told_once() -> None:
    stream = io.StringIO()
    lines = PlainLines(Console(file=stream, highlight=False, width=200))
    tally = Tally("r1", planned=9)
    message = ""
    for number in range(4):
        lost = TrialResult(
            trial=f"t{number}",
            outcome=Outcome.UNGRADED,
            reason=Reason.PROVIDER,
            detail=DETAIL,
            stop=StopReason.INFRASTRUCTURE,
            stop_detail=DETAIL,
            provider_status=404,
        )
        _, why = Halting().after(lost, settled=True)
        message = message or why or ""
        tally.add(lost, settled=True)
        lines(tally.snapshot((f"task-{number}", lost), message))
    said = stream.getvalue()
    assert len(said.splitlines()) == 4
    assert said.count("the service answered 404") == 1
    assert said.count("provider.unavailable") == 4
