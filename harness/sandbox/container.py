"""One container of the engine, from its creation to its removal."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import structlog

from harness.records.errors import SandboxFault
from harness.sandbox.archive import pack_file
from harness.sandbox.engine import Engine
from harness.sandbox.errors import already_gone
from harness.sandbox.keeper import KEEPER_PATH

log = structlog.get_logger(__name__)

REMOVAL_DEADLINE_S = 30.0
_REMOVAL_PAUSES_S = (0.5, 2.0, None)


@dataclass(frozen=True)
class Container:
    """A created container. `keeper` is the program that becomes its process 1."""

    engine: Engine
    id: str
    name: str
    keeper: bytes

    async def start(self) -> dict[str, Any]:
        """Start it, with a keeper that nobody has touched, and return what `GET /containers/ID/json` says then."""
        archive = pack_file(KEEPER_PATH, self.keeper, 0o755)

        def place_and_start(client: Any) -> dict[str, Any]:
            client.put_archive(self.id, "/", archive)
            client.start(self.id)
            answer: dict[str, Any] = client.inspect_container(self.id)
            return answer

        return await self.engine.call("starting the container", place_and_start, place=self.name)

    async def inspect(self) -> dict[str, Any]:
        """What `GET /containers/ID/json` says now."""
        answer: dict[str, Any] = await self.engine.call(
            "inspecting the container", lambda client: client.inspect_container(self.id), place=self.name
        )
        return answer

    async def restart(self) -> dict[str, Any]:
        """End every process and start anew; files stay. Returns what inspecting says then."""
        await self.engine.call("killing the container", lambda client: client.kill(self.id), place=self.name)
        return await self.start()

    @asynccontextmanager
    async def frozen(self) -> AsyncIterator[None]:
        """Nothing inside runs. It is thawed whatever happens."""
        await self.engine.call("freezing the container", lambda client: client.pause(self.id), place=self.name)
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                await self.engine.call("thawing the container", lambda client: client.unpause(self.id), place=self.name)


async def remove_container(engine: Engine, target: str) -> None:
    """Kill and remove a container, by id, or by name where the id was never told; with its volumes.

    Shielded from cancellation, with a deadline of its own. What fails is logged and changes no result:
    the labels let `assay gc` find it.
    """
    fault: SandboxFault | None = None
    with anyio.move_on_after(REMOVAL_DEADLINE_S, shield=True):
        for pause_s in _REMOVAL_PAUSES_S:
            try:
                await engine.call(
                    "removing the container",
                    lambda client: client.remove_container(target, force=True, v=True),
                    place=target,
                    abandon=True,
                )
                return
            except SandboxFault as caught:
                if isinstance(caught.__cause__, Exception) and already_gone(caught.__cause__):
                    return
                fault = caught
            if pause_s is not None:
                await anyio.sleep(pause_s)
    why = str(fault) if fault else f"no answer within {REMOVAL_DEADLINE_S:g} s"
    log.warning("sandbox.not_removed", container=target, error=why, remedy="assay gc")
