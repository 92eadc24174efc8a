"""assay bank show | drift."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.adaptive.bank_file import load_bank
from harness.api.upkeep import drift as find_drift
from harness.cli.exits import Exit
from harness.cli.options import AsJson, print_json
from harness.report.banks import bank_plain, bank_text, items_text
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


@app.command(epilog="Example: assay bank drift bank.npz recent.csv")
def drift(
    bank: BankFile,
    runs: Annotated[list[Path], typer.Argument(help="Flat CSV files of runs since.")],
    alpha: Annotated[float, typer.Option(help="Share of the items named that may be named in error.")] = 0.05,
    as_json: AsJson = False,
) -> None:
    """Name the items that recent runs find easier or harder than the bank says. Exits 3 on an alarm."""
    report = find_drift(str(bank), [str(file) for file in runs], alpha)
    if as_json:
        print_json(report)
    else:
        print(drift_text(report))
    raise typer.Exit(Exit.NO_GRADE if report.alarming else Exit.OK)
