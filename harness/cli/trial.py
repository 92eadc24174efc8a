"""assay trial."""

from __future__ import annotations

from typing import Annotated

import typer

from harness.api.stores import open_store
from harness.cli.options import DEFAULT_STORE, AsJson, Store, print_json
from harness.report.text import event_text

app = typer.Typer(rich_markup_mode=None)


@app.command(epilog="Example: assay trial 20261130-101500-a1b2c3.0003.1 --kind exec")
def trial(
    trial: Annotated[str, typer.Argument(help="A trial's id, or a unique prefix.")],
    kind: Annotated[list[str] | None, typer.Option(help="Only events of this kind; repeatable.")] = None,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Show a trial: its result and its events."""
    with open_store(store, create=False) as opened:
        row = opened.trial(trial)
        events = list(opened.events(row.trial, kind))
        if as_json:
            print_json({"trial": row.plain(), "events": [event.plain() for event in events]})
            return
        print(f"{row.trial}  task {row.task}  attempt {row.attempt}  {row.state.value}")
        if row.result is not None:
            why = f" ({row.result.reason.value})" if row.result.reason else ""
            print(f"{row.result.outcome.value}{why}, stop {row.result.stop.value}  {row.result.detail}".rstrip())
            for flag in row.result.flags:
                print(f"  flag: {flag}")
        for event in events:
            print(event_text(event))
