"""assay estimate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.api.estimates import appraise
from harness.cli.options import DEFAULT_STORE, AsJson, RunId, Store, print_json
from harness.report.estimates import estimate_text

app = typer.Typer(rich_markup_mode=None, add_completion=False)

EXAMPLES = """\b
Examples:
  assay estimate latest
  assay estimate 20251130-101500-ab12cd --bank newer.npz --json
"""


@app.command(epilog=EXAMPLES)
def estimate(
    run: RunId = "latest",
    bank: Annotated[
        Path | None, typer.Option(help="Read the run with this bank instead of the one it ran with, or with none.")
    ] = None,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Show a run's estimated pass rate, what it rests on, and what one more task would bring."""
    report = appraise(run, store, None if bank is None else str(bank))
    if as_json:
        print_json(report)
    else:
        print(estimate_text(report))
