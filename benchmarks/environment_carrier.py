"""How many calls a second an environment answers: in this process, in another one, in a container.

The environments are the bundled airline (in this process and another) and the program in docs/environments.md (in
another process and in a container of the base image). Each is opened, asked for a read, and for a write with the digest
of the state after it. Run with `python -m benchmarks.environment_carrier [--calls 3000]`; the container part needs the
engine and the base image.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import docker

from harness.api.contained import contained
from harness.environments.airline.v1 import AirlineV1
from harness.environments.channel import ProcessChannel
from harness.environments.remote import RemoteEnvironment
from harness.protocols import Environment
from harness.records.environment import Call, Opening
from harness.records.vocabulary import Actor

CHECKOUT = Path(__file__).resolve().parents[1]
AIRLINE = CHECKOUT / "tasks" / "airline" / "data"
IMAGE = "assay-base:1"
TARGET_PER_S = 500
ROUNDS = 5

SHOW, ADD = Call(Actor.AGENT, "show", {}), Call(Actor.AGENT, "add", {"amount": 1})


@dataclass(frozen=True)
class Case:
    """An environment behind a carrier, a call that looks and one that writes."""

    name: str
    environment: Environment
    look: Call
    write: Call


def program() -> str:
    """The program in the guide."""
    text = (CHECKOUT / "docs" / "environments.md").read_text(encoding="utf-8")
    found = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    if found is None:
        raise SystemExit("docs/environments.md has no program")
    return found[1]


def airline(name: str, environment: Environment) -> Case:
    """The bundled airline, in an environment of that name."""
    database = json.loads((AIRLINE / "db.json").read_text())
    reservation_id, reservation = next(iter(database["reservations"].items()))
    bags = {"reservation_id": reservation_id, "total_baggages": 1, "nonfree_baggages": 0}
    method = reservation["payment_history"][0]["payment_id"]
    return Case(
        name,
        environment,
        Call(Actor.AGENT, "get_user_details", {"user_id": reservation["user_id"]}),
        Call(Actor.AGENT, "update_reservation_baggages", {**bags, "payment_id": method}),
    )


def per_second(calls: int, carry_out: Callable[[], object]) -> float:
    """The median of some rounds."""
    rates = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        for _ in range(calls // ROUNDS):
            carry_out()
        rates.append(calls // ROUNDS / (time.perf_counter() - started))
    return statistics.median(rates)


def measure(case: Case, calls: int) -> float:
    """Print a line; returns the slower rate of the two."""
    started = time.perf_counter()
    with case.environment.open(Opening("normal")) as session:
        opened_s = time.perf_counter() - started
        if (answer := session.call(case.write)).error or session.call(case.look).error:
            raise SystemExit(f"{case.name}: {answer.content}")
        reads = per_second(calls, lambda: session.call(case.look))
        writes = per_second(calls, lambda: (session.call(case.write), session.digest()))
    print(
        f"{case.name:34} opened in {opened_s * 1000:7.1f} ms  {reads:9.0f} reads/s  {writes:9.0f} writes with digest/s"
    )
    return min(reads, 2 * writes)  # a write with its digest is two requests


def main() -> int:
    """Measure every carrier; returns 1 when the container is below the target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=3000)
    calls = parser.parse_args().calls
    measure(airline("airline@v1, in this process", AirlineV1(AIRLINE)), calls)
    shim = (sys.executable, "-m", "harness.environments.shim", "airline@v1", str(AIRLINE))
    with RemoteEnvironment(lambda: ProcessChannel(shim)) as environment:
        measure(airline("airline@v1, in another process", environment), calls)
    text = program()
    with RemoteEnvironment(lambda: ProcessChannel((sys.executable, "-c", text))) as environment:
        measure(Case("the guide's program, in a process", environment, SHOW, ADD), calls)
    with docker.APIClient(version="auto") as engine:
        image = engine.inspect_image(IMAGE)["Id"]  # type: ignore[no-untyped-call]
    with contained(image, ("python3", "-c", text)) as environment:
        rate = measure(Case("the guide's program, in a container", environment, SHOW, ADD), calls)
    met = rate >= TARGET_PER_S
    print(f"target in a container: {TARGET_PER_S} calls/s: {'met' if met else 'NOT met'} ({rate:.0f})")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
