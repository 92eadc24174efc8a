"""assay bank show."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.adaptive.bank_file import load_bank
from harness.cli.options import AsJson, print_json
from harness.report.banks import bank_plain, bank_text, items_text

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    help="Show what a bank of calibrated items holds.",
)
BankFile = Annotated[Path, typer.Argument(help="A bank (npz) that `assay calibrate` wrote.")]


@app.callback()
def _group() -> None:
    """Keeps `show` a subcommand while it is the only one."""


@app.command(epilog="Example: assay bank show bank.npz --items")
def show(
    bank: BankFile,
    items: Annotated[bool, typer.Option("--items", help="List every item, the most informative first.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show a bank: where it comes from, how well it fits, what its items are worth."""
    found = load_bank(bank)
    if as_json:
        print_json(bank_plain(found))
        return
    print(bank_text(found, str(bank)))
    if items:
        print()
        print(items_text(found))
