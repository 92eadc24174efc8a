"""assay cross."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.api.crosses import CrossRequest, crossed
from harness.cli.exits import Exit
from harness.cli.options import AsJson, print_json, say
from harness.records.cross import CrossTable
from harness.report.cross import cross_text

app = typer.Typer(rich_markup_mode=None, add_completion=False)

EPILOG = """\b
Examples:
  assay cross gpt-4o-airline.json.gz --environment airline@v1 --environment-data DATA \\
      --graders tau-bench@until-718ffa1,tau-bench@718ffa1 --data A,B
  assay cross results.json --environment airline@tau2 --environment-data DATA \\
      --graders tau2@0.1,tau2@1.0 --data recorded,later=tasks.json
  assay cross results.json --environment airline@tau2 --environment-data DATA \\
      --graders tau2@1.0,tau2@1.0+numbers-by-value+whole-words

\b
A grader is ID@VERSION, with +CHOICE for each of its choices made otherwise, or path/to/file.py:name.
A version of --data is [LABEL=]PART[+PART]: `recorded` (the tasks as the archive has them), a data version of the
environment, or a file of tasks.
"""


@app.command("cross", epilog=EPILOG)
def command(
    archives: Annotated[list[str], typer.Argument(help="Archives of recorded episodes; several are several agents.")],
    graders: Annotated[str, typer.Option(help="Graders, joined by commas; the first is what the others move from.")],
    environment: Annotated[
        str,
        typer.Option(
            help="NAME@VERSION, path/to/file.py:name, command:… or container:…; by default as the first archive shows."
        ),
    ] = "",
    data: Annotated[str, typer.Option(help="Versions of the task data, joined by commas.")] = "recorded",
    mode: Annotated[str | None, typer.Option(help="Modes, joined by commas; by default the recorded one.")] = None,
    environment_data: Annotated[
        Path | None, typer.Option(envvar="ASSAY_ENVIRONMENT_DATA", help="Folder of the environment's data.")
    ] = None,
    task_map: Annotated[
        Path | None, typer.Option(help="JSON: the archive's task names to those of the files in --data.")
    ] = None,
    relabel: Annotated[
        bool, typer.Option("--relabel", help="Grade mislabelled episodes as the task that their content names.")
    ] = False,
    format: Annotated[str | None, typer.Option(help="The archives' format; by default told from the content.")] = None,
    out: Annotated[Path | None, typer.Option(help="CSV to write: a row for each episode and cell.")] = None,
    as_json: AsJson = False,
) -> None:
    """Grade the same recorded episodes under several rules, task data and modes, and say what moved and why.

    Exits 3 when a part of an archive could not be read, a cell has no verdict at all, or the first cell does not
    reproduce the recorded outcomes: what moves then is not the rule's alone.
    """
    request = CrossRequest(
        archives=tuple(archives),
        environment=environment,
        graders=_parts(graders),
        data=_parts(data),
        modes=_parts(mode or ""),
        environment_data=environment_data,
        task_map=task_map,
        format=format,
        relabel=relabel,
    )
    found = crossed(request)
    table = found.table
    if out is not None:
        say(f"{out}: {found.write(out)} row(s)")
    if as_json:
        print_json(table)
    else:
        print(cross_text(table))
    raise typer.Exit(Exit.OK if sound(table) else Exit.NO_GRADE)


def sound(table: CrossTable) -> bool:
    """Whether all was read, every cell has a verdict and the first reproduces the record."""
    return (
        not table.partial
        and not table.at_least
        and all(line.absent is None for line in table.cells)
        and (table.attribution is None or table.attribution.clean)
    )


def _parts(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
