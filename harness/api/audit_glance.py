"""A targeted audit that is over at a glance: nothing was written since a cycle measured the suite, and nothing is due.

Thousands of tasks are judged by their files' facts, as git judges a working tree, and by the newest table. In doubt the
suite is loaded and fingerprinted (:mod:`harness.api.audits`). This module imports nothing that runs a trial.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path

import harness.formats
from harness import plugins
from harness.api.audit_look import look_at, recent
from harness.api.audit_request import AuditRequest
from harness.api.containers import open_provider
from harness.api.opening import has_store, open_store
from harness.audit.cycle import SOLVERS, Plan, Wanted, plan
from harness.audit.findings import Change, update_alerts
from harness.audit.fingerprint import ENVIRONMENT, tree_stamp
from harness.audit.history import AuditChain, AuditHistory, owned_chain
from harness.audit.sinks import deliver
from harness.audit.table import Judging, Known
from harness.formats.suite import find_suite, locks_around, name_of
from harness.protocols import EvidenceStore
from harness.records.audit import Cycle, Sentinel, Table
from harness.records.audit_views import AuditReport
from harness.records.base import digest_of, sha256_of
from harness.records.task import ImagePin
from harness.runner.journal import utc_now


@dataclass
class Told:
    """What an audit came to, for its report."""

    suite: str
    suite_version: str
    tasks: int
    achievable: int
    plan: Plan
    cycle: Cycle | None = None
    finished: bool = True
    problem: str = ""
    change: Change = field(default_factory=lambda: Change((), (), ()))

    def report(self, undelivered: tuple[str, ...]) -> AuditReport:
        """`undelivered`: what sinks did not take."""
        return AuditReport(
            suite=self.suite,
            suite_version=self.suite_version,
            cycle=self.cycle,
            finished=self.finished,
            audited={task: self.plan.why.get(task, "") for task in sorted(self.plan.audited)},
            notes=dict(self.plan.notes),
            problem=self.problem,
            tasks=self.tasks,
            achievable=self.achievable,
            raised=self.change.raised,
            resolved=self.change.resolved,
            standing=self.change.standing,
            undelivered=undelivered,
        )


async def glance(request: AuditRequest) -> AuditReport | None:
    """The report of a targeted audit for which nothing need be loaded or run; None in doubt. Alerts are raised,
    resolved and delivered, as by any audit. Raises ConfigError, StoreError, EngineUnavailable."""
    if not request.changed or request.tasks or not has_store(request.store):
        return None
    sinks, folder = request.alerts.sinks(), find_suite(request.suite)
    with open_store(request.store) as store, owned_chain(store, name_of(folder)) as chain:
        table = _still_true(folder, store, chain.history)
        told = None if table is None else await _nothing_due(request, table, chain)
        return None if told is None else told.report(deliver(chain, sinks, utc_now()))


def _still_true(folder: Path, store: EvidenceStore, history: AuditHistory) -> Table | None:
    """The newest table, if no file of the suite and no code that reads, solves or grades it was written since."""
    stamp = stamp_of(folder)
    if stamp is None or not history.finished or history.finished[-1].stamp != stamp:
        return None
    table = next(recent(store, history))
    kinds = {(row.fingerprint.grader, row.fingerprint.solver, row.fingerprint.platform) for row in table.rows}
    now = (solver_code() or "")[7:23]
    for grader, solver, platform in kinds:
        if platform == ENVIRONMENT or solver != now or grader != _grader_now(grader):
            return None  # an environment of conversations is code and data of its own: it must be opened
    return table


async def _nothing_due(request: AuditRequest, table: Table, chain: AuditChain) -> Told | None:
    at, policy = utc_now(), request.policy
    fingerprints = {row.task: row.fingerprint for row in table.rows}
    gone = await images_gone({task: found.image for task, found in fingerprints.items()})
    retired = Judging.by(at, policy, chain.history.decisions).retired
    wanted = Wanted(request.sentinels, changed=True, images_gone=gone)
    found = plan(fingerprints, wanted, Known.of([table]), at, policy, retired)
    if found.audited:
        return None
    seen = look_at(chain.history, chain.store, policy, verify=False)
    change = update_alerts(chain, seen.findings, at)
    return Told(table.suite, table.suite_version, seen.counted, seen.achievable, found, change=change)


def _grader_now(known: str) -> str:
    reference = known.partition(" ")[0]
    grader = plugins.load("graders", reference.partition("@")[0])()
    code = plugins.code_digest(grader)
    return f"{grader.id}@{grader.version} {'' if code is None else code[7:23]}"


def solver_code() -> str | None:
    """The digest of the code that carries out reference solutions."""
    return plugins.code_digest(plugins.load("solvers", SOLVERS[Sentinel.GOLD]))


def stamp_of(folder: Path) -> str | None:
    """What tells whether anything was written in a suite, or whether other code reads it; None if nothing does."""
    also = {"assay": version("assay"), "formats": _formats_code()}
    for lock in locks_around(folder):  # a part of a suite is pinned by the lock of the whole
        also[str(lock)] = sha256_of(lock.read_bytes())
    return tree_stamp(folder, also)


@cache
def _formats_code() -> str:
    """A digest of the code that reads suites: other code may read other tasks from the same files."""
    files = sorted(Path(str(harness.formats.__file__)).parent.glob("*.py"))
    return digest_of([file.read_text("utf-8") for file in files])


async def images_gone(images: Mapping[str, str]) -> frozenset[str]:
    """Tasks whose image (a locator, by task) the engine does not have now; each image is asked for once. Raises
    EngineUnavailable."""
    provider = open_provider()
    try:
        there = {one: await provider.image(_pin(one)) is not None for one in set(images.values())}
    finally:
        await provider.close()
    return frozenset(task for task, image in images.items() if not there[image])


def _pin(locator: str) -> ImagePin:
    repository, _, digest = locator.rpartition("@")
    return ImagePin(reference=locator, repository=repository or None, digest=digest)
