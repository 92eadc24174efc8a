"""assay export."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from harness.api.export_lines import export_lines
from harness.api.exports import ExportFormat, corrections_file, export_run
from harness.api.regrades_writing import corrections
from harness.api.stores import open_store
from harness.cli.options import DEFAULT_STORE, RunId, Store, say
from harness.records.errors import ConfigError
from harness.store.flat import csv_text, flat_rows

app = typer.Typer(rich_markup_mode=None, add_completion=False)

_UNITS = {
    ExportFormat.FLAT: "row(s)",
    ExportFormat.PARQUET: "row(s)",
    ExportFormat.ATIF: "trajectories",
    ExportFormat.JSONL: "line(s)",
}

EPILOG = """\b
Examples:
  assay export latest --out runs.csv
  assay export latest --to jsonl --out run.jsonl
  assay export latest --to atif --out trajectories/
"""


@app.command(epilog=EPILOG)
def export(
    run: RunId = "latest",
    to: Annotated[
        ExportFormat, typer.Option(help="flat: CSV; parquet: the same table; atif: trajectories; jsonl: everything.")
    ] = ExportFormat.FLAT,
    out: Annotated[Path | None, typer.Option(help="The file to write (atif: the folder); stdout by default.")] = None,
    store: Store = DEFAULT_STORE,
) -> None:
    """Write a run as a flat CSV, one row per attempt, or as Parquet, ATIF trajectories or JSON lines."""
    with open_store(store) as opened:
        id_ = opened.run(run).run
        corrected = len(corrections(opened, id_))
        if out is not None:
            count = export_run(opened, id_, to, out)
            say(f"{out}: {count} {_UNITS[to]}")
            if corrected:
                say(f"{corrections_file(to, out)}: {corrected} correction(s) of what is in it, by later grading")
        elif to is ExportFormat.FLAT:
            sys.stdout.write(csv_text(flat_rows(opened, id_)))
        elif to is ExportFormat.JSONL:
            for line in export_lines(opened, id_):
                sys.stdout.buffer.write(line)
        else:
            raise ConfigError(f"--to {to.value} cannot go to stdout", remedy="name a file or folder with --out")
        if corrected and out is None:
            say(f"later grading corrects {corrected} of these outcomes: --out FILE writes how, beside the file")
