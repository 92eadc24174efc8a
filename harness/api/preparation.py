"""From a request to a run that may begin: everything found, checked and pinned down before anything is spent."""

from __future__ import annotations

import platform
import secrets
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, date, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from harness.adaptive.bank import Bank
from harness.api.adaptive import SuiteNow, adaptive_config, check_names, make_bank
from harness.api.preflight import adaptive_notes, check_key, check_on_suite, request_notes
from harness.api.request import RunRequest
from harness.api.simulated import Simulated, simulated
from harness.api.suites import load_suite, require_locked
from harness.api.wiring import (
    SolverPlugin,
    check_prices,
    find_graders,
    find_prices,
    find_solver,
    price_known,
    secrets_of,
    service_url,
)
from harness.billing.prices import PriceTable
from harness.formats.suite import bundled_suites, select
from harness.protocols import EvidenceStore, Grader
from harness.records.base import digest_of, sha256_of
from harness.records.errors import ConfigError
from harness.records.run import RunConfig, RunRow
from harness.records.suite import Suite
from harness.runner.journal import utc_now


@dataclass(frozen=True)
class Preparation:
    """A request with its suite, solver and prices found and checked, before anything is stored or spent."""

    request: RunRequest
    suite: Suite
    suite_tasks: int  # of the whole suite, of which `suite` may be a part
    plugin: SolverPlugin
    graders: Mapping[str, Grader]
    prices: PriceTable
    notes: tuple[str, ...] = ()  # what is odd, and goes into the record
    simulated: Simulated | None = None


MOST_SLOTS = 1_000_000  # the plan of every slot is held in memory: about 300 bytes each


def prepare(request: RunRequest, stack: ExitStack, priced_on: date | None = None) -> Preparation:
    """Find and check what a request names. A simulated service, if asked for, lives as long as `stack`.

    `priced_on` is the day whose public prices hold: of a run that is taken up, the day it began. Raises AssayError.
    """
    whole = load_suite(request.suite)
    suite = select(whole, request.tasks)
    if len(suite.tasks) * request.repeats > MOST_SLOTS:
        raise ConfigError(
            f"{len(suite.tasks):,} tasks {request.repeats:,} times are more than {MOST_SLOTS:,} trials in one run",
            remedy="give fewer repeats, or make several runs",
        )
    require_locked(suite)
    graders = find_graders(suite)
    plugin = find_solver(request.solver, request.solver_options)
    if plugin.needs_model and request.model is None:
        raise ConfigError(f"solver {request.solver!r} needs a model", remedy="give --model (and --base-url)")
    if request.adaptive is not None:
        check_names((request.adaptive.policy,), request.adaptive.estimator)
    simulation = None
    if request.simulation is not None:
        simulation = stack.enter_context(simulated(request, whole))
        request = simulation.request
    elif plugin.needs_model:
        check_key(request)
    prices = find_prices(request, priced_on or datetime.now(UTC).date())
    notes = (*request_notes(request, plugin, suite, prices), *check_on_suite(plugin, suite))
    if not plugin.needs_model:
        request = request.model_copy(update={"model": None})
    check_prices(request, suite, prices)
    return Preparation(request, suite, len(whole.tasks), plugin, graders, prices, notes, simulation)


def resolved(request: RunRequest) -> RunRequest:
    """The request with every path absolute and the service's address settled, so that it means the same elsewhere."""

    def absolute(path: str | None) -> str | None:
        return str(Path(path).resolve()) if path is not None and Path(path).exists() else path

    solver, separator, name = request.solver.partition(":")
    changes: dict[str, Any] = {
        "suite": request.suite if request.suite in bundled_suites() else absolute(request.suite),
        "solver": f"{absolute(solver)}:{name}" if separator else request.solver,
        "prices": absolute(request.prices),
    }
    if request.model is not None and request.simulation is None:
        changes["base_url"] = service_url(request)
    if request.adaptive is not None:
        paths = {"history": absolute(request.adaptive.history), "bank": absolute(request.adaptive.bank)}
        changes["adaptive"] = request.adaptive.model_copy(update=paths)
    return request.model_copy(update=changes)


def run_bank(prepared: Preparation) -> Bank | None:
    """The bank of an adaptive run, aligned with its tasks; None for a fixed run. Raises AssayError, AdaptiveError."""
    asked = prepared.request.adaptive
    return None if asked is None else make_bank(asked, tuple(task.id for task in prepared.suite.tasks))


def new_row(prepared: Preparation, bank: Bank | None, store: EvidenceStore) -> RunRow:
    """The row of a new run; its bank, if it is adaptive, is put among the evidence. Raises AssayError."""
    request, suite = prepared.request, prepared.suite
    adaptive = None
    notes = prepared.notes
    if request.adaptive is not None and bank is not None:
        now = SuiteNow(suite.version, {task.id: task.version for task in suite.tasks})
        adaptive = adaptive_config(request.adaptive, bank, now, store)
        notes += adaptive_notes(request, bank)
    asked_for = prepared.simulated.asked if prepared.simulated else request
    extra: dict[str, Any] = {"request": asked_for.plain(), "suite_tasks": prepared.suite_tasks, "notes": notes}
    if prepared.simulated is not None and prepared.plugin.needs_model:
        extra["truth"] = prepared.simulated.truth
    config = RunConfig(
        suite=suite.name,
        suite_version=suite.version,
        suite_source=suite.source,
        tasks=tuple(task.id for task in suite.tasks),
        solver=prepared.plugin.spec,
        model=request.model,
        base_url=request.base_url,
        scaffold=request.scaffold or prepared.plugin.label,
        agent=request.agent,
        repeats=request.repeats,
        concurrency=request.concurrency,
        budget=request.budget,
        adaptive=adaptive,
        retries=request.retries,
        seed=request.seed,
        secrets=tuple(secrets_of(request)),
        prices=prepared.prices.label,
        prices_digest=price_file_digest(request),
        keep_cost_budgets=price_known(request, prepared.prices),
        extra=extra,
    )
    return RunRow(run=new_run_id(), created=utc_now(), config=config, config_digest=digest_of(config))


def price_file_digest(request: RunRequest) -> str | None:
    """sha256 of the price table that a request names, or None."""
    return sha256_of(Path(request.prices).read_bytes()) if request.prices else None


def versions() -> dict[str, str]:
    """What carried the run out."""
    return {"assay": version("assay"), "python": platform.python_version(), "machine": platform.platform()}


def new_run_id() -> str:
    """Sortable by time, unique by chance."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


def check_same(config: RunConfig, prepared: Preparation) -> None:
    """A run is taken up only as what it was (CASES R05). Raises ConfigError naming the difference."""
    suite = prepared.suite
    if suite.version != config.suite_version:
        raise ConfigError(
            f"suite {config.suite!r} has changed since the run began (then {config.suite_version[:19]}…,"
            f" now {suite.version[:19]}…)",
            remedy="restore the suite, or start a new run",
        )
    if (prepared.prices.label, price_file_digest(prepared.request)) != (config.prices, config.prices_digest):
        raise ConfigError(
            f"the run was priced by {config.prices!r}, now there is {prepared.prices.label!r}",
            remedy="restore that price table: one run has one, and a new one never re-prices history",
        )
    if prepared.plugin.spec.code_digest != config.solver.code_digest:
        raise ConfigError(
            f"solver {config.solver.name!r} has changed since the run began",
            remedy="restore its code, or start a new run",
        )
