"""assay gc."""

from __future__ import annotations

from typing import Annotated

import typer

from harness.api.leftovers import Sweep, SweptItem, collect_garbage
from harness.cli.exits import Exit
from harness.cli.options import DEFAULT_STORE, AsJson, Store, print_json, say

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(epilog="Example: assay gc --dry-run")
def gc(
    run: Annotated[
        str | None, typer.Option(help="Only this run (exact id), even if its owner was on another machine.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be removed; remove nothing.")] = False,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Remove containers and networks that dead runs left behind.

    A run is dead when the process that owns it is; what belongs to a live process, of whatever store or user, is left.
    Exits 3 (an alert) when something of a dead run could not be removed.
    """
    swept = collect_garbage(store, run=run, dry_run=dry_run)
    if as_json:
        print_json(swept)
    else:
        _tell(swept)
    raise typer.Exit(Exit.ALERT if swept.failed else Exit.OK)


def _tell(swept: Sweep) -> None:
    for word, items in (
        ("would remove" if swept.dry_run else "removed", swept.removed),
        ("left", swept.left),
        ("NOT REMOVED", swept.failed),
    ):
        for item in items:
            print(f"{word} {_described(item)}")
    elsewhere = sorted({item.run for item in swept.left if item.standing == "elsewhere"})
    for run in elsewhere:
        say(f"if nobody runs {run} any more: assay gc --run {run}")
    say(f"{len(swept.removed)} {'to remove' if swept.dry_run else 'removed'}, {len(swept.left)} left")


def _described(item: SweptItem) -> str:
    return f"{item.kind} {item.name} of {item.trial or item.run}: {item.why}"
