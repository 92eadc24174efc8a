"""Ends what runs in a container, verified, without a tool inside it.

Where the engine's processes are this machine's, they are killed by their numbers on the host: again and again until
none is left, and frozen in between when they fork faster than they die. Elsewhere (a remote engine, no right to
signal) the container is killed and started again, which ends everything and keeps the files.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from contextlib import AsyncExitStack

import anyio
import anyio.to_thread
import structlog

from harness.records.errors import SandboxFault
from harness.records.execution import ProcessReport
from harness.records.vocabulary import Reason
from harness.sandbox.container import Container
from harness.sandbox.host_view import HostView
from harness.sandbox.process_tree import ProcessEntry, ProcessKey, select_foreign

log = structlog.get_logger(__name__)

_GIVE_UP_S = 10.0  # a killed process that is still there then hangs in the kernel
_FREEZE_AFTER_PASSES = 3
_AFTERMATH_PAUSES_S = (0.0, 0.1, 0.3)

Select = Callable[[Mapping[int, ProcessEntry]], tuple[ProcessEntry, ...]]


class _CannotSignal(Exception):
    """The processes cannot be ended from outside: restart instead."""


class ContainerProcesses:
    """The processes of a started container. `host_signals` False never looks at this machine's process table."""

    def __init__(self, container: Container, started: Mapping[str, object], *, host_signals: bool = True) -> None:
        self._container = container
        self._host_signals = host_signals
        self._view: HostView | None = None
        # While something is ended nothing starts, and endings take turns: a command that is on its way up has no number
        # yet by which it could be spared, and an engine that starts one in a frozen container waits for ever.
        self.turn = anyio.Lock()
        self.restarts = 0
        self._kills_before_restart = 0
        self._peak_before_restart: int | None = None
        self._look(started)

    @property
    def visible(self) -> bool:
        """Whether processes are seen and signalled one by one."""
        return self._view is not None

    def capabilities(self) -> tuple[str, ...] | None:
        """Effective Linux capabilities of the container's root, sorted; None where that cannot be seen."""
        return self._view.capabilities() if self._view else None

    def snapshot(self) -> frozenset[ProcessKey] | None:
        """Who is there now besides the keeper; None where that cannot be seen."""
        return self._view.keys() if self._view else None

    def memory_kills(self) -> int | None:
        """How often the kernel killed for memory since the container was first started; None when unknown."""
        count = self._view.memory_kills() if self._view else None
        return None if count is None else count + self._kills_before_restart

    def peak_memory(self) -> int | None:
        """Most bytes in use at once since the container was first started; None when unknown."""
        known = [peak for peak in (self._view.peak_memory() if self._view else None, self._peak_before_restart) if peak]
        return max(known, default=None)

    async def container_is_up(self) -> bool:
        """Whether the container lives, asked right after a command in it was killed.

        The engine may say so a little longer than it is true; the kernel does not.
        """
        if self._view is not None:
            return self._view.keeper_is_up()
        for pause_s in _AFTERMATH_PAUSES_S:
            await anyio.sleep(pause_s)
            if (await self._container.inspect())["State"].get("Running") is not True:
                return False
        return True

    def forks_refused(self) -> int:
        """How often the process limit refused a fork, as far as it can be known."""
        return (self._view.forks_refused() if self._view else None) or 0

    async def end_newer(self, before: Collection[ProcessKey] | None, spared_roots: Collection[int]) -> int:
        """End all that was not there `before`, but for `spared_roots` and their descendants; returns how many ended.

        Where that cannot be told, end all there is.
        """
        view = self._view
        if view is not None and before is not None:
            try:
                return await self._end(
                    lambda table: select_foreign(table, keeper=view.keeper, before=before, spared_roots=spared_roots)
                )
            except _CannotSignal as why:
                self._log_restart(why)
        found = await self._count()
        if found:
            await self._restart()
        return found

    async def end_unseen(self) -> int:
        """End all there is and all that is about to come up; returns how many were there."""
        found = await self._count()
        await self._restart()
        return found

    async def end_all(self) -> ProcessReport:
        """End everything but the keeper."""
        async with self.turn:
            return await self._end_all()

    async def _end_all(self) -> ProcessReport:
        started_s = time.monotonic()
        method = "signal"
        try:
            view = self._view
            if view is None:
                raise _CannotSignal("the engine's processes are out of reach")
            found = await self._end(lambda table: select_foreign(table, keeper=view.keeper))
        except _CannotSignal as why:
            method = "restart"
            found = await self._count()
            if found:
                self._log_restart(why)
                await self._restart()
        return ProcessReport(found=found, method=method if found else "none", duration_s=time.monotonic() - started_s)

    async def _end(self, select: Select) -> int:
        """Kill until a look, and a second look, find nothing. Raises _CannotSignal."""
        ended: set[ProcessKey] = set()
        deadline_s = time.monotonic() + _GIVE_UP_S
        passes = empty = 0
        while True:
            found = await anyio.to_thread.run_sync(self._kill, select)
            empty = 0 if found else empty + 1
            if empty and (empty == 2 or not ended):
                return len(ended)
            ended.update(found)
            passes += 1
            if time.monotonic() > deadline_s:
                raise _CannotSignal(f"{len(found)} killed processes do not go")
            if found and passes % _FREEZE_AFTER_PASSES == 0:
                async with AsyncExitStack() as stack:
                    await stack.enter_async_context(self._container.frozen())
                    ended.update(await anyio.to_thread.run_sync(self._kill, select))
            await anyio.sleep(min(0.001 * 2**passes, 0.1))

    def _kill(self, select: Select) -> tuple[ProcessKey, ...]:
        """One pass: kill all selected processes that are alive now, and say which they were."""
        view = self._view
        if view is None:
            raise _CannotSignal("the container's processes are no longer in reach")
        selected = select(view.table())
        try:
            for entry in selected:
                view.kill(entry)
        except PermissionError as error:
            raise _CannotSignal(str(error)) from error
        return tuple(entry.key for entry in selected)

    async def _count(self) -> int:
        """Processes besides the keeper, as the engine lists them."""
        container = self._container
        listing = await container.engine.call(
            "listing processes", lambda client: client.top(container.id), place=container.name
        )
        return max(0, len(listing["Processes"] or ()) - 1)

    async def _restart(self) -> None:
        self._kills_before_restart = self.memory_kills() or 0
        self._peak_before_restart = self.peak_memory()
        self.restarts += 1
        self._look(await self._container.restart())

    def _look(self, started: Mapping[str, object]) -> None:
        state = started["State"]
        if not isinstance(state, Mapping) or not state.get("Running"):
            raise SandboxFault(
                f"the container did not stay up: {state}", reason=Reason.CONTAINER_LOST, place=self._container.name
            )
        if self._host_signals:
            self._view = HostView.locate(self._container.id, int(state["Pid"]))

    def _log_restart(self, why: Exception) -> None:
        log.info("sandbox.restarted", container=self._container.name, why=str(why))
