"""assay bank show | compare | drift."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from harness.adaptive.bank_file import load_bank
from harness.adaptive.drift import compare_banks
from harness.api.upkeep import drift as find_drift
from harness.cli.exits import Exit
from harness.cli.options import AsJson, print_json
from harness.records.errors import ConfigError
from harness.report.banks import bank_plain, bank_text, comparison_text, items_text
from harness.report.fits import backtest_text, curve_text
from harness.report.upkeep import drift_text

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    help="Show what a bank of calibrated items holds, and whether it still does.",
)
BankFile = Annotated[Path, typer.Argument(help="A bank (npz) that `assay calibrate` wrote.")]


@app.command(epilog="Example: assay bank show bank.npz --items")
def show(
    bank: BankFile,
    items: Annotated[bool, typer.Option("--items", help="List every item, the most informative first.")] = False,
    curve: Annotated[
        bool, typer.Option("--curve", help="Show predicted and observed rates of held-out trials.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show a bank: where it comes from, how well it fits, what its items are worth."""
    found = load_bank(bank)
    if as_json:
        print_json(bank_plain(found))
        return
    print(bank_text(found, str(bank)))
    if found.backtest is not None:
        print(f"\n{backtest_text(found.backtest)}")
    if curve and found.report is not None:
        print(f"\n{curve_text(found.report)}")
    if items:
        print(f"\n{items_text(found)}")


@app.command(epilog="Example: assay bank compare bank.npz newer.npz")
def compare(
    bank: BankFile,
    other: Annotated[Path, typer.Argument(help="A later bank of the same suite.")],
    items: Annotated[
        bool, typer.Option("--items", help="List every common item, not only those that drifted.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compare two banks item by item, on one scale."""
    found = compare_banks(load_bank(bank), load_bank(other))
    if as_json:
        plain = found.as_dict()
        print_json({**plain, "correlation": None if math.isnan(found.correlation) else found.correlation})
    else:
        print(comparison_text(found, everything=items))


DRIFT_EXAMPLES = """\b
Examples:
  assay bank drift bank.npz recent.csv
  assay bank drift bank.npz newer.npz
"""


@app.command(epilog=DRIFT_EXAMPLES)
def drift(
    bank: BankFile,
    since: Annotated[list[Path], typer.Argument(help="Flat CSV files of runs since, or one later bank (npz).")],
    alpha: Annotated[float, typer.Option(help="Of runs: share of the items named that may be named in error.")] = 0.05,
    as_json: AsJson = False,
) -> None:
    """Name the items that have become easier or harder, by recent runs or by a later bank. Exits 3 on an alarm."""
    if any(file.suffix == ".npz" for file in since):
        if len(since) > 1:
            raise ConfigError("a bank is compared with one other", remedy="give one npz file, or CSV files of runs")
        compare(bank, since[0], items=False, as_json=as_json)
        return
    report = find_drift(str(bank), [str(file) for file in since], alpha)
    if as_json:
        print_json(report)
    else:
        print(drift_text(report))
    raise typer.Exit(Exit.NO_GRADE if report.alarming else Exit.OK)
