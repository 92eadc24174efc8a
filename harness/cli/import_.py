"""assay import."""

from __future__ import annotations

from typing import Annotated

import typer

from harness.api.archives import ImportedRun, ImportReport, import_archive
from harness.api.stores import open_store
from harness.cli.exits import Exit
from harness.cli.options import DEFAULT_STORE, AsJson, Store, print_json, say
from harness.records.archive import Finding, ImportOptions
from harness.records.vocabulary import Outcome

app = typer.Typer(rich_markup_mode=None, add_completion=False)

_MOST_SHOWN = 20

EPILOG = """\b
Examples:
  assay import gpt-4o-airline.json --model gpt-4o
  assay import jobs/2026-01-31__12-00-00 --as harbor-january
  assay import taken_actions.json --reference tasks.json
"""


@app.command(name="import", epilog=EPILOG)
def import_(
    path: Annotated[str, typer.Argument(help="A file, folder or ZIP; gzip is fine.")],
    format: Annotated[str | None, typer.Option(help="Which format it is; by default told from its content.")] = None,
    run: Annotated[str | None, typer.Option("--as", help="The run's id; by default made from the content.")] = None,
    agent: Annotated[str | None, typer.Option(help="Name of the agent, where the archive has none.")] = None,
    scaffold: Annotated[str | None, typer.Option(help="Name of the program around the model.")] = None,
    model: Annotated[str | None, typer.Option(help="Name of the model.")] = None,
    scorer: Annotated[str | None, typer.Option(help="Whose score is the outcome, where several scored.")] = None,
    reference: Annotated[str | None, typer.Option(help="A file of tasks with their reference actions.")] = None,
    executed: Annotated[str | None, typer.Option(help="An archive of what the agent itself did.")] = None,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Bring another harness's results into the store, and say what is missing.

    What the source does not say stays unknown; an episode without evidence of grading is ungraded, never 0. Importing
    again adds nothing. Exits 3 when something could not be read or some planned trial has no grade.
    """
    options = ImportOptions(agent, scaffold, model, scorer, reference, executed)
    with open_store(store, create=True) as opened:
        report = import_archive(path, opened, format=format, run=run, options=options)
    if as_json:
        print_json(report)
    else:
        _print(report)
    raise typer.Exit(Exit.OK if report.whole else Exit.NO_GRADE)


def _print(report: ImportReport) -> None:
    print(f"{report.path}: {report.what}")
    for run in report.runs:
        print(_run_line(run))
        if run.gaps:
            more = " …" if run.gaps > 10 else ""
            least = "at least " * run.at_least
            print(f"  planned and not there: {least}{run.gaps} trial(s): {', '.join(run.first_gaps[:10])}{more}")
    if report.missing:
        print(f"not in this archive: {', '.join(report.missing)}")
    if report.unread:
        print(f"{len(report.unread)} part(s) could not be read:")
        print_findings(report.unread)
    if report.findings:
        rules = sorted({finding.rule for finding in report.findings})
        print(f"{len(report.findings)} contradiction(s) ({', '.join(rules)}): `assay lint-archive` shows them")
    say("`assay show RUN` shows a run, `assay trial TRIAL --full` an episode")


def _run_line(run: ImportedRun) -> str:
    counts = ", ".join(f"{count} {outcome.value}" for outcome, count in run.outcomes.items() if count)
    new = f"{run.written} new" + (f", {run.already} there already" if run.already else "")
    ungraded = run.outcomes[Outcome.UNGRADED]
    note = f" — {ungraded} without a verdict" if ungraded else ""
    return f"{run.run}: {run.suite}, {run.written + run.already} of {run.planned} planned ({new}): {counts}{note}"


def print_findings(findings: tuple[Finding, ...]) -> None:
    """Findings, one on a line with its remedy, the first ones."""
    for finding in findings[:_MOST_SHOWN]:
        remedy = f" — {finding.remedy}" if finding.remedy else ""
        print(f"  {finding.place}: {finding.what}{remedy}")
    if len(findings) > _MOST_SHOWN:
        print(f"  … and {len(findings) - _MOST_SHOWN} more; --json lists all")
