"""Starts a run and takes one up again."""

from __future__ import annotations

import platform
import secrets
from collections.abc import Mapping
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import anyio

from harness.api.adaptive import engine_for, keep_bank, make_bank
from harness.api.leftovers import sweep
from harness.api.request import RunRequest, make_request
from harness.api.simulated import Simulated, simulated
from harness.api.stores import estimate_of, open_store
from harness.api.suites import load_suite, require_locked
from harness.api.wiring import (
    Parts,
    SolverPlugin,
    check_prices,
    find_prices,
    find_solver,
    make_services,
    price_known,
    secrets_of,
)
from harness.billing.prices import PriceTable
from harness.protocols import EvidenceStore
from harness.records.base import digest_of
from harness.records.errors import ConfigError
from harness.records.run import AdaptiveConfig, RunConfig, RunRow
from harness.records.suite import Suite
from harness.records.task import Task
from harness.report.summary import Summary, summarise
from harness.runner.journal import Journal, utc_now
from harness.runner.progress import Observer, Tally
from harness.runner.recovery import new_schedule, restored_schedule
from harness.runner.run import Run, RunControl
from harness.runner.schedule import Schedule
from harness.runner.services import Services
from harness.sandbox.provider import DockerSandboxProvider
from harness.store.sqlite import SqliteStore


@dataclass(frozen=True)
class Watch:
    """Who looks on while a run goes, and how it is interrupted."""

    observer: Observer | None = None
    control: RunControl | None = None


@dataclass(frozen=True)
class Preparation:
    """A request with its suite, solver and prices found and checked, before anything is stored or spent."""

    request: RunRequest
    suite: Suite
    plugin: SolverPlugin
    prices: PriceTable
    simulated: Simulated | None = None


def run(request: RunRequest, watch: Watch | None = None) -> Summary:
    """Carry out a run and return its summary. Raises AssayError before anything is spent, StoreError later."""
    return anyio.run(execute, request, watch or Watch())


def resume(run_id: str, store: str = ".assay", watch: Watch | None = None) -> Summary:
    """Carry out what a stored run still lacks: planned minus passed and failed. Raises AssayError."""
    return anyio.run(resume_async, run_id, store, watch or Watch())


async def execute(request: RunRequest, watch: Watch) -> Summary:
    """As :func:`run`, on a running event loop."""
    with ExitStack() as stack:
        prepared = _prepare(request, stack)
        store = stack.enter_context(open_store(request.store))
        row = _new_row(prepared, store)
        schedule = _new_schedule(row.config, store)
        await _carry_out(row, prepared, schedule, store, watch, new=True)
        return summarise(store, row.run, estimate_of)


async def resume_async(run_id: str, store_folder: str, watch: Watch) -> Summary:
    """As :func:`resume`, on a running event loop."""
    with ExitStack() as stack:
        store = stack.enter_context(open_store(store_folder, create=False))
        row = store.run(run_id)
        request = make_request(row.config.extra["request"], place=f"run {row.run}")
        prepared = _prepare(request.model_copy(update={"store": store_folder}), stack)
        _check_same(row.config, prepared)
        await _carry_out(row, prepared, None, store, watch, new=False)
        return summarise(store, row.run, estimate_of)


def _prepare(request: RunRequest, stack: ExitStack) -> Preparation:
    suite = load_suite(request.suite, request.tasks)
    require_locked(suite)
    plugin = find_solver(request.solver, request.solver_options)
    if plugin.needs_model and request.model is None:
        raise ConfigError(f"solver {request.solver!r} needs a model", remedy="give --model (and --base-url)")
    simulation = None
    if request.simulation is not None:
        simulation = stack.enter_context(simulated(request, load_suite(request.suite)))
        request = simulation.request
    prices = find_prices(request)
    check_prices(request, suite, prices)
    return Preparation(request, suite, plugin, prices, simulation)


def _new_row(prepared: Preparation, store: EvidenceStore) -> RunRow:
    request, suite = prepared.request, prepared.suite
    adaptive = None
    if request.adaptive is not None:
        bank = make_bank(request.adaptive, tuple(task.id for task in suite.tasks))
        asked = request.adaptive
        adaptive = AdaptiveConfig(
            stop=asked.stop,
            stop_se=asked.stop_se,
            policy=asked.policy,
            bank=keep_bank(bank, store),
            seed=asked.seed,
        )
    extra: dict[str, Any] = {"request": prepared.simulated.asked.plain() if prepared.simulated else request.plain()}
    if prepared.simulated is not None:
        extra["truth"] = prepared.simulated.truth
    config = RunConfig(
        suite=suite.name,
        suite_version=suite.version,
        suite_source=suite.source,
        tasks=tuple(task.id for task in suite.tasks),
        solver=prepared.plugin.spec,
        model=request.model if prepared.plugin.needs_model else None,
        base_url=request.base_url,
        scaffold=request.scaffold,
        agent=request.agent,
        repeats=request.repeats,
        concurrency=request.concurrency,
        budget=request.budget,
        adaptive=adaptive,
        retries=request.retries,
        seed=request.seed,
        secrets=tuple(secrets_of(request)),
        prices=prepared.prices.label,
        keep_cost_budgets=price_known(request, prepared.prices),
        extra=extra,
    )
    return RunRow(run=new_run_id(), created=utc_now(), config=config, config_digest=digest_of(config))


def versions() -> dict[str, str]:
    """What carried the run out."""
    return {"assay": version("assay"), "python": platform.python_version(), "machine": platform.platform()}


def new_run_id() -> str:
    """Sortable by time, unique by chance."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


def _new_schedule(config: RunConfig, store: EvidenceStore) -> Schedule:
    return new_schedule(config, engine_for(config, store) if config.adaptive is not None else None)


async def _carry_out(
    row: RunRow, prepared: Preparation, schedule: Schedule | None, store: SqliteStore, watch: Watch, *, new: bool
) -> None:
    async with AsyncExitStack() as stack:
        provider = DockerSandboxProvider()
        stack.push_async_callback(provider.close)
        await provider.ping()
        base_url = prepared.simulated.base_url if prepared.simulated else None
        parts = Parts(prepared.suite, prepared.plugin, store, provider, prepared.prices, base_url)
        services = make_services(prepared.request, parts)
        if new:
            store.create_run(row)
        stack.enter_context(store.own(row.run))
        if not new:
            # Owned by us now, so what a dead process left of this run is ours to remove, and nobody else's is.
            await sweep(provider, leased=lambda run: False, run=row.run)
        # The run's own chain vouches for its configuration, and says each time that it was taken up.
        journal = Journal(store, row.run, redactor=services.redactor)
        journal.note("run.started" if new else "run.resumed", {"config_digest": row.config_digest, **versions()})
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


def _check_same(config: RunConfig, prepared: Preparation) -> None:
    """A run is taken up only as what it was (CASES R05). Raises ConfigError naming the difference."""
    suite = prepared.suite
    if suite.version != config.suite_version:
        raise ConfigError(
            f"suite {config.suite!r} has changed since the run began (then {config.suite_version[:19]}…,"
            f" now {suite.version[:19]}…)",
            remedy="restore the suite, or start a new run",
        )
    if prepared.plugin.spec.code_digest != config.solver.code_digest:
        raise ConfigError(
            f"solver {config.solver.name!r} has changed since the run began",
            remedy="restore its code, or start a new run",
        )
