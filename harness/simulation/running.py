"""Runs the simulated service on a port of this machine for the length of a context."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from harness.records.errors import EngineUnavailable
from harness.records.task import Task
from harness.simulation.population import SimulatedPopulation
from harness.simulation.service import SimulatedService

PRICES = Path(__file__).with_name("prices.toml")
START_S = 15.0
STOP_S = 5.0
KEEP_ALIVE_S = 75  # longer than clients keep an idle connection (httpx: 5 s), or one is dropped as it is used again


@contextmanager
def running_service(
    population: SimulatedPopulation,
    tasks: Sequence[Task],
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    faults: float = 0.0,
    seed: int = 0,
) -> Iterator[str]:
    """Serve a population from a thread; the value is its base URL, ending in `/v1`. Port 0: any free one.

    Raises EngineUnavailable when the port cannot be had or the server does not start.
    """
    app = SimulatedService(population, tasks, faults=faults, seed=seed).app()
    with _bound(host, port) as listener:
        server = uvicorn.Server(
            uvicorn.Config(
                app,
                log_config=None,
                log_level="critical",
                access_log=False,
                lifespan="off",
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=1,
            )
        )
        thread = threading.Thread(target=server.run, args=([listener],), name="assay-sim-model", daemon=True)
        thread.start()
        try:
            _await_start(server, thread)
            yield f"http://{host}:{listener.getsockname()[1]}/v1"
        finally:
            server.should_exit = True
            thread.join(STOP_S)
            server.force_exit = True
            thread.join(STOP_S)


def _bound(host: str, port: int) -> socket.socket:
    try:
        listener = socket.create_server((host, port), backlog=256)
        # asyncio does this only for sockets of an explicit protocol; without it each answer waits 40 ms for an
        # acknowledgement. Accepted connections inherit it.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except OSError as error:
        raise EngineUnavailable(
            f"the simulated model cannot listen: {error.strerror or error}",
            place=f"{host}:{port}",
            remedy="give another --port, or 0 for any free one",
        ) from error


def _await_start(server: uvicorn.Server, thread: threading.Thread) -> None:
    deadline_s = time.monotonic() + START_S
    while not server.started:
        if not thread.is_alive() or time.monotonic() > deadline_s:
            raise EngineUnavailable("the simulated model did not start", remedy="look for what else it printed")
        time.sleep(0.005)
