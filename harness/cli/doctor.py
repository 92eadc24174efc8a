"""assay doctor."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from harness.bootstrap.check import Status
from harness.bootstrap.doctor import examine
from harness.cli.exits import Exit
from harness.cli.options import DEFAULT_STORE, AsJson, Store, print_json

app = typer.Typer(rich_markup_mode=None, add_completion=False)
MARKS = {Status.OK: "ok  ", Status.WARN: "warn", Status.FAIL: "FAIL"}


@app.command(epilog="Example: assay doctor --json")
def doctor(store: Store = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Say what works on this machine, what does not, and what to do about it."""
    checks = examine(os.environ, Path(store))
    failed = any(check.status is Status.FAIL for check in checks)
    if as_json:
        rows = [
            {"name": c.name, "status": c.status.value, "finding": c.finding, "remedy": c.remedy or None} for c in checks
        ]
        print_json({"ok": not failed, "checks": rows})
    else:
        for check in checks:
            print(f"{MARKS[check.status]}  {check.name}: {check.finding}")
            if check.remedy:
                print(f"      → {check.remedy}")
    raise typer.Exit(Exit.UNREACHABLE if failed else Exit.OK)
