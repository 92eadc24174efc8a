"""What a suite is now, and what its audits know of it: read fast, and written nowhere."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from itertools import islice
from pathlib import Path

import harness.formats
from harness import plugins
from harness.api.audit_request import AuditRequest
from harness.api.containers import open_provider
from harness.api.stores import open_store
from harness.api.suites import load_suite, require_locked
from harness.api.wiring import find_graders, find_solver
from harness.audit.cycle import SOLVERS
from harness.audit.findings import Situation, findings, unowned_cycles
from harness.audit.fingerprint import fingerprint, tree_stamp
from harness.audit.history import (
    AuditHistory,
    newest_tables,
    read_history,
    receipt_problems,
    stream_of,
)
from harness.audit.table import Judging, availability
from harness.formats.suite import find_suite, name_of
from harness.protocols import EvidenceStore
from harness.records.audit import AlertKind, Availability, Finding, Fingerprint, Sentinel, Table
from harness.records.base import digest_of
from harness.records.suite import Suite
from harness.records.task import ImagePin, Task
from harness.runner.journal import utc_now

LOOKED_BACK = 20  # cycles in which evidence of a fingerprint is looked for


@dataclass(frozen=True)
class Instrument:
    """A suite as it is now, with the fingerprint of every task."""

    suite: Suite
    fingerprints: Mapping[str, Fingerprint]
    stamp: str

    @property
    def tasks(self) -> dict[str, Task]:
        return {task.id: task for task in self.suite.tasks}

    @property
    def digests(self) -> dict[str, str]:
        return {task: found.digest for task, found in self.fingerprints.items()}

    @property
    def pins(self) -> dict[str, ImagePin]:
        return {task.id: task.image for task in self.suite.tasks}


@dataclass(frozen=True)
class Fast:
    """A suite in which nothing was written since a cycle: that cycle's table is what it is."""

    suite: str
    table: Table

    @property
    def fingerprints(self) -> dict[str, Fingerprint]:
        return {row.task: row.fingerprint for row in self.table.rows}

    @property
    def pins(self) -> dict[str, ImagePin]:
        return {row.task: _pin(row.fingerprint.image) for row in self.table.rows}


def _pin(locator: str) -> ImagePin:
    repository, _, digest = locator.rpartition("@")
    return ImagePin(reference=locator, repository=repository or None, digest=digest)


def instrument(request: AuditRequest) -> Instrument:
    """Load the suite and compute its fingerprints. Raises AssayError; a suite without lock is refused."""
    stamp = _stamp(find_suite(request.suite))  # before it is read: a later change is seen next time
    suite = load_suite(request.suite)
    require_locked(suite)
    graders = {name: plugins.code_digest(grader) for name, grader in find_graders(suite).items()}
    solver = _solver_code()
    found = {task.id: fingerprint(task, graders[task.grading.grader], solver) for task in suite.tasks}
    return Instrument(suite, found, stamp)


def fast_look(request: AuditRequest) -> Fast | None:
    """The newest cycle's table, if a targeted audit may go by it: no file of the suite and no code that reads, solves
    or grades it was written since. None in doubt."""
    if not request.changed or request.tasks or not (Path(request.store) / "evidence.db").exists():
        return None
    folder = find_suite(request.suite)
    with open_store(request.store) as store:
        history = read_history(store, name_of(folder))
        if not history.finished or history.finished[-1].stamp != _stamp(folder):
            return None
        table = next(recent(store, history))
    graders = {row.fingerprint.grader for row in table.rows}
    if any(known != _grader_now(known) for known in graders):
        return None
    solver = _solver_code()
    now = "" if solver is None else solver[7:23]
    return Fast(history.suite, table) if all(row.fingerprint.solver == now for row in table.rows) else None


def _grader_now(known: str) -> str:
    reference = known.partition(" ")[0]
    grader = plugins.load("graders", reference.partition("@")[0])()
    code = plugins.code_digest(grader)
    return f"{grader.id}@{grader.version} {'' if code is None else code[7:23]}"


def _solver_code() -> str | None:
    return find_solver(SOLVERS[Sentinel.GOLD], {}).spec.code_digest


def _stamp(folder: Path) -> str:
    return tree_stamp(folder, {"assay": version("assay"), "formats": _formats_code()})


@cache
def _formats_code() -> str:
    """A digest of the code that reads suites: other code may read other tasks from the same files."""
    files = sorted(Path(str(harness.formats.__file__)).parent.glob("*.py"))
    return digest_of([file.read_text("utf-8") for file in files])


async def images_gone(pins: Mapping[str, ImagePin]) -> frozenset[str]:
    """Tasks whose image the engine does not have now. Raises EngineUnavailable."""
    provider = open_provider()
    try:
        there = {pin.locator: await provider.image(pin) is not None for pin in set_of(pins.values())}
    finally:
        await provider.close()
    return frozenset(task for task, pin in pins.items() if not there[pin.locator])


def set_of(pins: Collection[ImagePin]) -> tuple[ImagePin, ...]:
    """One pin per image."""
    return tuple({pin.locator: pin for pin in pins}.values())


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
    def achievable(self) -> int:
        return sum(found.available for found in self.tasks.values())


def look(request: AuditRequest, *, own: bool = False, verify: bool = True) -> Look:
    """Judge the newest table now. Only `suite`, `policy` and `store` of the request count.

    `own`: the caller owns the suite's chain, so that a cycle without an end is nobody's. Without `verify` the receipt
    is not held against the runs, and what was found broken before stays broken. Raises StoreError, ConfigError.
    """
    name = name_of(find_suite(request.suite))
    with open_store(request.store) as store:
        history = read_history(store, name)
        judging = Judging.by(utc_now(), request.policy, history.decisions)
        table, before = (*islice(recent(store, history), 2), None, None)[:2]
        known_broken = [a.finding.message for a in history.standing.values() if a.finding.kind is AlertKind.EVIDENCE]
        broken = tuple(known_broken)
        if verify:
            broken = receipt_problems(store, history.finished[-1]) if history.finished else ()
        situation = Situation(
            history=history,
            judging=judging,
            table=table,
            before=before,
            unowned=unowned_cycles(history.cycles.values(), busy=not own and store.owned(stream_of(name))),
            broken=broken,
        )
        tasks = availability(table, judging) if table is not None else {}
        return Look(name, history, table, tasks, findings(situation), judging)
