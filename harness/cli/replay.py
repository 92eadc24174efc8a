"""assay replay, and assay replay show."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from harness.api.opening import has_store, open_store
from harness.api.replays import ReplayRequest, replay_archive
from harness.api.replays_keeping import keep_replay, runs_of
from harness.api.replays_showing import replay_one
from harness.cli.exits import Exit
from harness.cli.options import DEFAULT_STORE, AsJson, Store, print_json, say
from harness.records.archive import ImportOptions
from harness.records.replays import ReplayReport
from harness.replay.restore import THRESHOLD
from harness.report.replays import replay_text, steps_text
from harness.store.sqlite import SqliteStore

EPILOG = """\b
Examples:
  assay replay gpt-4o-airline.json.gz --environment airline@v1 --environment-data DATA --mode normal
  assay replay gpt-4o-airline.json.gz --environment airline@v1 --environment-data DATA --mode normal \\
      --grader tau-bench@718ffa1
  assay replay taken_actions.json --restore-ungraded        # says what it took for which option, and why
  assay replay latest
  assay replay results.json --environment container:IMAGE@sha256:… --mode solo --json
  assay replay show 20260101-120000-abc123.0004.1
  assay replay show results.json 17/0 --environment airline@tau2 --environment-data DATA --mode normal

\b
An environment is NAME@VERSION, path/to/file.py:Name, command:COMMAND or container:IMAGE@sha256:…
What is compared, and what makes a replay invalid: docs/replay.md
"""


class ReplayGroup(TyperGroup):
    """`assay replay ARCHIVE` is short for `assay replay run ARCHIVE`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args[:1] and args[0] not in self.commands:
            args = ["run", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=ReplayGroup, rich_markup_mode=None, add_completion=False, no_args_is_help=True)

Archive = Annotated[str, typer.Argument(metavar="ARCHIVE|RUN", help="A file, folder or ZIP, or a run of the store.")]
EnvironmentName = Annotated[
    str, typer.Option(help="Where to replay, or `recorded` of a run of ours; by default what the archive shows.")
]
Mode = Annotated[
    str,
    typer.Option(
        help="The mode it was recorded in, or `recorded` of a run of ours, held against what the archive says; by"
        " default what it shows."
    ),
]
EnvironmentData = Annotated[
    Path | None, typer.Option(envvar="ASSAY_ENVIRONMENT_DATA", help="Folder of the environment's data.")
]
Data = Annotated[
    str, typer.Option(help="`recorded`, a data version of the environment, a file of tasks: as for cross.")
]
Normalise = Annotated[
    str,
    typer.Option(
        help="What may differ, joined by commas: layout, key-order, number-form, timestamp-format (together:"
        " standard), rename:OLD=NEW; or none."
    ),
]
States = Annotated[
    bool, typer.Option("--states/--no-states", help="Compare recorded digests of states, of the data as recorded.")
]
Format = Annotated[str | None, typer.Option(help="The archive's format; by default told from its content.")]
Relabel = Annotated[
    bool, typer.Option("--relabel", help="Grade mislabelled episodes as the task that their content names.")
]
Reference = Annotated[str | None, typer.Option(help="A file of tasks with their reference actions.")]
Executed = Annotated[str | None, typer.Option(help="An archive of what the agent itself did.")]


@app.callback(epilog=EPILOG)
def _group() -> None:
    """Carry recorded episodes out again in an environment, compare every answer, and grade what is true to the record.

    `assay replay ARCHIVE …` replays all of it (its options: assay replay run --help).
    """


