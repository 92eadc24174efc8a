"""assay runs."""

from __future__ import annotations

import typer

from harness.api.stores import list_runs
from harness.cli.options import DEFAULT_STORE, AsJson, Store, print_json
from harness.report.overview import overview_text

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(epilog="Example: assay runs --json")
def runs(store: Store = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """List the runs of a store, newest first, with state and score.

    States: running, complete (every planned trial has a grade), incomplete (some has none), halted (a fault that every
    further trial would have met), interrupted. `assay resume RUN` carries out what the last three lack.
    """
    lines = list_runs(store)
    if as_json:
        print_json({"runs": [line.plain() for line in lines]})
    else:
        print(overview_text(lines))
