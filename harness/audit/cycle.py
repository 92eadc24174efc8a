"""The pure steps of a cycle: which tasks each sentinel has to run, and how a cycle is written down.

The runs themselves are ordinary runs, carried out by whoever calls (:mod:`harness.api.audits`).
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from harness.audit.history import FINISHED, AuditChain
from harness.audit.table import Due, Known, due
from harness.protocols import EvidenceStore
from harness.records.audit import (
    Cause,
    Cycle,
    Fingerprint,
    Policy,
    Receipt,
    Sentinel,
    SentinelRun,
    Table,
    TableRow,
)

SOLVERS: Mapping[Sentinel, str] = {Sentinel.GOLD: "reference", Sentinel.NULL: "noop", Sentinel.MUTANT: "mutated"}


@dataclass(frozen=True)
class Plan:
    """Tasks by sentinel, in the suite's order, and why each is run; notes on those that need not be."""

    tasks: Mapping[Sentinel, tuple[str, ...]]
    why: Mapping[str, str]
    notes: Mapping[str, str]
    scope: str

    @property
    def audited(self) -> frozenset[str]:
        return frozenset(task for tasks in self.tasks.values() for task in tasks)


@dataclass(frozen=True)
class Wanted:
    """What was asked for: sentinels, a part of the suite (or None), only what changed; images known to be gone."""

    sentinels: tuple[Sentinel, ...]
    only: frozenset[str] | None = None
    changed: bool = False
    images_gone: frozenset[str] = frozenset()


def plan(
    fingerprints: Mapping[str, Fingerprint],
    wanted: Wanted,
    known: Known,
    at: str,
    policy: Policy,
    retired: Collection[str],
) -> Plan:
    """Who runs what. Retired tasks are not run unless they are named."""
    tasks: dict[Sentinel, tuple[str, ...]] = {}
    why: dict[str, str] = {}
    notes: dict[str, str] = {}
    pool = [task for task in fingerprints if (task not in retired if wanted.only is None else task in wanted.only)]
    for sentinel in wanted.sentinels:
        if not wanted.changed:
            tasks[sentinel] = tuple(pool)
            continue
        found = _targets(fingerprints, sentinel, known, at, policy, wanted.images_gone)
        tasks[sentinel] = tuple(task for task in pool if task in found.why)
        why |= {task: reason for task, reason in found.why.items() if task in tasks[sentinel] and task not in why}
        notes |= {task: note for task, note in found.back.items() if task in pool}
    scope = "changed" if wanted.changed else "full" if wanted.only is None else "part"
    return Plan(tasks, why, notes, scope)


def _targets(
    fingerprints: Mapping[str, Fingerprint],
    sentinel: Sentinel,
    known: Known,
    at: str,
    policy: Policy,
    images_gone: frozenset[str],
) -> Due:
    found = due(fingerprints, sentinel, known, at, policy)
    if sentinel is not Sentinel.GOLD:
        return found
    gone = {task: "image missing" for task in images_gone if task in fingerprints}
    why = gone | dict(found.why)
    return Due(tuple(why), why, found.back)


def new_cycle_id(at: str) -> str:
    """Sortable by time, unique by chance."""
    return f"cycle-{datetime.fromisoformat(at):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


def ended_run(store: EvidenceStore, ran: SentinelRun) -> SentinelRun:
    """A run of a cycle with the end of its stream: what the receipt binds."""
    events = tuple(store.events(ran.run))
    return ran.model_copy(update={"events": events[-1].seq + 1, "head": events[-1].hash})


def finish_cycle(
    chain: AuditChain, cycle: Cycle, rows: tuple[TableRow, ...], at: str, machine: Mapping[str, str]
) -> Cycle:
    """Write the table, the receipt that binds it to the runs, and the cycle's end."""
    table = Table(cycle=cycle.cycle, suite=cycle.suite, suite_version=cycle.suite_version, at=at, rows=rows)
    table_digest = chain.put(table)
    receipt = Receipt(
        cycle=cycle.cycle,
        suite=cycle.suite,
        suite_version=cycle.suite_version,
        started=cycle.started,
        finished=at,
        runs=cycle.runs,
        table=table_digest,
        machine=dict(machine),
    )
    causes: dict[Cause, int] = {}
    for row in rows:
        if row.cause is not None:
            causes[row.cause] = causes.get(row.cause, 0) + 1
    finished = cycle.model_copy(
        update={
            "finished": at,
            "achievable": sum(row.cause is None for row in rows),
            "causes": causes,
            "table": table_digest,
            "receipt": chain.put(receipt),
        }
    )
    blobs = {"table": table_digest, "receipt": finished.receipt or ""}
    chain.note(FINISHED, finished.plain(), blobs)
    return finished
