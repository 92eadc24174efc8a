"""What `run` and `resume` share: the live display, signals, the result, the exit code."""

from __future__ import annotations

import signal
import sys
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
import typer

from harness.api.request import RunRequest
from harness.api.runs import Watch, execute, resume_async
from harness.cli.exits import Exit
from harness.cli.options import print_json, say
from harness.cli.streams import results_only
from harness.records.errors import ConfigError
from harness.records.vocabulary import Reason
from harness.report.live import live_display
from harness.report.summary import Summary
from harness.report.text import resume_command, summary_text
from harness.runner.run import RunControl

T = TypeVar("T")


def carry_out(request: RunRequest, *, as_json: bool, fail_under: float | None) -> None:
    """Run a request with a display; print the summary; exit as DESIGN says."""
    check_gate(fail_under)
    _finish(watched(lambda watch: execute(request, watch)), request.store, as_json, fail_under)


def take_up(run: str, store: str, *, as_json: bool, fail_under: float | None) -> None:
    """Resume a run likewise."""
    check_gate(fail_under)
    _finish(watched(lambda watch: resume_async(run, store, watch)), store, as_json, fail_under)


def check_gate(fail_under: float | None) -> None:
    """Before anything is spent: a gate that no score can be compared with is refused. Raises ConfigError."""
    if fail_under is not None and not 0 <= fail_under <= 1:
        raise ConfigError(f"--fail-under {fail_under} is not between 0 and 1", remedy="0.85 means 85 %")


def watched(work: Callable[[Watch], Awaitable[T]]) -> tuple[T, bool]:
    """Do what runs trials, with a display and a hand on the signals; returns whether it was interrupted too."""
    control = RunControl()

    async def main() -> T:
        with live_display(sys.stderr) as observer:
            async with anyio.create_task_group() as group:
                group.start_soon(_listen, control)
                result = await work(Watch(observer, control, lambda note: say(f"warning: {note}")))
                group.cancel_scope.cancel()
        return result

    with results_only():
        return _unwrapped(main), control.interrupted


def _unwrapped(main: Callable[[], Awaitable[T]]) -> T:
    """anyio groups exceptions; a command line reports one."""
    try:
        return anyio.run(main)
    except BaseExceptionGroup as group:
        inner: BaseException = group
        while isinstance(inner, BaseExceptionGroup):
            inner = inner.exceptions[0]
        raise inner from group


async def _listen(control: RunControl) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            if control.interrupted:
                say("interrupted again: cancelling what is left; what is stored stays")
            else:
                say("interrupted: sealing and storing what is under way; once more to cut it short")
            control.interrupt()


def _finish(ended: tuple[Summary, bool], store: str, as_json: bool, fail_under: float | None) -> None:
    summary, interrupted = ended
    if as_json:
        print_json(summary)
    else:
        print(summary_text(summary, store))
    if not summary.complete and as_json:  # the text has it already
        say(f"to carry out the rest: {resume_command(summary, store)}")
    raise typer.Exit(exit_code(summary, interrupted=interrupted, fail_under=fail_under))


def exit_code(summary: Summary, *, interrupted: bool = False, fail_under: float | None = None) -> Exit:
    """The documented exit code of an ended run (DESIGN, "Exit codes")."""
    if interrupted:
        return Exit.INTERRUPTED
    never_answered = bool(summary.trials) and all(line.reason is Reason.PROVIDER for line in summary.trials)
    causes = {line.reason for line in summary.trials} - {None, Reason.CANCELLED}
    refused = causes == {Reason.PROVIDER_REFUSED}  # the service was reached
    if (summary.halted is not None and not refused) or never_answered:
        return Exit.UNREACHABLE
    if not summary.complete:
        return Exit.NO_GRADE
    if fail_under is not None and (summary.score is None or summary.score < fail_under):
        return Exit.GATE
    return Exit.OK
