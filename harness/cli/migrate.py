"""assay migrate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.api.migration import MigrationFormat, MigrationRequest, migrate
from harness.api.replays import ReplayRequest
from harness.cli.exits import Exit
from harness.cli.options import AsJson, print_json
from harness.records.migration import MigrationReport
from harness.report.replays import migration_text

app = typer.Typer(rich_markup_mode=None, add_completion=False)

EPILOG = """\b
Examples:
  assay migrate gpt-4o-airline.json.gz --to jsonl --out airline.jsonl
  assay migrate gpt-4o-airline.json.gz --to jsonl --check --environment-data DATA
  assay migrate gpt-4o-airline.json.gz --to atif --check --environment airline@v1 --environment-data DATA \\
      --mode normal --grader tau-bench@718ffa1
"""


@app.command(name="migrate", epilog=EPILOG)
def command(
    archive: Annotated[str, typer.Argument(help="A file, folder or ZIP; gzip is fine.")],
    to: Annotated[MigrationFormat, typer.Option(help="jsonl: everything; atif: trajectories, without verdicts.")],
    out: Annotated[Path | None, typer.Option(help="The file to write (atif, several runs: the folder).")] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Replay and grade before and after under the same rule, and compare.")
    ] = False,
    environment: Annotated[
        str, typer.Option(help="Where to replay: NAME@VERSION, or another carrier; by default what the archive shows.")
    ] = "",
    mode: Annotated[str, typer.Option(help="The mode it was recorded in; by default what the archive shows.")] = "",
    grader: Annotated[
        str | None, typer.Option(help="The old rule, ID@VERSION; by default the one that gives its verdicts again.")
    ] = None,
    environment_data: Annotated[
        Path | None, typer.Option(envvar="ASSAY_ENVIRONMENT_DATA", help="Folder of the environment's data.")
    ] = None,
    data: Annotated[str, typer.Option(help="Version of the task data, as for `assay cross`.")] = "recorded",
    format: Annotated[str | None, typer.Option(help="The archive's format; by default told from its content.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Show every difference, not ten.")] = False,
    as_json: AsJson = False,
) -> None:
    """Convert an archive, and prove with --check that the conversion moves no score under the old rule.

    Exits 4 when anything is another thing afterwards, 3 when a part of the archive could not be read.
    """
    checking = None
    if check:
        checking = ReplayRequest(
            archive=archive,
            environment=environment,
            mode=mode,
            grader=grader,
            environment_data=environment_data,
            data=data,
            format=format,
        )
    report = migrate(MigrationRequest(archive, to, out, format, checking))
    if as_json:
        print_json(report)
    else:
        print(migration_text(report, every=everything))
    raise typer.Exit(code_of(report))


def code_of(report: MigrationReport) -> Exit:
    """What the shell learns."""
    if not report.clean:
        return Exit.GATE
    return Exit.NO_GRADE if report.notes else Exit.OK
