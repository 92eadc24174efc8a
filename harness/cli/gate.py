"""assay gate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import typer

from harness.api.decisions import GateRequest, gate
from harness.api.request import read_baseline, read_points
from harness.cli.exits import Exit
from harness.cli.options import DEFAULT_STORE, AsJson, RunId, Store, print_json
from harness.records.errors import ConfigError
from harness.report.decisions import decision_text

T = TypeVar("T")
app = typer.Typer(rich_markup_mode=None, add_completion=False)

EXAMPLES = """\b
Examples:
  assay gate latest --baseline 20251130-101500-ab12cd --margin 2pp
  assay gate latest --baseline 62.5% --margin 1pp --alpha 0.01
"""


@app.command("gate", epilog=EXAMPLES)
def command(
    run: RunId,
    baseline: Annotated[str, typer.Option(help="The run to compare with, or a pass rate such as 62.5%.")],
    margin: Annotated[str, typer.Option(help="How much worse is still no worse, in percentage points.")] = "2pp",
    alpha: Annotated[float, typer.Option(help="Rate of false alarms: called worse, and is not.")] = 0.05,
    beta: Annotated[
        float | None, typer.Option(help="Rate of missed regressions: called no worse, and is by the margin. [alpha]")
    ] = None,
    truth: Annotated[
        str, typer.Option(help="suite: what full runs of both would show; agent: what repeating them would.")
    ] = "suite",
    bank: Annotated[Path | None, typer.Option(help="Read both runs with this bank; else the candidate's.")] = None,
    store: Store = DEFAULT_STORE,
    baseline_store: Annotated[str | None, typer.Option(help="The store of the baseline, where it is another.")] = None,
    as_json: AsJson = False,
) -> None:
    """Decide from two runs, complete or not, whether the first is better, no worse or worse.

    Exits 0 for better and no worse, 4 for worse, 3 while undecided. The error rates hold however often it is asked
    while the run goes on.
    """
    request = GateRequest(
        run=run,
        baseline=_read(read_baseline, baseline, "--baseline"),
        margin=_read(read_points, margin, "--margin"),
        alpha=alpha,
        beta=beta,
        truth=_truth(truth),
        bank=None if bank is None else str(bank),
        store=store,
        baseline_store=baseline_store,
    )
    report = gate(request)
    if as_json:
        print_json(report)
    else:
        print(decision_text(report))
    verdicts = {"worse": Exit.GATE, "undecided": Exit.NO_GRADE}
    raise typer.Exit(verdicts.get(report.verdict, Exit.OK))


def _read(reader: Callable[[str], T], text: str, option: str) -> T:
    try:
        return reader(text)
    except ValueError as fault:
        raise ConfigError(str(fault), place=option) from None


def _truth(text: str) -> Literal["suite", "agent"]:
    if text == "suite":
        return "suite"
    if text == "agent":
        return "agent"
    raise ConfigError(f"--truth {text!r}", remedy="give suite or agent")
