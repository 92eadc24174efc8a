"""assay bounds."""

from __future__ import annotations

from typing import Annotated

import typer

from harness.api.comparisons import bounds
from harness.cli.options import DEFAULT_STORE, AsJson, RunId, Store, print_json
from harness.report.comparisons import bounds_text

app = typer.Typer(rich_markup_mode=None, add_completion=False)

EXAMPLES = """\b
Examples:
  assay bounds latest
  assay bounds 20251130-101500-ab12cd 20251201-090000-ef34ab --b-rate 0.5
"""


@app.command("bounds", epilog=EXAMPLES)
def command(
    run: RunId = "latest",
    other: Annotated[str | None, typer.Argument(help="Another run: bound the difference run − other.")] = None,
    b_rate: Annotated[
        float, typer.Option(help="Pass rate assumed among the other's unresolved, for the tipping point.")
    ] = 0.5,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Bound a run's pass rate, or the difference of two, by what is not graded."""
    report = bounds(run, other, store, b_rate)
    if as_json:
        print_json(report)
    else:
        print(bounds_text(report))
