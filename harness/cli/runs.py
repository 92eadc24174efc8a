"""assay runs."""

from __future__ import annotations

import typer

from harness.api.stores import open_store
from harness.cli.options import DEFAULT_STORE, AsJson, Store, print_json
from harness.store.flat import agent_name

app = typer.Typer(rich_markup_mode=None)


@app.command(epilog="Example: assay runs --json")
def runs(store: Store = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """List the runs of a store."""
    with open_store(store, create=False) as opened:
        rows = [
            {
                "run": row.run,
                "created": row.created,
                "suite": row.config.suite,
                "agent": agent_name(row.config),
                "adaptive": row.config.adaptive is not None,
                "running": opened.owned(row.run),
            }
            for row in opened.runs()
        ]
    if as_json:
        print_json({"runs": rows})
        return
    for row in rows:
        state = "running" if row["running"] else ""
        print(f"{row['run']}  {str(row['created'])[:19]}  {row['suite']}  {row['agent']}  {state}".rstrip())
