"""assay compare."""

from __future__ import annotations

from typing import Annotated

import typer

from harness.api.boards import compare_all
from harness.api.comparisons import CompareRequest, compare
from harness.cli.options import DEFAULT_STORE, AsJson, Store, print_json
from harness.records.errors import ConfigError
from harness.report.comparisons import board_text, comparison_text

app = typer.Typer(rich_markup_mode=None, add_completion=False)

EXAMPLES = """\b
Examples:
  assay compare 20251130-101500-ab12cd 20251201-090000-ef34ab
  assay compare run1,run2,run3 run4,run5,run6 --weights model
  assay compare --all --json
"""


@app.command("compare", epilog=EXAMPLES)
def command(
    sides: Annotated[
        list[str] | None,
        typer.Argument(help="Two sides: a run each, or several joined by commas. More than two: every pair."),
    ] = None,
    weights: Annotated[
        str, typer.Option(help="task, model, episode: what counts alike; or a TOML file of own weights.")
    ] = "task",
    every: Annotated[bool, typer.Option("--all", help="Every pair of all runs in the store.")] = False,
    alpha: Annotated[float, typer.Option(help="Rate of false claims; intervals are at 1 − alpha.")] = 0.05,
    seed: Annotated[int, typer.Option(help="Of the resampling of tasks.")] = 0,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Compare two runs on common tasks, or every pair of several: paired, weighted, bounded."""
    named = sides or []
    if not 0.0 < alpha < 1.0:
        raise ConfigError(f"--alpha {alpha} is not between 0 and 1")
    if every == bool(named) or len(named) == 1:
        raise ConfigError("compare needs two sides", remedy="name two or more runs, or give --all and none")
    if len(named) == 2:
        pair = compare(named[0], named[1], store, CompareRequest(weights=weights, alpha=alpha, seed=seed))
        if as_json:
            print_json(pair)
        else:
            print(comparison_text(pair))
        return
    report = compare_all(named, store, alpha)
    if as_json:
        print_json(report)
    else:
        print(board_text(report))
