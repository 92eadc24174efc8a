"""assay sim-model."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Annotated

import typer

from harness.api.suites import load_suite
from harness.cli.options import say
from harness.records.errors import ConfigError
from harness.simulation.population import SimulatedPopulation
from harness.simulation.running import PRICES, running_service

app = typer.Typer(rich_markup_mode=None, add_completion=False)

EXAMPLES = """\b
Examples:
  assay sim-model --port 8080
  assay sim-model --history runs.csv --exclude sim-042 --truth sim-042 --no-serve
"""


@app.command(epilog=EXAMPLES)
def sim_model(
    suite: Annotated[str, typer.Option(help="Suite folder, or a bundled suite.")] = "terminal",
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 for any free one.")] = 8080,
    agents: Annotated[int, typer.Option(min=1, help="How many agents there are: sim-000 and on.")] = 300,
    seed: Annotated[int, typer.Option(help="Seed of abilities, difficulties and outcomes.")] = 7,
    faults: Annotated[float, typer.Option(min=0, max=1, help="Share of answers that fail, come late or are cut.")] = 0,
    history: Annotated[Path | None, typer.Option(help="Write the agents' past runs to this CSV.")] = None,
    exclude: Annotated[list[str] | None, typer.Option(help="Leave an agent out of the history; repeatable.")] = None,
    truth: Annotated[list[str] | None, typer.Option(help="Print an agent's true pass rate; repeatable.")] = None,
    serve: Annotated[bool, typer.Option("--serve/--no-serve", help="Serve until Ctrl-C.")] = True,
) -> None:
    """Serve simulated agents behind an OpenAI-compatible API on loopback."""
    if exclude and history is None:
        raise ConfigError("--exclude without --history", remedy="it says whom the history leaves out")
    tasks = load_suite(suite).tasks
    population = SimulatedPopulation(tasks, agents=agents, seed=seed)
    known = [(agent, population.truth(agent)) for agent in truth or ()]
    if history is not None:
        population.write_history(history, exclude=tuple(exclude or ()))
        say(f"wrote {history}")
    for agent, share in known:
        print(f"{agent} {share:.6f}")
    if serve:
        ended = _on_signal()
        with running_service(population, tasks, host=host, port=port, faults=faults, seed=seed) as base_url:
            say(f"{population.agents[0]} … {population.agents[-1]} answer at {base_url} for {len(tasks)} tasks")
            say(f"their prices: --prices {PRICES}; Ctrl-C ends it")
            ended.wait()


def _on_signal() -> threading.Event:
    """Set by Ctrl-C, which is how a service is meant to end: no error, exit code 0."""
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    return ended
