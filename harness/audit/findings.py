"""What a cycle, or the lack of one, has to tell: typed findings, raised once per change, resolved when they clear."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from harness.audit.amounts import amount
from harness.audit.history import RAISED, RESOLVED, AuditChain, AuditHistory, seconds_between
from harness.audit.table import DAY_S, Judging, availability
from harness.records.audit import (
    CAUSE_TEXT,
    Alert,
    AlertKind,
    Availability,
    Cause,
    Cycle,
    DecisionKind,
    Finding,
    Table,
    TableRow,
)
from harness.records.base import digest_of

_ALERT_OF = {Cause.NULL_PASSED: AlertKind.NULL_PASSED, Cause.MUTANT_PASSED: AlertKind.MUTANT_PASSED}


@dataclass(frozen=True)
class Situation:
    """What findings are made of: the newest table and the one before it, both judged now, and the whole history."""

    history: AuditHistory
    judging: Judging
    table: Table | None
    before: Table | None = None
    unowned: frozenset[str] = frozenset()  # cycles that no live process is carrying out
    broken: tuple[str, ...] = ()  # what a receipt no longer vouches for

    @cached_property
    def tasks(self) -> dict[str, Availability]:
        """Every task of the newest table, judged."""
        return availability(self.table, self.judging) if self.table is not None else {}


def findings(situation: Situation) -> tuple[Finding, ...]:
    """Everything that is to be told now."""
    found: list[Finding] = [*_cycles(situation), *_evidence(situation)]
    if situation.table is not None:
        found += [*_rates(situation, situation.tasks), *_tasks(situation.table, situation.tasks)]
        found += _drifts(situation, situation.table.rows)
    found += _gold(situation)
    return tuple(found)


def rate_of(tasks: Mapping[str, Availability]) -> tuple[int, int]:
    """Tasks found unavailable, and all that were looked at: absent and stale gold have alerts of their own."""
    unseen = (Cause.RETIRED, Cause.NEVER, Cause.STALE)
    kept = [found for found in tasks.values() if found.cause not in unseen]
    return sum(not found.available for found in kept), len(kept)


def _rates(situation: Situation, tasks: Mapping[str, Availability]) -> Iterator[Finding]:
    policy, suite = situation.judging.policy, situation.history.suite
    out, of = rate_of(tasks)
    share = out / of if of else 0.0
    cycle = situation.table.cycle if situation.table else None
    if share > policy.most_unavailable:
        yield Finding(
            kind=AlertKind.RATE,
            subject=suite,
            message=f"{out} of {of} audited tasks are unavailable ({100 * share:.1f} %, at most"
            f" {100 * policy.most_unavailable:g} % is allowed)",
            cycle=cycle,
        )
    if situation.before is None:
        return
    out_before, of_before = rate_of(availability(situation.before, _then(situation.judging, situation.before)))
    share_before = out_before / of_before if of_before else 0.0
    if share - share_before > policy.largest_jump:
        yield Finding(
            kind=AlertKind.JUMP,
            subject=suite,
            message=f"unavailable tasks rose from {100 * share_before:.1f} % to {100 * share:.1f} % between two cycles:"
            " the instrument or the machine changed, not an agent",
            state=cycle or "",
            cycle=cycle,
        )


def _then(judging: Judging, table: Table) -> Judging:
    return Judging(table.at, judging.policy, judging.retired, judging.accepted)


def _tasks(table: Table, tasks: Mapping[str, Availability]) -> Iterator[Finding]:
    for name, found in tasks.items():
        cause = found.cause
        if cause is not None and cause not in (Cause.NEVER, Cause.STALE, Cause.RETIRED):
            yield Finding(
                kind=_ALERT_OF.get(cause, AlertKind.GOLD_FAILED),
                subject=name,
                message=f"{name}: {CAUSE_TEXT[cause]}; {found.detail}".rstrip("; "),
                state=cause.value,
                cycle=table.cycle,
                trials=found.trials,
            )
        if cause is None and found.at_risk:
            near = ", ".join(
                f"{100 * use.share:.0f} % of its {use.name} ({amount(use.used, use.unit)} of"
                f" {amount(use.limit, use.unit)})"
                for use in found.at_risk
            )
            yield Finding(
                kind=AlertKind.AT_RISK,
                subject=name,
                message=f"{name}: gold uses {near}",
                state=" ".join(use.name for use in found.at_risk),
                cycle=table.cycle,
                trials=found.trials,
            )


def _gold(situation: Situation) -> Iterator[Finding]:
    """Gold that is absent or stale: a frozen ceiling looks like a sound one."""
    suite, judging = situation.history.suite, situation.judging
    rows = situation.table.rows if situation.table is not None else ()
    rows = tuple(row for row in rows if row.task not in judging.retired)
    ages = [row.gold.at for row in rows if row.gold is not None]
    absent = [row.task for row in rows if row.gold is None or row.null is None]
    if not rows or not ages:
        yield Finding(kind=AlertKind.GOLD_ABSENT, subject=suite, message=f"no gold run of {suite} is on record")
        return
    if absent:
        lacking = [
            f"{count} no {name} run"
            for name, count in (
                ("gold", sum(row.gold is None for row in rows)),
                ("null", sum(row.null is None for row in rows)),
            )
            if count
        ]
        named = ", ".join(absent[:5]) + (f" and {len(absent) - 5} more" if len(absent) > 5 else "")
        yield Finding(
            kind=AlertKind.GOLD_ABSENT,
            subject=suite,
            message=f"of {len(rows)} tasks, as they are, {' and '.join(lacking)}: {named};"
            " `assay audit all` makes them",
            state=digest_of(absent)[7:19],
        )
    stale = [at for at in ages if seconds_between(at, judging.at) > judging.policy.stale_days * DAY_S]
    if stale:
        yield Finding(
            kind=AlertKind.GOLD_STALE,
            subject=suite,
            message=f"gold of {len(stale)} tasks is older than {judging.policy.stale_days:g} days, the oldest of"
            f" {min(stale)[:10]}",
        )


def _cycles(situation: Situation) -> Iterator[Finding]:
    """Cycles that were cut short, until another one comes to its end."""
    ended = max((cycle.seq for cycle in situation.history.finished), default=-1)
    for cycle in situation.history.cycles.values():
        if cycle.finished is None and cycle.cycle in situation.unowned and cycle.seq > ended:
            yield Finding(
                kind=AlertKind.UNFINISHED,
                subject=cycle.cycle,
                message=f"cycle {cycle.cycle} of {cycle.started[:16]} did not come to its end: run it again",
                cycle=cycle.cycle,
            )


def _evidence(situation: Situation) -> Iterator[Finding]:
    if situation.broken:
        told = "; ".join(situation.broken)
        yield Finding(kind=AlertKind.EVIDENCE, subject=situation.history.suite, message=told, state=told)


def _drifts(situation: Situation, rows: Iterable[TableRow]) -> Iterator[Finding]:
    """Instruction and check that parted ways, until a person's `repair` says that they go together."""
    blessed = {(one.task, one.task_version) for one in situation.history.decisions if one.kind is DecisionKind.REPAIR}
    for row in rows:
        version = row.fingerprint.version
        if row.drift and row.task not in situation.judging.retired and (row.task, version) not in blessed:
            yield Finding(
                kind=AlertKind.WORDING,
                subject=row.task,
                message=f"{row.task}: {row.drift}: do they still ask and check the same? `assay audit repair` says so",
                state=version[7:19],
            )


