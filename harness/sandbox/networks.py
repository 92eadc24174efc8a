"""The network of each run whose sandboxes may reach the gateway and nothing else: one per run, made on first use.

One for every trial would use up the engine's address pools after some thirty trials.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

import anyio
import structlog
from docker import APIClient

from harness.records.errors import SandboxFault
from harness.sandbox.container_config import OWNER_LABEL, RUN_LABEL
from harness.sandbox.engine import Engine
from harness.sandbox.errors import already_gone
from harness.sandbox.ownership import this_process

log = structlog.get_logger(__name__)

_REMOVAL_DEADLINE_S = 30.0


class RunNetworks:
    """Internal networks by run, as `(id, address of this machine inside)`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._known: dict[str, tuple[str, str]] = {}
        self._creating = anyio.Lock()

    async def network(self, run: str) -> tuple[str, str]:
        """The run's network, created if need be. Raises SandboxFault, with reason engine.network_pool among others."""
        async with self._creating:
            if run not in self._known:
                self._known[run] = await self._engine.call(
                    "creating the run's network", lambda client: _create(client, run), place=run
                )
            return self._known[run]

    async def close(self) -> None:
        """Remove all networks that were made here. What fails is logged: `assay gc` finds it."""
        known, self._known = self._known, {}
        with anyio.move_on_after(_REMOVAL_DEADLINE_S, shield=True):
            for run, (network_id, _) in known.items():
                try:
                    await remove_network(self._engine, network_id)
                except SandboxFault as fault:
                    log.warning("sandbox.network_not_removed", run=run, error=str(fault), remedy="assay gc")


async def remove_network(engine: Engine, network_id: str) -> None:
    """Remove a network; one that is gone already is no fault. Raises SandboxFault."""
    try:
        await engine.call(
            "removing a network", lambda client: client.remove_network(network_id), place=network_id, abandon=True
        )
    except SandboxFault as fault:
        if not (isinstance(fault.__cause__, Exception) and already_gone(fault.__cause__)):
            raise


def network_name(run: str, owner: str) -> str:
    """The name of a run's network. Another process that takes the run up has another one: labels cannot be changed, so
    a network taken over would look like the dead process's, and `assay gc` would remove it."""
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", run)[:60]
    return f"assay-{plain}-{hashlib.sha256(owner.encode()).hexdigest()[:8]}"


def _create(client: APIClient, run: str) -> tuple[str, str]:
    owner = this_process().label
    name = network_name(run, owner)
    labels = {RUN_LABEL: run, OWNER_LABEL: owner}
    existing = _first_named(client, name)
    network_id = (
        existing
        or client.create_network(name, driver="bridge", internal=True, check_duplicate=True, labels=labels)["Id"]
    )
    pools = client.inspect_network(network_id)["IPAM"]["Config"]
    return network_id, next((pool["Gateway"] for pool in pools if pool.get("Gateway")), "")


def _first_named(client: APIClient, name: str) -> str | None:
    """The network of that name with our label: made by this process for the same run."""
    found: list[dict[str, Any]] = client.networks(filters={"name": f"^{name}$", "label": RUN_LABEL})
    return next((item["Id"] for item in found if item["Name"] == name), None)
