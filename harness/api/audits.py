"""Runs audit cycles and reads what they found. A scheduler calls :func:`audit_async` and :func:`check_alerts`."""

from __future__ import annotations

from dataclasses import replace

import anyio

from harness.api.audit_cycle import CycleRunner
from harness.api.audit_glance import Told, glance, images_gone
from harness.api.audit_look import look_at, recent
from harness.api.audit_request import AuditRequest
from harness.api.audit_state import Instrument, instrument
from harness.api.opening import open_store
from harness.api.runs import Watch
from harness.audit.cycle import Wanted, plan
from harness.audit.findings import Change, update_alerts
from harness.audit.history import LOOKED, AuditChain, owned_chain
from harness.audit.sinks import deliver
from harness.audit.table import Judging, Known
from harness.formats.suite import find_suite, name_of, select
from harness.records.audit_views import AuditReport
from harness.runner.journal import utc_now


def audit(request: AuditRequest, watch: Watch | None = None) -> AuditReport:
    """Carry out one cycle (or find that none is due). Raises AssayError before anything is run, StoreError later."""
    return anyio.run(audit_async, request, watch or Watch())


async def audit_async(request: AuditRequest, watch: Watch) -> AuditReport:
    """As :func:`audit`, on a running event loop. Alerts are raised, resolved and delivered before it returns."""
    over = await glance(request)
    if over is not None:
        return over
    sinks = request.alerts.sinks()
    made = instrument(request)
    with open_store(request.store, create=True) as store, owned_chain(store, made.suite.name) as chain:
        told = await _cycle(request, made, chain, watch)
        return told.report(deliver(chain, sinks, utc_now()))


def check_alerts(request: AuditRequest) -> Change:
    """Look at a suite's audits without running anything: what is stale or absent is raised, what waits is delivered.

    Only `suite`, `policy`, `alerts` and `store` of the request count. Raises AssayError.
    """
    name, sinks = name_of(find_suite(request.suite)), request.alerts.sinks()
    with open_store(request.store) as store, owned_chain(store, name) as chain:
        change = update_alerts(chain, look_at(chain.history, chain.store, request.policy).findings, utc_now())
        return replace(change, undelivered=deliver(chain, sinks, utc_now()))


async def _cycle(request: AuditRequest, made: Instrument, chain: AuditChain, watch: Watch) -> Told:
    suite, at = made.suite, utc_now()
    known = Known.of(recent(chain.store, chain.history))
    judging = Judging.by(at, request.policy, chain.history.decisions)
    only = frozenset(task.id for task in select(suite, request.tasks).tasks) if request.tasks else None
    gone = await images_gone(made.images) if request.changed else frozenset()
    found = plan(
        made.fingerprints,
        Wanted(request.sentinels, only, request.changed, gone),
        known,
        at,
        request.policy,
        judging.retired,
    )
    before = next(iter(recent(chain.store, chain.history)), None)
    told = Told(suite.name, suite.version, 0, 0, found)
    if found.audited or before is None or {row.task: row.fingerprint for row in before.rows} != made.fingerprints:
        runner = CycleRunner(request, made, chain, watch, found, known)
        await runner.carry_out()
        told = replace(told, cycle=runner.cycle, finished=runner.problem == "", problem=runner.problem)
    elif made.stamp is not None:
        chain.note(LOOKED, {"cycle": before.cycle, "stamp": made.stamp})
    seen = look_at(chain.history, chain.store, request.policy)
    told.tasks, told.achievable = seen.counted, seen.achievable
    told.change = update_alerts(chain, seen.findings, utc_now())
    return told
