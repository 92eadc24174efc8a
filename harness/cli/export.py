"""assay export."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from harness.api.stores import open_store
from harness.cli.options import DEFAULT_STORE, RunId, Store, say
from harness.store.flat import csv_text, flat_rows, write_csv

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(epilog="Example: assay export latest --out runs.csv")
def export(
    run: RunId = "latest",
    out: Annotated[Path | None, typer.Option(help="The file to write; stdout by default.")] = None,
    store: Store = DEFAULT_STORE,
) -> None:
    """Write a run as a flat CSV, one row per attempt."""
    with open_store(store) as opened:
        rows = flat_rows(opened, opened.run(run).run)
    if out is None:
        sys.stdout.write(csv_text(rows))
    else:
        write_csv(rows, out)
        say(f"{out}: {len(rows)} row(s)")
