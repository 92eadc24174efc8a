"""Starts a run and takes one up again."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from datetime import datetime

import anyio

from harness.api.adaptive import engine_for
from harness.api.containers import open_provider
from harness.api.leftovers import taken_up
from harness.api.preparation import Preparation, check_same, new_row, prepare, resolved, versions
from harness.api.request import DEFAULT_STORE, RunRequest, make_request
from harness.api.stores import estimate_of, open_store
from harness.api.wiring import Parts, make_services
from harness.gateway.openai import OpenAIChat
from harness.protocols import EvidenceStore
from harness.records.run import RunConfig, RunRow
from harness.records.task import Task
from harness.report.summary import Summary, summarise
from harness.runner.journal import Journal
from harness.runner.progress import Observer, Tally, notice
from harness.runner.recovery import new_schedule, restored_schedule
from harness.runner.run import RESUMED, STARTED, Run, RunControl
from harness.runner.schedule import Schedule
from harness.runner.services import Services
from harness.store.sqlite import SqliteStore


@dataclass(frozen=True)
class Watch:
    """Who looks on while a run goes, and how it is interrupted."""

    observer: Observer | None = None
    control: RunControl | None = None

    def notice(self, message: str) -> None:
        """Tell the observer, if there is one, what is being done."""
        if self.observer is not None:
            self.observer(notice(message))


def run(request: RunRequest, watch: Watch | None = None) -> Summary:
    """Carry out a run and return its summary. Raises AssayError before anything is spent, StoreError later."""
    return anyio.run(execute, request, watch or Watch())


def resume(run_id: str, store: str = DEFAULT_STORE, watch: Watch | None = None) -> Summary:
    """Carry out what a stored run still lacks: planned minus passed and failed. Raises AssayError."""
    return anyio.run(resume_async, run_id, store, watch or Watch())


async def execute(request: RunRequest, watch: Watch) -> Summary:
    """As :func:`run`, on a running event loop."""
    with ExitStack() as stack:
        watch.notice(f"loading suite {request.suite}")
        prepared = prepare(resolved(request), stack)
        store = stack.enter_context(open_store(request.store))
        if request.adaptive is not None:
            watch.notice("calibrating the items on past runs")
        row = new_row(prepared, store)
        schedule = _new_schedule(row.config, store)
        await _carry_out(row, prepared, schedule, store, watch, new=True)
        return summarise(store, row.run, estimate_of)


async def resume_async(run_id: str, store_folder: str, watch: Watch) -> Summary:
    """As :func:`resume`, on a running event loop."""
    with ExitStack() as stack:
        store = stack.enter_context(open_store(store_folder, create=False))
        row = store.run(run_id)
        request = make_request(row.config.extra["request"], place=f"run {row.run}")
        began = datetime.fromisoformat(row.created).date()
        prepared = prepare(request.model_copy(update={"store": store_folder}), stack, began)
        check_same(row.config, prepared)
        await _carry_out(row, prepared, None, store, watch, new=False)
        return summarise(store, row.run, estimate_of)


def _new_schedule(config: RunConfig, store: EvidenceStore) -> Schedule:
    return new_schedule(config, engine_for(config, store) if config.adaptive is not None else None)


async def _carry_out(
    row: RunRow, prepared: Preparation, schedule: Schedule | None, store: SqliteStore, watch: Watch, *, new: bool
) -> None:
    async with AsyncExitStack() as stack:
        provider = open_provider()
        stack.push_async_callback(provider.close)
        await provider.ping()
        base_url = prepared.simulated.base_url if prepared.simulated else None
        parts = Parts(prepared.suite, prepared.plugin, store, provider, prepared.prices, base_url)
        services = make_services(prepared.request, parts)
        if isinstance(services.model, OpenAIChat):
            stack.push_async_callback(services.model.aclose)
        if new:
            store.create_run(row)
        stack.enter_context(store.own(row.run))
        if not new:
            # Owned by us now, so what a dead process left of this run is ours to remove, and nobody else's is.
            await stack.enter_async_context(taken_up(provider, row.run))
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
