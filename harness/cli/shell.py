"""The shell: which commands there are, and what an error becomes.

Commands are listed here with the first line of their help, so that `assay --help` imports none of them; a test
holds the two together.
"""

from __future__ import annotations

import importlib
import keyword
import os
import sys
import threading
import traceback
from typing import Any

import typer
from typer.core import TyperGroup

from harness.cli.exits import Exit
from harness.cli.streams import leave

COMMANDS = {
    "doctor": "Say what works on this machine, what does not, and what to do about it.",
    "setup": "Start or find a container engine and build or pull the base image.",
    "suite": "List, show, lint and lock suites of tasks.",
    "run": "Run a solver on a suite, fixed or adaptively.",
    "resume": "Carry out what a run still lacks: planned minus passed and failed.",
    "runs": "List the runs of a store, newest first, with state and score.",
    "show": "Show a run: score, interval, outcomes and stops.",
    "trial": "Show a trial: its result and its events.",
    "export": "Write a run as a flat CSV, one row per attempt, or as Parquet, ATIF trajectories or JSON lines.",
    "import": "Bring another harness's results into the store, and say what is missing.",
    "lint-archive": "Say where an archive contradicts itself: labels, header, duplicates, totals, rewards, usage.",
    "audit": "Measure what is achievable on a suite, and what is not, why and since when.",
    "serve": "Carry out audits and runs when they are due, until it is told to stop.",
    "schedule": "Show what is due and what became of it, or carry out a job now.",
    "score": "Score a run on what was achievable: score, achievable count, unavailable rate.",
    "verify": "Re-derive every hash chain of a run and name the first broken event.",
    "calibrate": "Fit a bank of items to past runs, with a report of how well it fits.",
    "bank": "Show what a bank of calibrated items holds, and whether it still does.",
    "simulate": "Replay past runs under selection policies: what they would have cost and given.",
    "estimate": "Show a run's estimated pass rate, what it rests on, and what one more task would bring.",
    "gate": "Decide from two runs, complete or not, whether the first is better, no worse or worse.",
    "bill": "Bill each response once, beside the flat sum of all spans and what an archive states.",
    "bounds": "Bound a run's pass rate, or the difference of two, by what is not graded.",
    "compare": "Compare two runs on common tasks, or every pair of several: paired, weighted, bounded.",
    "replay": "Carry recorded episodes out again in an environment, compare every answer, and grade what is true to the"
    " record.",
    "migrate": "Convert an archive, and prove with --check that the conversion moves no score under the old rule.",
    "cross": "Grade the same recorded episodes under several rules, task data and modes, and say what moved and why.",
    "regrade": "Grade recorded trials again under another rule, without the agent; the old scores stay.",
    "gc": "Remove containers and networks that dead runs left behind.",
    "sim-model": "Serve simulated agents behind an OpenAI-compatible API on loopback.",
}


def module_of(command: str) -> str:
    """The module of a command; a command named like a keyword of Python has an underscore after it there."""
    name = command.replace("-", "_")
    return f"harness.cli.{name}_" if keyword.iskeyword(name) else f"harness.cli.{name}"


class LazyGroup(TyperGroup):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        _log_to_stderr()
        module = importlib.import_module(module_of(cmd_name))
        command = typer.main.get_command(module.app)
        command.name = cmd_name
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _log_to_stderr() -> None:
    """What the parts log (a container that could not be removed) is for people: stdout holds results only."""
    import structlog

    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper("%H:%M:%S", utc=False),
            structlog.dev.ConsoleRenderer(colors=False),
        ],
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
        cache_logger_on_first_use=False,
    )


app = typer.Typer(
    cls=LazyGroup,
    name="assay",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Measure an agent, and the instrument it is measured with.",
    epilog=(
        "Exit codes: 0 every planned trial has a grade; 2 usage or configuration; 3 some planned trial has no grade,"
        " or an alert fired (broken evidence, leftovers that stay);"
        " 4 a gate failed; 5 the engine or a service cannot be reached; 130 interrupted."
        " Example: assay run --suite terminal --solver reference --task 'csv-join/*'"
    ),
)


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print(f"assay {version('assay')}")
        raise typer.Exit


@app.callback()
def _options(
    debug: bool = typer.Option(False, "--debug", help="Show a traceback with an error."),
    version: bool = typer.Option(
        False, "--version", help="Print the version and exit.", is_eager=True, callback=_print_version
    ),
) -> None:
    if debug:
        os.environ["ASSAY_DEBUG"] = "1"


def run_process() -> None:
    """The command as a process of its own: ends with it, whatever threads a solver left behind."""
    before = frozenset(threading.enumerate())
    try:
        run_command_line()
    except SystemExit as ended:
        if isinstance(ended.code, int):
            leave(ended.code, before)
        raise


def run_command_line() -> None:
    """Parse, run, and turn an error into one message and a documented exit code. Raises SystemExit, also in a test."""
    try:
        app()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(Exit.INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader has gone; nothing to tell it
        sys.exit(0)
    except Exception as error:  # noqa: BLE001  # the last resort of a command line
        sys.exit(_told(error))


def _told(error: Exception) -> int:
    from harness.adaptive.errors import AdaptiveError
    from harness.records.errors import AssayError

    if os.environ.get("ASSAY_DEBUG"):
        traceback.print_exception(error)
    if isinstance(error, AssayError):
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    if isinstance(error, AdaptiveError):
        print(f"error: {error}", file=sys.stderr)
        return Exit.USAGE
    print(
        f"error: {type(error).__name__}: {error}\nThis is a fault of Assay's own; --debug shows where.",
        file=sys.stderr,
    )
    return Exit.FAULT
