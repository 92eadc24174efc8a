"""Grades runs of ours again from what their seals kept: in fresh containers of the recorded digests, without the agent.

The graders are those of a suite as it is now, task by task, or the recorded ones (which shows whether the record can be
reproduced). Nothing of the run's own chains is touched; what happens here is written into streams of its own,
`<trial>.<regrade>`, and the grades are the caller's to keep (:func:`harness.api.regrades_writing.keep_regrade`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass

import anyio

from harness import plugins
from harness.api.containers import open_provider
from harness.api.regrades_writing import next_regrade
from harness.api.wiring import host_env_of, sounds_secret
from harness.billing.account import accountant
from harness.formats.suite import load_suite
from harness.protocols import Grader, SandboxProvider, Solver
from harness.records.base import digest_of
from harness.records.errors import ConfigError
from harness.records.grade import Grade
from harness.records.regrade import Regraded, RegradeHeader
from harness.records.run import RunRow, TrialRow
from harness.records.suite import Suite
from harness.records.task import FileTree, Grading, Task
from harness.records.trial import SolverSpec, TrialPlan
from harness.records.vocabulary import Outcome, Reason
from harness.report.summary import last_attempts
from harness.runner.journal import Journal, utc_now
from harness.runner.redaction import Redactor
from harness.runner.regrading import SealedEvidence, read_seal, regrade_sealed, with_grading
from harness.runner.services import Services
from harness.store.sqlite import SqliteStore
from harness.store.verify import verify_trial

CONCURRENCY = 2
_SHOWN = 3

Notice = Callable[[str], None]


@dataclass(frozen=True)
class ContainerRegrade:
    """What is graded again, and by what. `suite` None: by the recorded tests; `grader`: `id@version` for all tasks."""

    run: str
    suite: str | None = None
    grader: str | None = None
    concurrency: int = CONCURRENCY


def regrade_containers(
    store: SqliteStore, asked: ContainerRegrade, notice: Notice = lambda line: None
) -> tuple[RegradeHeader, tuple[Regraded, ...]]:
    """The last attempt at every slot of a run, graded again: in order of slot, one for each, graded or not.

    Raises ConfigError for a grader or suite that is not there, EngineUnavailable, StoreError.
    """
    return anyio.run(_with_engine, store, asked, notice)


async def _with_engine(
    store: SqliteStore, asked: ContainerRegrade, notice: Notice
) -> tuple[RegradeHeader, tuple[Regraded, ...]]:
    provider = open_provider()
    try:
        await provider.ping()
        return await regrade_with(store, asked, provider, notice)
    finally:
        await provider.close()


async def regrade_with(
    store: SqliteStore, asked: ContainerRegrade, provider: SandboxProvider, notice: Notice = lambda line: None
) -> tuple[RegradeHeader, tuple[Regraded, ...]]:
    """As :func:`regrade_containers`, on a running event loop with an open provider."""
    row = store.run(asked.run)
    if "import" in row.config.extra:
        raise ConfigError(
            f"run {row.run} was imported: no containers of it were sealed here", remedy="regrade it by its episodes"
        )
    current = load_suite(asked.suite, ignore_lock=True) if asked.suite is not None else None
    rows = [trial for trial in last_attempts(store.trials(row.run)) if trial.result is not None]
    plans = {trial.trial: store.planned(trial.trial) for trial in rows}
    judged = {name: _task_to_judge(plan.task, current, asked.grader) for name, plan in plans.items()}
    graders = _find_graders(
        task.grading.grader for task in judged.values() if task is not None and task.conversation is None
    )
    suite = Suite(name=row.config.suite, tasks=tuple({plan.task.id: plan.task for plan in plans.values()}.values()))
    services = _services(store, provider, graders, row, suite)
    made = _Regrading(store, services, next_regrade(store, row.run))
    found: dict[str, Regraded] = {}
    limiter = anyio.CapacityLimiter(asked.concurrency)

    async def carry_out(trial: TrialRow) -> None:
        async with limiter:
            found[trial.trial] = await made.regrade(trial, plans[trial.trial], judged[trial.trial])
            grade = found[trial.trial].grade
            notice(f"{trial.task}: {found[trial.trial].old.value} → {grade.outcome.value} {grade.detail}".rstrip())

    async with AsyncExitStack() as stack:
        stack.enter_context(store.own(row.run))
        async with anyio.create_task_group() as group:
            for trial in rows:
                group.start_soon(carry_out, trial)
    return _header(made, row, current, graders), tuple(found[trial.trial] for trial in rows)


def _task_to_judge(recorded: Task, current: Suite | None, grader: str | None) -> Task | None:
    """The recorded task with the grading to judge by; None where the suite has no such task."""
    if current is None:
        return with_grading(recorded, recorded, grader)
    now = next((task for task in current.tasks if task.id == recorded.id), None)
    return None if now is None else with_grading(recorded, now, grader)


def _find_graders(references: Iterable[str]) -> dict[str, Grader]:
    found: dict[str, Grader] = {}
    for reference in sorted(set(references)):
        name, _, version = reference.rpartition("@")
        grader = plugins.load("graders", name or reference)()
        if name and grader.version != version:
            raise ConfigError(
                f"grader {reference} is asked for, here is {name}@{grader.version}",
                remedy="install the version that provides it",
            )
        found[reference] = grader
    return found


def _services(
    store: SqliteStore, provider: SandboxProvider, graders: dict[str, Grader], row: RunRow, suite: Suite
) -> Services:
    def no_solver(spec: SolverSpec) -> Solver:
        raise AssertionError("a regrade runs no solver")

    host_env = host_env_of(suite)
    secrets = {name: os.environ[name] for name in row.config.secrets if os.environ.get(name)}
    return Services(
        provider=provider,
        store=store,
        solver=no_solver,
        grader=lambda reference: graders[reference],
        account=accountant(lambda model, usage, tier: None),
        price=lambda model, usage, tier: None,
        redactor=Redactor({**{name: host_env[name] for name in host_env if sounds_secret(name)}, **secrets}),
        host_env=host_env,
    )


@dataclass(frozen=True)
class _Regrading:
    store: SqliteStore
    services: Services
    id: str

    async def regrade(self, row: TrialRow, plan: TrialPlan, task: Task | None) -> Regraded:
        assert row.result is not None
        sealed = self._evidence(row)
        old_grader = next((e.payload.get("grader", "") for e in self.store.events(row.trial, ["grade"])), "")
        if task is None or task.conversation is not None:
            detail = f"the suite has no task {plan.task.id}"
            if task is not None:
                detail = (
                    "a conversation has no container: replay it, with --grader conversation@1, from a run of its own"
                )
            grade = Grade(
                grader=plan.task.grading.grader,
                outcome=Outcome.UNGRADED,
                reason=Reason.EVIDENCE_MISSING,
                detail=detail,
            )
        else:
            journal = Journal(self.store, f"{row.trial}.{self.id}", row.attempt, self.services.redactor)
            judged = plan.model_copy(update={"task": task})
            grade = await regrade_sealed(judged, sealed, self.services, journal)
        return Regraded(
            regrade=self.id,
            trial=row.trial,
            task=row.task,
            repeat=row.repeat,
            old=row.result.outcome,
            old_reward=row.result.reward,
            old_grader=old_grader,
            grade=grade,
            evidence=sealed.digest,
            why=what_changed(plan.task.grading, task.grading) if task is not None else "",
        )

    def _evidence(self, row: TrialRow) -> SealedEvidence:
        report = verify_trial(self.store, row.trial)
        if not report.ok:
            return SealedEvidence(
                problem=f"the record is damaged: {report.problems[0]}", reason=Reason.EVIDENCE_DAMAGED
            )
        return read_seal(self.store.events(row.trial))


def what_changed(recorded: Grading, now: Grading) -> str:
    """In what another grading differs from the recorded one, in words; empty when it does not."""
    parts = [
        f"{name} {getattr(recorded, name)!s} → {getattr(now, name)!s}"
        for name in ("grader", "environment", "script", "timeout_s", "pass_at", "user", "artifacts")
        if getattr(recorded, name) != getattr(now, name)
    ]
    changed = _changed_files(recorded.tests, now.tests)
    if changed:
        more = f" and {len(changed) - _SHOWN} more" if len(changed) > _SHOWN else ""
        parts.append(f"tests changed: {', '.join(changed[:_SHOWN])}{more}")
    if recorded.env != now.env:
        parts.append("the tests' variables changed")
    return "; ".join(parts)


def _changed_files(recorded: FileTree, now: FileTree) -> list[str]:
    before, after = recorded.digests(), now.digests()
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


def _header(made: _Regrading, row: RunRow, current: Suite | None, graders: dict[str, Grader]) -> RegradeHeader:
    codes = {reference: plugins.code_digest(grader) or "" for reference, grader in graders.items()}
    whose = f"suite {current.name} as it is now" if current is not None else "as recorded"
    head = ""
    for event in made.store.events(row.run):
        head = event.hash
    return RegradeHeader(
        regrade=made.id,
        grader=", ".join(graders),
        code=next(iter(codes.values())) if len(codes) == 1 else digest_of(codes),
        rule=f"the tests of each task, {whose}, on what was sealed",
        data=current.name if current is not None else "",
        data_digest=current.version if current is not None else row.config.suite_version,
        environment="new containers of the recorded images",
        archive=head,
        at=utc_now(),
    )
