"""One container of the engine, from its creation to its removal."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.to_thread
import structlog

from harness.records.errors import SandboxFault
from harness.records.vocabulary import Reason
from harness.sandbox.archive import pack_file
from harness.sandbox.engine import Engine
from harness.sandbox.errors import already_gone, not_paused
from harness.sandbox.freezer import thaw_past_engine
from harness.sandbox.keeper import KEEPER_PATH

log = structlog.get_logger(__name__)

REMOVAL_DEADLINE_S = 30.0
THAW_DEADLINE_S = 30.0
PROMPT_S = 5.0  # an engine that has not answered by then may wait for what is frozen
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
        """Nothing inside runs. It is thawed whatever happens, or this raises SandboxFault within THAW_DEADLINE_S."""
        await self.engine.call("freezing the container", lambda client: client.pause(self.id), place=self.name)
        try:
            yield
        finally:
            await self._thaw()

    async def _thaw(self) -> None:
        for limit_s in (PROMPT_S, THAW_DEADLINE_S - PROMPT_S):
            with anyio.move_on_after(limit_s, shield=True):
                try:
                    await self.engine.call(
                        "thawing the container",
                        lambda client: client.unpause(self.id),
                        place=self.name,
                        abandon=True,
                    )
                except SandboxFault as fault:
                    if not (isinstance(fault.__cause__, Exception) and not_paused(fault.__cause__)):
                        raise
                return
            await anyio.to_thread.run_sync(thaw_past_engine, self.id)
        raise SandboxFault(
            f"the engine did not thaw the container within {THAW_DEADLINE_S:g} s",
            reason=Reason.ENGINE_ERROR,
            place=self.name,
            remedy="see that the engine answers (`assay doctor`)",
        )


async def remove_container(engine: Engine, target: str, *, maybe_frozen: bool = False) -> None:
    """Kill and remove a container, by id, or by name where the id was never told; with its volumes.

    Shielded from cancellation, with a deadline of its own. What fails is logged and changes no result:
    the labels let `assay gc` find it. `maybe_frozen`: thaw it first, instead of when the engine does not answer.
    """
    fault: SandboxFault | None = None
    with anyio.move_on_after(REMOVAL_DEADLINE_S, shield=True):
        if maybe_frozen:
            await anyio.to_thread.run_sync(thaw_past_engine, target)
        for pause_s in _REMOVAL_PAUSES_S:
            with anyio.move_on_after(REMOVAL_DEADLINE_S if pause_s is None else PROMPT_S) as answer:
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
            if answer.cancelled_caught:
                await anyio.to_thread.run_sync(thaw_past_engine, target)
            elif pause_s is not None:
                await anyio.sleep(pause_s)
    why = str(fault) if fault else f"no answer within {REMOVAL_DEADLINE_S:g} s"
    log.warning("sandbox.not_removed", container=target, error=why, remedy="assay gc")
