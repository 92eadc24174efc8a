"""What is known of a suite now: the newest table of its audits, judged. Read only, and without what runs trials."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from harness.api.audit_request import AuditRequest
from harness.api.opening import open_store
from harness.audit.findings import Situation, findings, unowned_cycles
from harness.audit.history import AuditHistory, newest_tables, read_history, receipt_problems, stream_of
from harness.audit.table import Judging
from harness.formats.suite import find_suite, name_of
from harness.protocols import EvidenceStore
from harness.records.audit import AlertKind, Availability, Finding, Policy, Table
from harness.runner.journal import utc_now

LOOKED_BACK = 20  # cycles in which evidence of a fingerprint is looked for


def recent(store: EvidenceStore, history: AuditHistory) -> Iterator[Table]:
    """Tables of the last cycles, newest first."""
    return islice(newest_tables(store, history.finished), LOOKED_BACK)


@dataclass(frozen=True)
class Look:
    """What is known of a suite now."""

    suite: str
    history: AuditHistory
    table: Table | None
    tasks: Mapping[str, Availability]
    findings: tuple[Finding, ...]
    judging: Judging

    @property
    def counted(self) -> int:
        """Tasks that are not retired."""
        return len(self.tasks.keys() - self.judging.retired)

    @property
    def achievable(self) -> int:
        return sum(found.available for found in self.tasks.values())


def look(request: AuditRequest) -> Look:
    """Judge the newest table now, and hold its receipt against the runs. Only `suite`, `policy` and `store` of the
    request count. Raises StoreError, ConfigError."""
    name = name_of(find_suite(request.suite))
    with open_store(request.store) as store:
        history = read_history(store, name)
        return look_at(history, store, request.policy, busy=store.owned(stream_of(name)))


def look_at(
    history: AuditHistory, store: EvidenceStore, policy: Policy, *, busy: bool = False, verify: bool = True
) -> Look:
    """As :func:`look`, of a history that is read already. `busy`: somebody else may be carrying out a cycle now.

    Without `verify` the receipt is not held against the runs, and what was found broken before stays broken.
    """
    judging = Judging.by(utc_now(), policy, history.decisions)
    table, before = (*islice(recent(store, history), 2), None, None)[:2]
    broken = tuple(a.finding.message for a in history.standing.values() if a.finding.kind is AlertKind.EVIDENCE)
    if verify:
        broken = receipt_problems(store, history.finished[-1]) if history.finished else ()
    situation = Situation(
        history=history,
        judging=judging,
        table=table,
        before=before,
        unowned=unowned_cycles(history.cycles.values(), busy=busy),
        broken=broken,
    )
    return Look(history.suite, history, table, situation.tasks, findings(situation), judging)
