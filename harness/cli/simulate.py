"""assay simulate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.api.studies import StudyRequest, simulate
from harness.cli.options import AsJson, print_json, say
from harness.records.errors import ConfigError
from harness.report.plots import plot_study, require_plots
from harness.report.studies import study_text

app = typer.Typer(rich_markup_mode=None, add_completion=False)

EXAMPLES = """\b
Examples:
  assay simulate --history runs.csv --policy random --policy d_optimal --policy pass_rate+0.1 --stop 200
  assay simulate --history later.csv --bank bank.npz --policy d_optimal --stop 200 --plot out.png
"""


@app.command("simulate", epilog=EXAMPLES)
def command(
    history: Annotated[list[Path], typer.Option(help="Flat CSV of past runs to replay; repeatable.")],
    policy: Annotated[
        list[str], typer.Option(help="As of `assay run --policy`: auto, d_optimal, pass_rate+0.1, …; repeatable.")
    ],
    bank: Annotated[
        Path | None, typer.Option(help="The bank to use; else one per tenth of the agents, calibrated on the others.")
    ] = None,
    stop: Annotated[int, typer.Option(min=1, help="Tasks per run.")] = 200,
    estimator: Annotated[
        str | None, typer.Option(help="Estimator of the full pass rate. [default: hybrid, or what auto found]")
    ] = None,
    level: Annotated[float, typer.Option(help="Level of the intervals, between 0 and 1.")] = 0.95,
    folds: Annotated[int, typer.Option(min=2, help="Parts of the agents, without --bank.")] = 10,
    repeats: Annotated[int, typer.Option(min=1, help="Replays of each run, each with its own seed.")] = 5,
    in_flight: Annotated[int, typer.Option(min=1, help="Tasks in flight at a time.")] = 1,
    seed: Annotated[int, typer.Option(help="Seed of folds, draws and ties.")] = 0,
    plot: Annotated[Path | None, typer.Option(help="Write a plot too (png, svg or pdf; needs matplotlib).")] = None,
    as_json: AsJson = False,
) -> None:
    """Replay past runs under selection policies: what they would have cost and given."""
    if not 0 < level < 1:
        raise ConfigError(f"--level {level} is not between 0 and 1", remedy="0.95 means 95 %")
    if plot is not None:
        require_plots(plot)
    request = StudyRequest(
        history=tuple(str(file) for file in history),
        bank=None if bank is None else str(bank),
        policies=tuple(policy),
        estimator=estimator,
        stop=stop,
        level=level,
        folds=folds,
        repeats=repeats,
        in_flight=in_flight,
        seed=seed,
    )
    study = simulate(request)
    if plot is not None:
        plot_study(study, plot)
        say(f"wrote {plot}")
    if as_json:
        print_json(study)
    else:
        print(study_text(study))
