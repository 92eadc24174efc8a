"""assay verify."""

from __future__ import annotations

import typer

from harness.api.stores import open_store
from harness.cli.exits import Exit
from harness.cli.options import DEFAULT_STORE, AsJson, RunId, Store, print_json
from harness.store.faults import DamagedStoreError
from harness.store.salvage import examine
from harness.store.verify import verify_run

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(epilog="Example: assay verify latest")
def verify(run: RunId = "latest", store: Store = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Re-derive every hash chain of a run and name the first broken event.

    Exits 3 (an alert) when something does not hold. Of a damaged database it counts what can still be read.
    """
    try:
        with open_store(store) as opened:
            report = verify_run(opened, opened.run(run).run)
    except DamagedStoreError as error:
        _tell_damage(store, error, as_json)
        raise typer.Exit(Exit.ALERT) from error
    if as_json:
        problems = [{"stream": p.stream, "event": p.seq, "what": p.what} for p in report.problems]
        print_json(
            {
                "run": report.run,
                "ok": report.ok,
                "events": report.events,
                "trials": len(report.trials),
                "problems": problems,
                "notices": list(report.notices),
            }
        )
    else:
        for problem in report.problems:
            print(problem)
        for notice in report.notices:
            print(f"note: {notice}")
        state = "intact" if report.ok else f"BROKEN: {len(report.problems)} problem(s), the first one above"
        print(f"{report.run}: {report.events} events in {len(report.trials)} trial(s): {state}")
    raise typer.Exit(Exit.OK if report.ok else Exit.ALERT)


def _tell_damage(store: str, error: DamagedStoreError, as_json: bool) -> None:
    found = examine(store)
    if as_json:
        print_json(
            {
                "run": None,
                "ok": False,
                "damage": error.message,
                "readable": found.readable,
                "unreadable": list(found.unreadable),
                "findings": list(found.findings),
            }
        )
        return
    print(f"{found.path}: {error.message}")
    for finding in found.findings:
        print(finding)
    print(f"{found}; keep a copy before you try to mend it")
