"""assay bill."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.api.bills import BillRequest, bill_path, bill_run
from harness.cli.exits import Exit
from harness.cli.options import DEFAULT_STORE, AsJson, Store, print_json
from harness.report.bills import bills_text

app = typer.Typer(rich_markup_mode=None, add_completion=False)

EXAMPLES = """\b
Examples:
  assay bill latest
  assay bill traces/ --prices prices.toml
  assay bill upload.json --json
"""


@app.command("bill", epilog=EXAMPLES)
def command(
    what: Annotated[
        str, typer.Argument(metavar="RUN|PATH", help="A run of the store, a file of spans, or a folder of them.")
    ] = "latest",
    prices: Annotated[
        Path | None, typer.Option(help="Price everything by this table now; else costs are those recorded.")
    ] = None,
    own: Annotated[
        bool, typer.Option("--own", help="Each span's usage is its own, never a total of what is below it.")
    ] = False,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Bill each response once, beside the flat sum of all spans and what an archive states.

    A path that exists is read as spans; anything else is a run. Exits 3 when part of a path could not be read.
    """
    request = BillRequest(prices=None if prices is None else str(prices), own=own)
    report = bill_path(what, request) if Path(what).exists() else bill_run(what, store, request)
    if as_json:
        print_json(report)
    else:
        print(bills_text(report))
    if report.faults:
        raise typer.Exit(Exit.ALERT)
