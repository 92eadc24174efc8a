"""assay serve."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Annotated

import typer

from harness.api.schedule_figures import upcoming
from harness.api.schedule_request import read_schedule
from harness.api.schedule_serve import Serving
from harness.cli.exits import Exit
from harness.cli.options import say

app = typer.Typer(rich_markup_mode=None, add_completion=False)

EPILOG = (
    "The first SIGTERM or Ctrl-C drains: nothing is begun any more, and what is under way comes to its end (exit 0)."
    " The second seals and stores what is under way, to be taken up by the next serve (exit 130); the third cuts it"
    " short. Example: assay serve configs/schedule.toml"
)


@app.command(epilog=EPILOG)
def serve(
    config: Annotated[Path, typer.Argument(help="A schedule; docs/scheduling.md has its keys.")],
    store: Annotated[
        str | None,
        typer.Option(envvar="ASSAY_STORE", help="Folder of the evidence store. [default: the schedule's, or .assay]"),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Of /healthz and /metrics; 0: any free one. [default: the schedule's]"),
    ] = None,
) -> None:
    """Carry out audits and runs when they are due, until it is told to stop."""
    schedule = read_schedule(config, store)
    if port is not None:
        schedule = schedule.model_copy(update={"server": schedule.server.model_copy(update={"port": port})})
    serving = Serving(schedule)

    def ready(address: str | None) -> None:
        due = upcoming(schedule, serving.clock(), 1)[0]
        say(f"{len(schedule.jobs)} job(s) on {schedule.store}; next: {due.job} at {due.local}")
        if address is not None:
            say(f"{address}/healthz and {address}/metrics")

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: serving.stop())
    signal.signal(signal.SIGCHLD, lambda *_: serving.wake())
    left = serving.run(ready)
    if left:
        say("what is left of a firing is taken up by the next `assay serve`")
    raise typer.Exit(Exit.INTERRUPTED if left else Exit.OK)