@app.command("run", epilog=EPILOG)
def run(
    archive: Archive,
    environment: EnvironmentName = "",
    mode: Mode = "",
    environment_data: EnvironmentData = None,
    data: Data = "recorded",
    grader: Annotated[
        str | None,
        typer.Option(
            help="ID@VERSION, with +CHOICE as for `assay cross`; to restore, by default the one that gives its verdicts"
            " again."
        ),
    ] = None,
    task_map: Annotated[
        Path | None, typer.Option(help="JSON: the archive's task names to those of the file in --data.")
    ] = None,
    normalise: Normalise = "",
    states: States = True,
    twice: Annotated[bool, typer.Option("--twice", help="Replay each episode twice: is it deterministic?")] = False,
    restore: Annotated[
        bool, typer.Option("--restore-ungraded", help="Give ungraded episodes an outcome where replays are true.")
    ] = False,
    fidelity: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Lower bound of agreement that a stratum needs to be restored.")
    ] = THRESHOLD,
    relabel: Relabel = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first episodes.")] = None,
    reference: Reference = None,
    executed: Executed = None,
    format: Format = None,
    keep: Annotated[
        bool, typer.Option("--keep/--no-keep", help="Write it beside the run of the store that it is of.")
    ] = True,
    everything: Annotated[bool, typer.Option("--all", help="Show every invalid or moved episode, not ten.")] = False,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Carry recorded episodes out again in an environment, compare every answer, and grade what is true to the record.

    Exits 3 when part of the archive could not be read, a replay is invalid, or, with a grader, an episode has no grade.
    """
    request = ReplayRequest(
        archive=archive,
        environment=environment,
        mode=mode,
        data=data,
        grader=grader,
        environment_data=environment_data,
        task_map=task_map,
        format=format,
        options=ImportOptions(reference=reference, executed=executed),
        normalise=_names(normalise),
        states=states,
        twice=twice,
        limit=limit,
        restore=restore,
        threshold=fidelity,
        relabel=relabel,
    )
    with _maybe(store) as opened:
        with _progress() as notice:
            report = replay_archive(request, opened, notice)
        if keep and opened is not None and not report.refused:
            report = _kept(opened, report)
    if as_json:
        print_json(report)
    else:
        print(replay_text(report, every=everything))
        if keep and not report.kept_in and not report.refused:
            say("kept nowhere: `assay import` the archive first, to have the replay beside its run")
    raise typer.Exit(Exit.OK if report.whole else Exit.NO_GRADE)


@app.command("show", epilog=EPILOG)
def show(
    archive: Annotated[str, typer.Argument(metavar="ARCHIVE|RUN|TRIAL", help="Where it is; or a trial of the store.")],
    episode: Annotated[
        str, typer.Argument(help="TASK/TRIAL, or the trial's id; of a trial alone it is left out.")
    ] = "",
    environment: EnvironmentName = "",
    mode: Mode = "",
    environment_data: EnvironmentData = None,
    data: Data = "recorded",
    normalise: Normalise = "",
    states: States = True,
    reference: Reference = None,
    executed: Executed = None,
    format: Format = None,
    width: Annotated[int, typer.Option(min=20, help="How much of an answer is shown.")] = 100,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Show one episode step by step: recorded, replayed, the state's digest, and where they first part.

    Exits 3 when the replay is invalid.
    """
    request = ReplayRequest(
        archive=archive,
        environment=environment,
        mode=mode,
        data=data,
        environment_data=environment_data,
        format=format,
        options=ImportOptions(reference=reference, executed=executed),
        normalise=_names(normalise),
        states=states,
    )
    with _maybe(store) as opened:
        replayed = replay_one(request, episode, opened)
    if as_json:
        steps = [asdict(step) for step in replayed.steps]
        print_json(
            {
                "episode": replayed.episode.id,
                "environment": replayed.environment,
                "data": replayed.data,
                "mode": replayed.mode,
                "steps": steps,
                "fidelity": replayed.fidelity.plain(),
                "end_state": replayed.end_state,
            }
        )
    else:
        print(steps_text(replayed, width=width))
    raise typer.Exit(Exit.OK if replayed.valid else Exit.NO_GRADE)


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


@contextmanager
def _maybe(folder: str) -> Iterator[SqliteStore | None]:
    """The store, where there is one. Raises StoreError."""
    if not has_store(folder):
        yield None
        return
    with open_store(folder) as opened:
        yield opened


def _kept(store: SqliteStore, report: ReplayReport) -> ReplayReport:
    runs = tuple(run for run in runs_of(store, report) if keep_replay(store, run, report))
    return report.model_copy(update={"kept_in": runs})


@contextmanager
def _progress() -> Iterator[Callable[[int], None]]:
    """A counter on a terminal's stderr; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("replayed {task.completed} episodes"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        row = bar.add_task("replay", total=None)
        yield lambda done: bar.update(row, completed=done)
