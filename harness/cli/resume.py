"""assay resume."""

from __future__ import annotations

from typing import Annotated

import typer

from harness.cli.execution import take_up
from harness.cli.options import DEFAULT_STORE, AsJson, RunId, Store

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(epilog="Example: assay resume latest")
def resume(
    run: RunId,
    fail_under: Annotated[float | None, typer.Option(help="Exit 4 when the score is below this (0 to 1).")] = None,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Carry out what a run still lacks: planned minus passed and failed."""
    take_up(run, store, as_json=as_json, fail_under=fail_under)
