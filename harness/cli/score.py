"""assay score."""

from __future__ import annotations

from typing import Annotated

import typer

from harness.api.audit_request import make_policy
from harness.api.scores import score as score_of
from harness.cli.exits import Exit
from harness.cli.options import DEFAULT_STORE, AsJson, CountMutants, RunId, Store, print_json
from harness.records.audit import Policy
from harness.report.scores import comparison_text

app = typer.Typer(rich_markup_mode=None, add_completion=False)

EXAMPLES = """\b
Examples:
  assay score latest
  assay score latest --baseline 20251130-101500-ab12cd
  assay score latest --allow-unaudited --json
"""


@app.command(epilog=EXAMPLES)
def score(
    run: RunId = "latest",
    baseline: Annotated[str | None, typer.Option(help="An earlier run of the same agent to compare with.")] = None,
    allow_unaudited: Annotated[
        bool, typer.Option("--allow-unaudited", help="Exit 0 though the ceiling was not measured: bounds, no score.")
    ] = False,
    stale_days: Annotated[
        float, typer.Option(help="Audits further than this from the run say nothing about it.")
    ] = Policy().stale_days,
    count_mutants: CountMutants = "all",
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Score a run on what was achievable: score, achievable count, unavailable rate.

    The audit is the one nearest in time of the run's suite version. Without one there is no score: exits 3.
    """
    found = score_of(run, baseline, store, make_policy(stale_days=stale_days, mutants=count_mutants))
    if as_json:
        print_json(found)
    else:
        print(comparison_text(found))
    unmeasured = not found.score.measured or (found.baseline is not None and not found.baseline.measured)
    raise typer.Exit(Exit.NO_GRADE if unmeasured and not allow_unaudited else Exit.OK)
