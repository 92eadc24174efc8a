"""Carries out one cycle: a run per sentinel and per number of mutant, then the table and the receipt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from harness.api.audit_request import AuditRequest
from harness.api.audit_state import Instrument
from harness.api.request import RunRequest
from harness.api.runs import Watch, execute
from harness.audit.cycle import SOLVERS, Plan, ended_run, finish_cycle, new_cycle_id
from harness.audit.history import RAN, STARTED, AuditChain
from harness.audit.measure import Measured, measure
from harness.audit.mutants import measure_mutants, most_mutants, mutants_of
from harness.audit.table import Judging, Known, build_rows
from harness.mutations.choose import Mutant
from harness.protocols import EvidenceStore
from harness.records.audit import Cycle, Evidence, Sentinel, SentinelRun
from harness.records.base import digest_of
from harness.records.errors import ConfigError
from harness.records.run import RunRow
from harness.report.summary import RunState, Summary
from harness.runner.journal import utc_now


class CycleRunner:
    """One cycle. Afterwards `cycle` is what the suite's chain says of it, and `problem` why it has no end."""

    def __init__(
        self, request: AuditRequest, made: Instrument, chain: AuditChain, watch: Watch, found: Plan, known: Known
    ) -> None:
        self.request, self.made, self.chain, self.watch, self.plan, self.known = (
            request, made, chain, watch, found, known,
        )  # fmt: skip
        self.problem = ""
        self.machine: dict[str, str] = {}
        started = utc_now()
        self.cycle = Cycle(
            cycle=new_cycle_id(started),
            suite=made.suite.name,
            suite_version=made.suite.version,
            started=started,
            sentinels=request.sentinels,
            scope=found.scope,
            tasks=len(made.suite.tasks),
            audited=len(found.audited),
            stamp=made.stamp,
        )

    async def carry_out(self) -> None:
        self.chain.note(STARTED, self.cycle.plain())
        found: dict[Sentinel, Mapping[str, Evidence]] = {}
        for sentinel in self.request.sentinels:
            tasks = self.plan.tasks[sentinel]
            if not tasks or self.problem:
                continue
            found[sentinel] = await (
                self._mutants(tasks) if sentinel is Sentinel.MUTANT else self._run(sentinel, tasks)
            )
        if self.problem:
            return
        at = utc_now()
        judging = Judging.by(at, self.request.policy, self.chain.history.decisions)
        families = {task.id: task.family for task in self.made.suite.tasks}
        notes = dict(self.plan.notes) | self._unmeasured(found)
        rows = build_rows(self.made.fingerprints, families, found, self.known, judging, notes)
        self.cycle = self.chain.history.cycles[self.cycle.cycle]
        self.cycle = finish_cycle(self.chain, self.cycle, rows, at, self.machine)

    def _unmeasured(self, found: Mapping[Sentinel, Mapping[str, Evidence]]) -> dict[str, str]:
        return {
            task: f"{sentinel.value} could not be measured: the machine or a service failed"
            for sentinel, evidence in found.items()
            for task in self.plan.tasks[sentinel]
            if task not in evidence
        }

    async def _run(self, sentinel: Sentinel, tasks: tuple[str, ...]) -> Mapping[str, Evidence]:
        repeats = self.request.repeat if sentinel is Sentinel.GOLD else 1
        run = await self._executed(sentinel, tasks, repeats=repeats)
        if run is None:
            return {}
        return measure(self.chain.store, run, self.made.tasks, self._digests, self._measured(sentinel))

    async def _mutants(self, tasks: tuple[str, ...]) -> Mapping[str, Evidence]:
        count = self.request.mutants
        tried: dict[str, tuple[Mutant, ...]] = {
            task: mutants_of(self.made.tasks[task], self.request.seed, count) for task in tasks
        }
        runs: dict[int, str] = {}
        for number in range(most_mutants(tried.values())):
            having = tuple(task for task in tasks if len(tried[task]) > number)
            run = await self._executed(Sentinel.MUTANT, having, mutant=number)
            if run is None:
                return {}
            runs[number] = run
        which = self._measured(Sentinel.MUTANT)
        found = measure_mutants(self.chain.store, runs, tried, self.made.tasks, self._digests, which)
        none = {task: self._without(task, which) for task in tasks if not tried[task]}
        return none | found

    def _without(self, task: str, which: Measured) -> Evidence:
        """A task whose solution has no mutant was audited all the same: there was nothing to try."""
        return Evidence(
            sentinel=which.sentinel,
            cycle=which.cycle,
            at=which.at,
            fingerprint=self._digests[task],
            passed=0,
            graded=0,
            attempts=0,
        )

    @property
    def _digests(self) -> dict[str, str]:
        return self.made.digests

    def _measured(self, sentinel: Sentinel) -> Measured:
        return Measured(sentinel, self.cycle.cycle, utc_now())

    async def _executed(
        self, sentinel: Sentinel, tasks: tuple[str, ...], *, repeats: int = 1, mutant: int | None = None
    ) -> str | None:
        """Carry out one run of the cycle; its id, or None when it was cut short, which `problem` then says."""
        request = RunRequest(
            suite=self.request.suite,
            solver=SOLVERS[sentinel],
            solver_options={} if mutant is None else {"mutant": mutant},
            tasks=() if len(tasks) == len(self.made.suite.tasks) else tasks,
            repeats=repeats,
            concurrency=self.request.concurrency,
            retries=self.request.retries,
            seed=self.request.seed,
            keep_mb=0.0,  # nobody grades a sentinel again: it is cheap to run anew
            store=self.request.store,
        )
        which = sentinel.value if mutant is None else f"mutant {mutant}"
        self.watch.notice(f"{which}: {len(tasks)} tasks")
        started: list[SentinelRun] = []

        def created(row: RunRow) -> None:
            self._check_same(row, tasks)
            ran = SentinelRun(
                sentinel=sentinel, mutant=mutant, run=row.run, config_digest=row.config_digest, tasks=len(tasks)
            )
            started.append(ran)
            self._note_run(ran)

        summary = await execute(request, replace(self.watch, created=created))
        self.problem = _cut_short(summary, which)
        if self.problem:
            return None
        self._note_run(ended_run(self.chain.store, started[0]))
        self.machine = self.machine or machine_of(self.chain.store, summary)
        return summary.run

    def _note_run(self, ran: SentinelRun) -> None:
        self.chain.note(RAN, {"cycle": self.cycle.cycle, "run": ran.plain()})

    def _check_same(self, row: RunRow, tasks: tuple[str, ...]) -> None:
        versions = sorted((task, self.made.fingerprints[task].version) for task in tasks)
        if row.config.suite_version != digest_of(versions):
            raise ConfigError(
                f"suite {self.request.suite!r} was changed while it was audited",
                remedy="leave it alone for the length of a cycle, and run it again",
            )


def _cut_short(summary: Summary, which: str) -> str:
    """Why a run did not carry out all its trials, or "". A trial without a grade is a finding, not a cut."""
    if summary.halted is not None:
        return f"{which} halted: {summary.halted}"
    if summary.state in (RunState.INTERRUPTED, RunState.RUNNING):
        return f"{which} was interrupted: {summary.done} of {summary.planned} trials (run {summary.run})"
    return ""


def machine_of(store: EvidenceStore, summary: Summary) -> dict[str, str]:
    """Where a run was carried out, as its first container told."""
    for line in summary.trials:
        for event in store.events(line.trial, ["sandbox.opened"]):
            return {name: str(event.payload.get(name, "")) for name in ("engine", "platform", "kernel")}
    return {}
