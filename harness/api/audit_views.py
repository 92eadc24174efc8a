"""Reads a suite's audits: its state now, one task explained, and what people decide about tasks."""

from __future__ import annotations

import difflib

from harness.api.audit_glance import stamp_of
from harness.api.audit_look import Look, look, look_at, recent
from harness.api.audit_request import AuditRequest
from harness.api.ceilings import achievable_estimate
from harness.api.opening import open_store
from harness.audit.cycle import SOLVERS
from harness.audit.explain import explain
from harness.audit.findings import update_alerts
from harness.audit.history import DECIDED, AuditHistory, owned_chain
from harness.audit.score import score_run
from harness.audit.series import series_of, trend
from harness.formats.suite import find_suite
from harness.protocols import EvidenceStore
from harness.records.audit import (
    Cause,
    Decision,
    DecisionKind,
    Survivor,
    TableRow,
)
from harness.records.audit_views import AuditStatus, Explanation, ScorePoint
from harness.records.errors import ConfigError
from harness.runner.journal import utc_now

MOST_RUNS = 30  # on the trend of scores


def status(request: AuditRequest, *, scores: bool = True) -> AuditStatus:
    """What is achievable now, what is not and since when, and how that came. Only `suite`, `policy` and `store` of the
    request count. Raises StoreError, ConfigError."""
    seen = look(request)
    history = seen.history
    series = series_of(history)
    out = [found for found in seen.tasks.values() if not found.available and found.cause is not Cause.RETIRED]
    rows = seen.table.rows if seen.table is not None else ()
    with open_store(request.store) as store:
        points = _scores(store, seen, request) if scores else ()
    return AuditStatus(
        suite=seen.suite,
        suite_version=seen.table.suite_version if seen.table else None,
        cycle=history.finished[-1] if history.finished else None,
        tasks=seen.counted,
        achievable=seen.achievable,
        unavailable=tuple(out),
        retired=tuple(sorted(seen.judging.retired)),
        at_risk=tuple(found for found in seen.tasks.values() if found.available and found.at_risk),
        oldest_gold=min((row.gold.at for row in rows if row.gold is not None), default=None),
        findings=seen.findings,
        standing=tuple(history.standing.values()),
        survivors={row.task: left for row in rows if (left := seen.judging.unaccepted(row))},
        trend=trend(history, series),
        scores=points,
        breaks=series.breaks,
        decisions=tuple(history.decisions),
        written_since=_written_since(request, history),
    )


def _written_since(request: AuditRequest, history: AuditHistory) -> bool | None:
    """Whether the newest cycle measured other files than there are now; None where their times tell nothing: they were
    seconds old then, or are now."""
    if not history.finished:
        return False
    then, now = history.finished[-1].stamp, stamp_of(find_suite(request.suite))
    return None if then is None or now is None else then != now


def _scores(store: EvidenceStore, seen: Look, request: AuditRequest) -> tuple[ScorePoint, ...]:
    """The last runs of agents on the suite, on both denominators."""
    series = series_of(seen.history)
    rows = [row for row in store.runs() if row.config.suite == seen.suite]
    agents = [row for row in rows if row.config.solver.name not in SOLVERS.values()]
    points = []
    for row in agents[-MOST_RUNS:]:
        found = score_run(row.run, store, request.policy, achievable_estimate)
        if found.raw_score is not None:
            points.append(
                ScorePoint(
                    run=row.run,
                    agent=found.agent,
                    at=row.created,
                    series=series.number(row.created),
                    raw=found.raw_score,
                    achievable=found.score,
                )
            )
    return tuple(points)


def explain_task(request: AuditRequest, task: str) -> Explanation:
    """What changed between a task's last green and its first red. Raises ConfigError for an unknown task."""
    seen = look(request)
    _known(seen, task)
    with open_store(request.store) as store:
        return explain(task, seen.tasks[task], recent(store, seen.history), store, seen.history)


def decide(request: AuditRequest, kind: DecisionKind, task: str, reason: str, mutant: str | None = None) -> Decision:
    """Write down what a person decided about a task as it is in the newest cycle. `mutant`: number, name or digest of
    the survivor to accept; the only one when None. Raises ConfigError."""
    if not reason.strip():
        raise ConfigError("no reason", remedy="say why with --reason: it stays in the record")
    seen = look(request)
    row = _known(seen, task)
    if kind is DecisionKind.RETIRE and task in seen.judging.retired:
        raise ConfigError(f"{task} is retired already", remedy="assay audit repair brings it back")
    digest = _survivor(seen, row, mutant).digest if kind is DecisionKind.ACCEPT else None
    with open_store(request.store) as store, owned_chain(store, seen.suite) as chain:
        decision = Decision(
            kind=kind,
            task=task,
            task_version=row.fingerprint.version,
            reason=reason.strip(),
            at=utc_now(),
            mutant=digest,
        )
        chain.note(DECIDED, decision.plain())
        made = chain.history.decisions[-1]
        found = look_at(chain.history, store, request.policy).findings
        update_alerts(chain, found, utc_now())  # sinks hear of it with the next audit
        return made


def _known(seen: Look, task: str) -> TableRow:
    rows = {row.task: row for row in seen.table.rows} if seen.table is not None else {}
    if task in rows:
        return rows[task]
    near = difflib.get_close_matches(task, rows, n=3)
    listed = "`assay suite list` names them" if rows else f"audit the suite first: assay audit all --suite {seen.suite}"
    remedy = f"near: {', '.join(near)}" if near else listed
    raise ConfigError(f"no task {task!r} in the last audit of {seen.suite}", remedy=remedy)


def _survivor(seen: Look, row: TableRow, asked: str | None) -> Survivor:
    left = seen.judging.unaccepted(row)
    found = [
        one for one in left if asked in (None, str(one.number), one.name) or one.digest[7:].startswith(asked or "")
    ]
    if len(found) == 1:
        return found[0]
    if not left:
        raise ConfigError(f"no mutant of {row.task} survives", remedy="there is nothing to accept")
    known = "; ".join(f"{one.number}: {one.name}" for one in left)
    raise ConfigError(f"which mutant of {row.task}?", place="--mutant", remedy=f"give its number: {known}")
