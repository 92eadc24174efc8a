"""assay regrade."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.api.regrades import RegradeReport, RegradeRequest, kept_regrades, regrade
from harness.api.stores import open_store
from harness.cli.exits import Exit
from harness.cli.options import DEFAULT_STORE, AsJson, Store, print_json, say
from harness.report.cross import regrade_text
from harness.report.words import counted

app = typer.Typer(rich_markup_mode=None, add_completion=False)

EPILOG = """\b
Examples:
  assay regrade latest                                   # the recorded tests, on what was sealed
  assay regrade latest --suite suites/mine               # the tests as they are now
  assay regrade gpt-4o-airline.json.gz --grader tau-bench@718ffa1 --environment airline@v1 --environment-data DATA
  assay regrade RUN --grader tau2@1.0 --environment airline@tau2 --data tasks.json --json
  assay regrade RUN --kept                               # what it was graded again by so far

\b
Graders and versions of --data are written as for `assay cross`. Old scores stay: new ones stand in the run's own
stream, and every later export has a file of corrections beside it.
"""


@app.command("regrade", epilog=EPILOG)
def command(
    target: Annotated[str, typer.Argument(metavar="RUN|ARCHIVE", help="A run of the store, or an archive to import.")],
    grader: Annotated[
        str | None, typer.Option(help="ID@VERSION; may be left out for runs in containers, which name theirs.")
    ] = None,
    data: Annotated[str | None, typer.Option(help="Version of the task data; by default as recorded.")] = None,
    suite: Annotated[str | None, typer.Option(help="Of runs in containers: the suite whose tests count now.")] = None,
    environment: Annotated[
        str | None,
        typer.Option(help="NAME@VERSION to replay episodes in; by default what the archive shows, or the tasks name."),
    ] = None,
    environment_data: Annotated[
        Path | None, typer.Option(envvar="ASSAY_ENVIRONMENT_DATA", help="Folder of the environment's data.")
    ] = None,
    mode: Annotated[str | None, typer.Option(help="The environment's mode; by default the recorded one.")] = None,
    task_map: Annotated[
        Path | None, typer.Option(help="JSON: the archive's task names to those of the file in --data.")
    ] = None,
    relabel: Annotated[
        bool, typer.Option("--relabel", help="Grade mislabelled episodes as the task that their content names.")
    ] = False,
    kept: Annotated[
        bool, typer.Option("--kept", help="Show what the run was graded again by so far, and do nothing.")
    ] = False,
    format: Annotated[str | None, typer.Option(help="The archive's format; by default told from its content.")] = None,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Grade recorded trials again under another rule, without the agent; the old scores stay.

    Exits 3 when some planned trial has no grade, or a part of the archive could not be read.
    """
    request = RegradeRequest(
        target=target,
        grader=grader,
        suite=suite,
        data=data,
        environment=environment,
        environment_data=environment_data,
        mode=mode,
        task_map=task_map,
        relabel=relabel,
        format=format,
    )
    with open_store(store, create=not kept and Path(target).exists()) as opened:
        reports = kept_regrades(opened, target) if kept else regrade(request, opened, notice=say)
    _show(reports, as_json=as_json)
    raise typer.Exit(Exit.OK if all(report.whole for report in reports) else Exit.NO_GRADE)


def _show(reports: tuple[RegradeReport, ...], *, as_json: bool) -> None:
    if as_json:
        print_json(reports[0] if len(reports) == 1 else [report.plain() for report in reports])
        return
    for report in reports:
        print(regrade_text(report.run, report.header, report.transition, report.grades))
        if report.missing:
            least, more = "at least " * report.at_least, report.missing - len(report.first_missing)
            told = ", ".join(report.first_missing) + (f" and {more} more" if more and report.first_missing else "")
            print(f"  missing: {least}{report.missing}, without a grade{': ' * bool(told)}{told}")
        if report.unread:
            print(f"  {counted(report.unread, 'part')} of the archive could not be read: what was there has no grade")
        if report.unfinished:
            print(f"  without a result: {counted(report.unfinished, 'trial')}; `assay resume {report.run}` goes on")
    if any(report.moved for report in reports):
        say("`assay export RUN --out FILE` writes the corrections beside it")
