"""assay audit gold | null | mutant | all | status | explain | repair | retire | accept.

A command imports what it needs when it is called: an audit that is over at a glance takes less time than numpy does to
load.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import anyio
import typer

from harness.api.audit_request import EVERY, AlertRequest, AuditRequest, make_policy
from harness.cli.exits import Exit
from harness.cli.options import DEFAULT_STORE, AsJson, CountMutants, Store, print_json
from harness.records.audit import DecisionKind, Policy, Sentinel
from harness.records.audit_views import AuditReport
from harness.report.audits import explanation_text, report_text, status_text
from harness.report.plots import require_plots
from harness.report.trend import plot_trend, trend_text

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    help="Measure what is achievable on a suite, and what is not, why and since when.\n\nGold (the reference solution)"
    " must pass, doing nothing and wrong solutions must not. No model is called. Exits 3 while an alert stands, or when"
    " a cycle did not come to its end.",
)

SuiteName = Annotated[str, typer.Option("--suite", help="Suite folder, or a bundled suite (terminal).")]
Changed = Annotated[
    bool, typer.Option("--changed", help="Only tasks that are not known as they are now, are red, or are stale.")
]
Globs = Annotated[list[str] | None, typer.Option("--task", help="Only tasks whose id matches this glob; repeatable.")]
Concurrency = Annotated[int, typer.Option(help="Trials in flight.")]
Repeat = Annotated[int, typer.Option(help="Run gold this often on each task: finds what passes now and then.")]
Mutants = Annotated[int, typer.Option(help="Wrong solutions per task, where a solution has as many; 0: none.")]
StaleDays = Annotated[float, typer.Option(help="From this age on an audit says nothing.")]
Webhook = Annotated[str | None, typer.Option(help="Post alerts here, signed with $ASSAY_WEBHOOK_SECRET.")]
AlertsFile = Annotated[str | None, typer.Option(help="Append alerts to this file, a line of JSON each.")]
TaskId = Annotated[str, typer.Argument(help="A task's id.")]
Reason = Annotated[str, typer.Option("--reason", help="Why: it stays in the record.")]
STALE_DAYS, ALL = Policy().stale_days, "all"


@app.command(epilog="Example: assay audit gold --suite terminal --changed --repeat 5")
def gold(
    suite: SuiteName,
    changed: Changed = False,
    repeat: Repeat = 1,
    task: Globs = None,
    concurrency: Concurrency = 4,
    stale_days: StaleDays = STALE_DAYS,
    count_mutants: CountMutants = ALL,
    webhook: Webhook = None,
    alerts_file: AlertsFile = None,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Run the reference solution of every task: what does not pass is broken."""
    _audit((Sentinel.GOLD,), locals())


