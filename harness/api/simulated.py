"""A run against the simulated model: the service on loopback, its past agents as history, and the known truth."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.api.request import RunRequest
from harness.formats.suite import select
from harness.records.errors import ConfigError
from harness.records.suite import Suite
from harness.simulation.population import SimulatedPopulation
from harness.simulation.running import PRICES, running_service


@dataclass(frozen=True)
class Simulated:
    """`asked` is the request as it was, `request` what it becomes; `truth` the agent's pass rate over the suite."""

    asked: RunRequest
    request: RunRequest
    base_url: str
    truth: float


@contextmanager
def simulated(request: RunRequest, suite: Suite) -> Iterator[Simulated]:
    """Serve the population for the length of the context; `suite` is the whole one, before task globs."""
    settings = request.simulation
    if settings is None or request.model is None:
        raise ConfigError("a simulated run needs a model", remedy="give --model sim-000 (up to the last agent)")
    population = SimulatedPopulation(suite.tasks, agents=settings.agents, seed=settings.seed)
    if request.model not in population.agents:
        raise ConfigError(
            f"no simulated agent is called {request.model!r}",
            remedy=f"they are {population.agents[0]} … {population.agents[-1]}",
        )
    with tempfile.TemporaryDirectory() as folder:
        changed = request.model_copy(update={"prices": request.prices or str(PRICES)})
        adaptive = request.adaptive
        if adaptive is not None and not adaptive.history and not adaptive.bank:
            history = Path(folder) / "history.csv"
            population.write_history(history, exclude=(request.model,))
            told = adaptive.model_copy(update={"history": str(history)})
            changed = changed.model_copy(update={"adaptive": told})
        with running_service(population, suite.tasks, faults=settings.faults, seed=settings.seed) as base_url:
            yield Simulated(request, changed, base_url, population.truth(request.model, _chosen(request, suite)))


def _chosen(request: RunRequest, suite: Suite) -> tuple[str, ...]:
    chosen = select(suite, request.tasks) if request.tasks else suite
    return tuple(task.id for task in chosen.tasks)
