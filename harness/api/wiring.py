"""Puts concrete parts together for a run: solver, model, prices, engine, graders."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from harness import plugins
from harness.api.environments import environment_of, episode_graders, user_of
from harness.api.request import RunRequest
from harness.api.schedule_slots import turn_of
from harness.billing.account import accountant
from harness.billing.genai import GenaiPrices
from harness.billing.prices import PriceTable, load_prices
from harness.billing.usage import normalise
from harness.gateway.openai import OpenAIChat
from harness.protocols import ChatModel, EvidenceStore, Grader, SandboxProvider, Solver
from harness.records.errors import AssayError, ConfigError
from harness.records.suite import Suite
from harness.records.trial import SolverSpec
from harness.records.usage import Usage
from harness.records.vocabulary import Actor
from harness.runner.redaction import Redactor
from harness.runner.services import Services

OPENAI_URL = "https://api.openai.com/v1"


@dataclass(frozen=True)
class SolverPlugin:
    """A resolved solver: how to make one, and what to write down about it."""

    make: Any
    spec: SolverSpec
    needs_model: bool

    @property
    def label(self) -> str:
        """What to call it in tables: its name, of one from a file no path of this machine (`mine:Mine`)."""
        path, separator, name = self.spec.name.rpartition(":")
        return f"{Path(path).stem}:{name}" if separator else self.spec.name


def find_solver(name: str, options: Mapping[str, Any]) -> SolverPlugin:
    """Resolve a solver by name or file. Raises ConfigError when it is not one, or refuses its options."""
    found = plugins.load("solvers", name)
    run = getattr(found, "run", None)
    if run is None or not inspect.iscoroutinefunction(run):
        raise ConfigError(f"{name!r} is not a solver", remedy="a solver has `async def run(self, episode)`")
    check_options = getattr(found, "check_options", None)
    try:
        if check_options is not None:
            check_options(options)
        actor = Actor(getattr(found, "actor", "agent")).value
    except AssayError:
        raise
    except (Exception, SystemExit) as error:  # a user's file may raise anything
        message = f"solver {name!r} cannot be used: {type(error).__name__}: {error}"
        raise ConfigError(message, remedy="mend its `check_options` or its class attributes") from error
    spec = SolverSpec(
        name=name,
        version=str(getattr(found, "version", "0")),
        options=dict(options),
        actor=actor,
        uses_solution=bool(getattr(found, "uses_solution", False)),
        code_digest=plugins.code_digest(found),
        metered=bool(getattr(found, "metered", True)),
    )
    plugin = SolverPlugin(found, spec, bool(getattr(found, "needs_model", False)))
    make_solver(plugin)  # one that cannot be made is known before anything is spent
    return plugin


def make_solver(plugin: SolverPlugin) -> Solver:
    """A fresh solver for one trial: an instance of a class, or the object itself. Raises ConfigError."""
    try:
        made: Any = plugin.make() if inspect.isclass(plugin.make) else plugin.make
    except (Exception, SystemExit) as error:  # a user's class may raise anything
        message = f"making solver {plugin.spec.name!r} raised {type(error).__name__}: {error}"
        raise ConfigError(
            message, remedy="a solver's class is called without arguments, once for each trial"
        ) from error
    solver: Solver = made
    return solver


def find_graders(suite: Suite) -> dict[str, Grader]:
    """Every grader a suite names, by `id@version`. Raises ConfigError before anything is spent."""
    wanted = sorted({task.grading.grader for task in suite.tasks if task.conversation is None})
    found: dict[str, Grader] = {}
    for reference in wanted:
        name, _, version = reference.partition("@")
        grader = plugins.load("graders", name)()
        if version and grader.version != version:
            raise ConfigError(
                f"the suite asks for grader {reference}, here is {name}@{grader.version}",
                remedy="install the version that provides it, or lock the suite again",
            )
        found[reference] = grader
    return found


def find_prices(request: RunRequest, day: date) -> PriceTable:
    """The price table of a run: the file it names, or the public list prices of a day at the run's service."""
    return load_prices(request.prices) if request.prices else GenaiPrices(service_url(request), as_of=day)


def price_known(request: RunRequest, prices: PriceTable) -> bool:
    """Whether calls of the run's model can be priced; true for a run without a model."""
    return request.model is None or prices.cost_usd(request.model, Usage(input=1, output=1)) is not None


def service_url(request: RunRequest) -> str:
    """The model service's address: as asked, as $OPENAI_BASE_URL says, or OpenAI's own."""
    url = request.base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        remedy = "give it whole, like http://127.0.0.1:8000/v1 (--base-url, or $OPENAI_BASE_URL)"
        raise ConfigError(f"{url!r} is no address of a model service", remedy=remedy)
    return url


def check_prices(request: RunRequest, suite: Suite, prices: PriceTable) -> None:
    """A cost budget needs a known price: refused otherwise (CASES T10). Raises ConfigError."""
    budgeted = request.budget.cost_usd is not None or any(task.budget.cost_usd is not None for task in suite.tasks)
    if budgeted and not request.allow_unknown_price and not price_known(request, prices):
        raise ConfigError(
            f"the price of model {request.model!r} is unknown, so cost budgets cannot be kept",
            remedy="give --prices TABLE.toml, or --allow-unknown-price to run without cost budgets",
        )


def host_env_of(suite: Suite) -> dict[str, str]:
    """The host's variables that the suite's tasks ask for, as far as they are set."""
    names = frozenset(name for task in suite.tasks for name in task.host_variables)
    return {name: os.environ[name] for name in sorted(names) if name in os.environ}


def sounds_secret(name: str) -> bool:
    """Whether a variable's value must be kept out of the evidence; others (`USER`, `LANG`) are ordinary words."""
    return re.search(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH", name, re.IGNORECASE) is not None


def secrets_of(request: RunRequest) -> dict[str, str]:
    """Values never to be written down, by the name of their variable."""
    names = (request.api_key_env, *request.secrets)
    return {name: os.environ[name] for name in names if os.environ.get(name)}


def make_model(request: RunRequest, base_url: str | None) -> OpenAIChat | None:
    """The model service of a run, to be closed, or None for a run without a model."""
    if request.model is None:
        return None
    return OpenAIChat(
        base_url or service_url(request),
        request.model,
        os.environ.get(request.api_key_env),
        normalise=normalise,
        stream=request.stream,
    )


@dataclass(frozen=True)
class Parts:
    """What :func:`make_services` needs beside the request."""

    suite: Suite
    plugin: SolverPlugin
    graders: Mapping[str, Grader]
    prices: PriceTable
    store: EvidenceStore
    provider: SandboxProvider
    model: ChatModel | None


def make_services(request: RunRequest, parts: Parts) -> Services:
    """All services of a run."""
    host_env = host_env_of(parts.suite)
    return Services(
        provider=parts.provider,
        store=parts.store,
        solver=lambda spec: make_solver(parts.plugin),
        grader=lambda reference: parts.graders[reference],
        account=accountant(parts.prices.cost_usd),
        price=parts.prices.cost_usd,
        model=parts.model,
        redactor=Redactor(
            {**{name: host_env[name] for name in host_env if sounds_secret(name)}, **secrets_of(request)}
        ),
        host_env=host_env,
        environment=environment_of,
        episode_grader=episode_graders(parts.suite).__getitem__,
        user=user_of,
        keep_bytes=int(request.keep_mb * 1e6),
        turn=turn_of(parts.store),
    )
