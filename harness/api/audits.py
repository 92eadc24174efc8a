"""Runs audit cycles and reads what they found. A scheduler calls :func:`audit_async` and :func:`check_alerts`."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field, replace

import anyio

from harness.api.audit_cycle import CycleRunner
from harness.api.audit_request import AuditRequest
from harness.api.audit_state import Fast, Instrument, fast_look, images_gone, instrument, look, recent
from harness.api.runs import Watch
from harness.api.stores import open_store
from harness.audit.cycle import Plan, Wanted, plan
from harness.audit.findings import Change, update_alerts
from harness.audit.history import AuditChain, owned_chain
from harness.audit.sinks import deliver
from harness.audit.table import Judging, Known
from harness.formats.suite import find_suite, name_of, select
from harness.records.audit import Cycle
from harness.records.audit_views import AuditReport
from harness.runner.journal import utc_now


def audit(request: AuditRequest, watch: Watch | None = None) -> AuditReport:
    """Carry out one cycle (or find that none is due). Raises AssayError before anything is run, StoreError later."""
    return anyio.run(audit_async, request, watch or Watch())


async def audit_async(request: AuditRequest, watch: Watch) -> AuditReport:
    """As :func:`audit`, on a running event loop. Alerts are raised, resolved and delivered before it returns."""
    sinks = request.alerts.sinks()
    with ExitStack() as stack:
        fast = fast_look(request)
        made = None if fast is not None else instrument(request)
        store = stack.enter_context(open_store(request.store, create=True))
        name = fast.suite if fast is not None else _suite_name(made)
        chain = stack.enter_context(owned_chain(store, name))
        at = utc_now()
        if fast is not None:
            nothing_due = await _fast(request, fast, chain, at)
            if nothing_due is not None:
                return _report(request, chain, nothing_due, sinks_problems=deliver(chain, sinks, at))
        made = made or instrument(request)
        told = await _cycle(request, made, chain, watch)
        return _report(request, chain, told, sinks_problems=deliver(chain, sinks, utc_now()))


def _suite_name(made: Instrument | None) -> str:
    assert made is not None
    return made.suite.name


def check_alerts(request: AuditRequest) -> Change:
    """Look at a suite's audits without running anything: what is stale or absent is raised, what waits is delivered.

    Only `suite`, `policy`, `alerts` and `store` of the request count. Raises AssayError.
    """
    name, sinks = name_of(find_suite(request.suite)), request.alerts.sinks()
    with open_store(request.store) as store, owned_chain(store, name) as chain:
        change = update_alerts(chain, look(request, own=True).findings, utc_now())
        return replace(change, undelivered=deliver(chain, sinks, utc_now()))


@dataclass
class _Told:
    """What happened, for the report."""

    suite: str
    suite_version: str
    tasks: int
    achievable: int
    plan: Plan
    cycle: Cycle | None = None
    finished: bool = True
    problem: str = ""
    change: Change = field(default_factory=lambda: Change((), (), ()))


def _report(request: AuditRequest, chain: AuditChain, told: _Told, sinks_problems: tuple[str, ...]) -> AuditReport:
    return AuditReport(
        suite=told.suite,
        suite_version=told.suite_version,
        cycle=told.cycle,
        finished=told.finished,
        audited={task: told.plan.why.get(task, "") for task in sorted(told.plan.audited)},
        notes=dict(told.plan.notes),
        problem=told.problem,
        tasks=told.tasks,
        achievable=told.achievable,
        raised=told.change.raised,
        resolved=told.change.resolved,
        standing=told.change.standing,
        undelivered=sinks_problems,
    )


async def _fast(request: AuditRequest, fast: Fast, chain: AuditChain, at: str) -> _Told | None:
    """A targeted audit of a suite in which nothing was written: over at once, unless something is due after all."""
    known = Known.of([fast.table])
    judging = Judging.by(at, request.policy, chain.history.decisions)
    gone = await images_gone(fast.pins)
    wanted = Wanted(request.sentinels, changed=True, images_gone=gone)
    found = plan(fast.fingerprints, wanted, known, at, request.policy, judging.retired)
    if found.audited:
        return None
    seen = look(request, own=True, verify=False)
    change = update_alerts(chain, seen.findings, at)
    return _Told(fast.suite, fast.table.suite_version, len(fast.table.rows), seen.achievable, found, change=change)


async def _cycle(request: AuditRequest, made: Instrument, chain: AuditChain, watch: Watch) -> _Told:
    suite, at = made.suite, utc_now()
    known = Known.of(recent(chain.store, chain.history))
    judging = Judging.by(at, request.policy, chain.history.decisions)
    only = frozenset(task.id for task in select(suite, request.tasks).tasks) if request.tasks else None
    gone = await images_gone(made.pins) if request.changed else frozenset()
    found = plan(
        made.fingerprints,
        Wanted(request.sentinels, only, request.changed, gone),
        known,
        at,
        request.policy,
        judging.retired,
    )
    before = next(iter(recent(chain.store, chain.history)), None)
    told = _Told(suite.name, suite.version, len(suite.tasks), 0, found)
    if found.audited or before is None or before.suite_version != suite.version:
        runner = CycleRunner(request, made, chain, watch, found, known)
        await runner.carry_out()
        told = replace(told, cycle=runner.cycle, finished=runner.problem == "", problem=runner.problem)
    seen = look(request, own=True)
    told.achievable = seen.achievable
    told.change = update_alerts(chain, seen.findings, utc_now())
    return told
