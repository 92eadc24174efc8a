"""assay schedule list | next | run-now | history."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.api.request import DEFAULT_STORE
from harness.api.schedule_figures import find_schedule, history, list_jobs, upcoming
from harness.cli.exits import Exit
from harness.cli.options import AsJson, print_json
from harness.records.schedule import Firing, FiringState, Result
from harness.report.schedules import firing_text, history_text, jobs_text, upcoming_text

if TYPE_CHECKING:
    from harness.api.runs import Watch
    from harness.api.schedule_request import Schedule
    from harness.api.schedule_work import Means

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    help="Show what is due and what became of it, or carry out a job now.\n\nWithout --config, the schedule that"
    " `assay serve` was last started with on the store.",
)

Config = Annotated[Path | None, typer.Option(help="A schedule. [default: the one last served on the store]")]
StoreOr = Annotated[
    str | None,
    typer.Option(
        "--store", envvar="ASSAY_STORE", help="Folder of the evidence store. [default: the schedule's, or .assay]"
    ),
]
Served = Annotated[str, typer.Option(help="The file whose schedule is served on the store.")]


@app.command("list", epilog="Example: assay schedule list --config configs/schedule.toml")
def list_(config: Config = None, store: StoreOr = None, as_json: AsJson = False) -> None:
    """Every job: when, what, on which suite, when next, and how it came out the last time."""
    lines = list_jobs(find_schedule(config, store), datetime.now(UTC))
    if as_json:
        print_json([line.plain() for line in lines])
    else:
        print(jobs_text(lines))


@app.command("next", epilog="Example: assay schedule next --count 20 --job nightly-gold")
def next_(
    count: Annotated[int, typer.Option(min=1, max=10_000, help="How many times.")] = 10,
    job: Annotated[list[str] | None, typer.Option(help="Of this job only; repeatable.")] = None,
    config: Config = None,
    store: StoreOr = None,
    as_json: AsJson = False,
) -> None:
    """The next due times of all jobs, in their own time zone."""
    found = upcoming(find_schedule(config, store), datetime.now(UTC), count, job or ())
    if as_json:
        print_json([due.plain() for due in found])
    else:
        print(upcoming_text(found))


@app.command("history", epilog="Example: assay schedule history --job nightly-gold --limit 50")
def history_(
    job: Annotated[str | None, typer.Option(help="Of this job only.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many, newest first.")] = 20,
    config: Config = None,
    store: StoreOr = None,
    as_json: AsJson = False,
) -> None:
    """The last firings: when due, how late, how they came out, and their cycle or run."""
    folder = store or (DEFAULT_STORE if config is None else find_schedule(config, None).store)
    found = history(folder, job, limit)
    if as_json:
        print_json([firing.plain() for firing in found])
    else:
        print(history_text(found))


@app.command("run-now", epilog="Example: assay schedule run-now nightly-gold")
def run_now_(
    job: Annotated[str, typer.Argument(help="A job's name.")],
    config: Config = None,
    store: StoreOr = None,
    as_json: AsJson = False,
) -> None:
    """Carry out a job now, here, whether a scheduler is there or not; or take up what it has left unfinished.

    Exits as the audit or the run would by itself; 2 while the job is under way.
    """
    from harness.api.schedule_work import run_now
    from harness.cli.execution import watched

    schedule = find_schedule(config, store)
    named, means = schedule.job(job), _means(schedule)
    firing, interrupted = watched(
        lambda watch: run_now(named, replace(means, control=watch.control or means.control), watch)
    )
    if as_json:
        print_json(firing)
    else:
        print(firing_text(firing))
    if interrupted:
        raise typer.Exit(Exit.INTERRUPTED)
    if firing.state is FiringState.WAITING:
        raise typer.Exit(Exit.USAGE)
    raise typer.Exit(firing.found.exit_code or (Exit.OK if firing.result is not Result.FAILED else Exit.FAULT))


@app.command(hidden=True, epilog="Example: assay schedule work 12 --served /etc/assay/schedule.toml --lock 7")
def work(
    firing: Annotated[int, typer.Argument(help="A firing's number.")],
    served: Served,
    lock: Annotated[int, typer.Option(help="A descriptor that holds the job's lock.")],
    store: StoreOr = None,
) -> None:
    """Carry out a claimed firing: what `assay serve` starts."""
    os.set_inheritable(lock, False)  # what we start in turn must not hold the job when we are gone
    from harness.api.schedule_work import perform
    from harness.cli.execution import watched

    means = _means(find_schedule(None, store, served))

    async def quietly(watch: Watch) -> Firing:
        heeding = replace(means, control=watch.control or means.control)
        return await perform(firing, heeding, replace(watch, observer=None), lock)

    done, interrupted = watched(quietly)
    raise typer.Exit(Exit.INTERRUPTED if interrupted else done.found.exit_code or Exit.OK)


@app.command(hidden=True, epilog="Example: assay schedule check --served /etc/assay/schedule.toml")
def check(served: Served, store: StoreOr = None) -> None:
    """Raise what is stale or absent, and send what waits: what `assay serve` starts. Exits 3 while messages wait."""
    from harness.api.schedule_work import check_suites

    waiting = check_suites(find_schedule(None, store, served))
    raise typer.Exit(Exit.ALERT if waiting else Exit.OK)


def _means(schedule: Schedule) -> Means:
    """What the schedule's firings are carried out with."""
    from harness.api.schedule_work import Means, alert_request
    from harness.cli.execution import exit_code

    return Means(
        store=schedule.store,
        policy=schedule.policy,
        alerts=alert_request(schedule.alerts),
        exit_code=lambda summary, interrupted: exit_code(summary, interrupted=interrupted),
    )
