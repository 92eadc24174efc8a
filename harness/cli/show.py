"""assay show."""

from __future__ import annotations

from typing import Annotated

import typer

from harness.api.stores import summary
from harness.cli.options import DEFAULT_STORE, AsJson, RunId, Store, print_json
from harness.report.text import summary_text, trials_text

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(epilog="Example: assay show latest --trials")
def show(
    run: RunId = "latest",
    trials: Annotated[bool, typer.Option("--trials", help="List every trial too.")] = False,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Show a run: score, interval, outcomes and stops."""
    found = summary(run, store)
    if as_json:
        print_json(found)
        return
    print(summary_text(found, store))
    if trials:
        print(trials_text(found))