@app.command(epilog="Example: assay audit null --suite terminal")
def null(
    suite: SuiteName,
    changed: Changed = False,
    task: Globs = None,
    concurrency: Concurrency = 4,
    stale_days: StaleDays = STALE_DAYS,
    count_mutants: CountMutants = ALL,
    webhook: Webhook = None,
    alerts_file: AlertsFile = None,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Do nothing on every task: what passes measures nothing."""
    _audit((Sentinel.NULL,), locals())


@app.command(epilog="Example: assay audit mutant --suite terminal --mutants 5 --task 'csv-join/*'")
def mutant(
    suite: SuiteName,
    changed: Changed = False,
    mutants: Mutants = 3,
    task: Globs = None,
    concurrency: Concurrency = 4,
    stale_days: StaleDays = STALE_DAYS,
    count_mutants: CountMutants = ALL,
    webhook: Webhook = None,
    alerts_file: AlertsFile = None,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Run wrong solutions on every task: where one passes the grader looks too loosely."""
    _audit((Sentinel.MUTANT,), locals())


EXAMPLES = """\b
Examples:
  assay audit all --suite terminal
  assay audit all --suite terminal --mutants 0 --repeat 5
  assay audit all --suite terminal --changed --webhook https://hooks.example.org/assay
"""


@app.command("all", epilog=EXAMPLES)
def all_(
    suite: SuiteName,
    changed: Changed = False,
    repeat: Repeat = 1,
    mutants: Mutants = 3,
    task: Globs = None,
    concurrency: Concurrency = 4,
    stale_days: StaleDays = STALE_DAYS,
    count_mutants: CountMutants = ALL,
    webhook: Webhook = None,
    alerts_file: AlertsFile = None,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Gold, null and mutants as one cycle, with a receipt: the denominator of scores."""
    _audit(EVERY, locals())


def _audit(sentinels: tuple[Sentinel, ...], options: dict[str, Any]) -> None:
    """Carry an audit out, tell what came of it, and exit. `options`: a command's parameters, by name."""
    as_json = options.pop("as_json")
    report, interrupted = _carried_out(_request(sentinels, options))
    if as_json:
        print_json(report)
    else:
        print(report_text(report))
    if interrupted:
        raise typer.Exit(Exit.INTERRUPTED)
    raise typer.Exit(Exit.ALERT if report.standing or not report.finished else Exit.OK)


def _request(sentinels: tuple[Sentinel, ...], options: dict[str, Any]) -> AuditRequest:
    taken = dict(options)
    return AuditRequest(
        sentinels=sentinels,
        tasks=tuple(taken.pop("task") or ()),
        policy=make_policy(stale_days=taken.pop("stale_days"), mutants=taken.pop("count_mutants")),
        alerts=AlertRequest(webhook=taken.pop("webhook"), file=taken.pop("alerts_file")),
        **taken,
    )


def _carried_out(request: AuditRequest) -> tuple[AuditReport, bool]:
    """An audit's report, and whether it was interrupted."""
    from harness.api.audit_glance import glance

    over = anyio.run(glance, request)
    if over is not None:
        return over, False
    from harness.api.audits import audit_async
    from harness.cli.execution import watched

    return watched(lambda watch: audit_async(request, watch))


@app.command("status", epilog="Example: assay audit status --suite terminal --plot trend.svg")
def status_(
    suite: SuiteName,
    plot: Annotated[Path | None, typer.Option(help="Draw the trend into this file (PNG, SVG, PDF).")] = None,
    stale_days: StaleDays = STALE_DAYS,
    count_mutants: CountMutants = ALL,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """What is achievable now, what is not and since when, what nearly is not, and the trend. Exits 3 if it should
    alarm."""
    from harness.api.audit_views import status

    if plot is not None:
        require_plots(plot)
    policy = make_policy(stale_days=stale_days, mutants=count_mutants)
    found = status(AuditRequest(suite=suite, policy=policy, store=store))
    if as_json:
        print_json(found)
    else:
        print(status_text(found))
        if found.trend:
            print(f"\n{trend_text(found)}")
    if plot is not None:
        plot_trend(found, plot)
    raise typer.Exit(Exit.ALERT if found.findings else Exit.OK)


@app.command(epilog="Example: assay audit explain csv-join/01 --suite terminal")
def explain(task: TaskId, suite: SuiteName, store: Store = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """What changed between a task's last green and its first red, and which wrong solutions pass."""
    from harness.api.audit_views import explain_task

    found = explain_task(AuditRequest(suite=suite, store=store), task)
    if as_json:
        print_json(found)
    else:
        print(explanation_text(found))


@app.command(epilog="Example: assay audit repair csv-join/01 --suite terminal --reason 'the mirror is back'")
def repair(
    task: TaskId, suite: SuiteName, reason: Reason, store: Store = DEFAULT_STORE, as_json: AsJson = False
) -> None:
    """The task was mended, or is as it should be: measured anew from here. The series breaks; ends a retirement."""
    _decide(DecisionKind.REPAIR, task, suite, reason, store, as_json)


@app.command(epilog="Example: assay audit retire csv-join/01 --suite terminal --reason 'the service was shut down'")
def retire(
    task: TaskId, suite: SuiteName, reason: Reason, store: Store = DEFAULT_STORE, as_json: AsJson = False
) -> None:
    """The task is out from here on, in no denominator. The series breaks; the record stays."""
    _decide(DecisionKind.RETIRE, task, suite, reason, store, as_json)


@app.command(epilog="Example: assay audit accept git-merge/01 --suite terminal --mutant 2 --reason 'only prints more'")
def accept(
    task: TaskId,
    suite: SuiteName,
    reason: Reason,
    mutant: Annotated[str | None, typer.Option(help="Its number or name; the only survivor if not given.")] = None,
    store: Store = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """A surviving mutant is no wrong solution. Holds until the task changes."""
    _decide(DecisionKind.ACCEPT, task, suite, reason, store, as_json, mutant)


def _decide(
    kind: DecisionKind, task: str, suite: str, reason: str, store: str, as_json: bool, mutant: str | None = None
) -> None:
    from harness.api.audit_views import decide

    made = decide(AuditRequest(suite=suite, store=store), kind, task, reason, mutant)
    if as_json:
        print_json(made)
    else:
        print(f"{kind.value:11} {made.task}, version {made.task_version[7:19]}: {made.reason}")