@dataclass(frozen=True)
class Change:
    """What a look at the findings changed."""

    raised: tuple[Alert, ...]
    resolved: tuple[Alert, ...]
    standing: tuple[Alert, ...]
    undelivered: tuple[str, ...] = ()  # what sinks did not take, to be sent again


def update_alerts(chain: AuditChain, found: Iterable[Finding], at: str) -> Change:
    """Raise what is new or has changed, resolve what is gone; each once."""
    standing = dict(chain.history.standing)
    raised, resolved = [], []
    current = {finding.key: finding for finding in found}
    for key, alert in standing.items():
        if key not in current or current[key].state != alert.finding.state:
            chain.note(RESOLVED, {"id": alert.id, "at": at})
            resolved.append(chain.history.alerts[alert.id])
    for key, finding in current.items():
        known = standing.get(key)
        if known is None or known.finding.state != finding.state:
            identity = digest_of([chain.history.suite, finding.key, finding.state, at])[7:31]
            alert = Alert(id=identity, finding=finding, raised=at)
            chain.note(RAISED, alert.plain())
            raised.append(alert)
    return Change(tuple(raised), tuple(resolved), tuple(chain.history.standing.values()))


def unowned_cycles(cycles: Iterable[Cycle], *, busy: bool) -> frozenset[str]:
    """Cycles without an end that nobody is carrying out: all of them, unless the suite's chain is owned now."""
    return frozenset() if busy else frozenset(cycle.cycle for cycle in cycles if cycle.finished is None)
