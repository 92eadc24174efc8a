"""Starts a run and takes one up again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from datetime import datetime

import anyio

from harness.api.adaptive import engine_for
from harness.api.ceilings import ceiling_of
from harness.api.containers import open_provider
from harness.api.environments import needs_containers
from harness.api.leftovers import taken_up
from harness.api.preflight import check_sources
from harness.api.preparation import Preparation, check_same, new_row, prepare, resolved, run_bank, versions
from harness.api.request import DEFAULT_STORE, RunRequest, make_request
from harness.api.schedule_slots import budget_of
from harness.api.stores import estimate_of, open_store
from harness.api.wiring import Parts, make_model, make_services
from harness.gateway.openai import OpenAIChat
from harness.protocols import EvidenceStore
from harness.records.errors import ConfigError
from harness.records.run import RunConfig, RunRow
from harness.records.task import Task
from harness.report.summary import Summary, summarise
from harness.runner.journal import Journal
from harness.runner.progress import Observer, Tally, notice
from harness.runner.recovery import new_schedule, restored_schedule
from harness.runner.run import RESUMED, STARTED, Run, RunControl
from harness.runner.schedule import Schedule
from harness.runner.services import Services
from harness.sandbox.provider import DockerSandboxProvider
from harness.store.sqlite import SqliteStore


@dataclass(frozen=True)
class Watch:
    """Who looks on while a run goes, and how it is interrupted."""

    observer: Observer | None = None
    control: RunControl | None = None
    warn: Callable[[str], None] | None = None  # told what is odd about the run before it begins; it is recorded too
    created: Callable[[RunRow], None] | None = None  # told of a new run once it is stored, before anything is started

    def notice(self, message: str) -> None:
        """Tell the observer, if there is one, what is being done."""
        if self.observer is not None:
            self.observer(notice(message))

    def warning(self, note: str) -> None:
        """Tell what is odd to whoever wants to know."""
        if self.warn is not None:
            self.warn(note)


def run(request: RunRequest, watch: Watch | None = None) -> Summary:
    """Carry out a run and return its summary. Raises AssayError before anything is spent, StoreError later."""
    return anyio.run(execute, request, watch or Watch())


def resume(run_id: str, store: str = DEFAULT_STORE, watch: Watch | None = None) -> Summary:
    """Carry out what a stored run still lacks: planned minus passed and failed. Raises AssayError."""
    return anyio.run(resume_async, run_id, store, watch or Watch())


async def execute(request: RunRequest, watch: Watch) -> Summary:
    """As :func:`run`, on a running event loop."""
    async with AsyncExitStack() as stack:
        watch.notice(f"loading suite {request.suite}")
        check_sources(request)
        prepared = prepare(resolved(request), stack.enter_context(ExitStack()))
        reached = await _reach(prepared, stack)
        if prepared.request.adaptive is not None and prepared.request.adaptive.history:
            watch.notice("calibrating the items on past runs")
        bank = run_bank(prepared)
        # All that can be known beforehand is known: only now is anything made.
        store = stack.enter_context(open_store(request.store, create=True))
        row = new_row(prepared, bank, store)
        for note in row.config.extra["notes"]:
            watch.warning(note)
        await _carry_out(row, _Stage(prepared, reached, store, watch), _new_schedule(row.config, store))
        return summarise(store, row.run, estimate_of, ceiling_of)


async def resume_async(run_id: str, store_folder: str, watch: Watch) -> Summary:
    """As :func:`resume`, on a running event loop."""
    async with AsyncExitStack() as stack:
        store = stack.enter_context(open_store(store_folder))
        row = store.run(run_id)
        if "import" in row.config.extra:
            raise ConfigError(
                f"run {row.run} was imported: there is nothing here to carry out the rest with",
                remedy="run it where it came from, then import it again",
            )
        request = make_request(row.config.extra["request"], f"run {row.run}")
        began = datetime.fromisoformat(row.created).date()
        prepared = prepare(request.model_copy(update={"store": store_folder}), stack.enter_context(ExitStack()), began)
        check_same(row.config, prepared)
        reached = await _reach(prepared, stack)
        await _carry_out(row, _Stage(prepared, reached, store, watch), None)
        return summarise(store, row.run, estimate_of, ceiling_of)


def _new_schedule(config: RunConfig, store: EvidenceStore) -> Schedule:
    return new_schedule(config, engine_for(config, store) if config.adaptive is not None else None)


@dataclass(frozen=True)
class _Reached:
    """The services of a run, found to be there."""

    provider: DockerSandboxProvider
    model: OpenAIChat | None


async def _reach(prepared: Preparation, stack: AsyncExitStack) -> _Reached:
    """Open the model service and the engine, and see that they answer. Raises ConfigError, EngineUnavailable."""
    simulated = prepared.simulated
    model = make_model(prepared.request, simulated.base_url if simulated else None)
    if model is not None:
        stack.push_async_callback(model.aclose)
        if prepared.request.preflight and simulated is None:
            await model.check()
    provider = open_provider()
    stack.push_async_callback(provider.close)
    if needs_containers(prepared.suite):
        await provider.ping()
    return _Reached(provider, model)


@dataclass(frozen=True)
class _Stage:
    """All that a run is carried out with."""

    prepared: Preparation
    reached: _Reached
    store: SqliteStore
    watch: Watch


async def _carry_out(row: RunRow, stage: _Stage, schedule: Schedule | None) -> None:
    """Carry out a new run by its schedule, or, without one, what a stored run still lacks."""
    prepared, reached, store, watch = stage.prepared, stage.reached, stage.store, stage.watch
    async with AsyncExitStack() as stack:
        services = make_services(
            prepared.request,
            Parts(
                prepared.suite,
                prepared.plugin,
                prepared.graders,
                prepared.prices,
                store,
                reached.provider,
                reached.model,
            ),
        )
        if (budget := budget_of(store)) is not None:
            watch.notice(f"at most {budget} trials in flight on this store, shared with its schedule")
        new = schedule is not None
        if new:
            store.create_run(row)
            if watch.created is not None:
                watch.created(row)
        stack.enter_context(store.own(row.run))
        if not new and needs_containers(prepared.suite):
            # Owned by us now, so what a dead process left of this run is ours to remove, and nobody else's is.
            await stack.enter_async_context(taken_up(reached.provider, row.run))
        # The run's own chain vouches for its configuration, and says each time that it was taken up.
        journal = Journal(store, row.run, redactor=services.redactor)
        journal.note(STARTED if new else RESUMED, {"config_digest": row.config_digest, **versions()})
        tally = None
        if schedule is None:
            engine = engine_for(row.config, store) if row.config.adaptive is not None else None
            schedule = restored_schedule(row, services, engine)
            tally = _tally_so_far(row, schedule, services)
        tasks: Mapping[str, Task] = {task.id: task for task in prepared.suite.tasks}
        await Run(row, tasks, schedule, services, control=watch.control, observer=watch.observer, tally=tally).run()


def _tally_so_far(row: RunRow, schedule: Schedule, services: Services) -> Tally:
    tally = Tally(row.run, schedule.planned)
    for trial in services.store.trials(row.run):
        if trial.result is not None:
            tally.add(trial.result, settled=trial.result.outcome.graded)
    tally.retries = 0
    return tally
