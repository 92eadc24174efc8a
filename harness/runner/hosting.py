"""Where a solver's code runs: on the harness's loop, or in a thread of its own.

Foreign code may block. In a thread with its own event loop it stalls only itself; when its time is over the
thread is abandoned and its handles are dead (CASES T01).
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import anyio
from anyio.from_thread import BlockingPortal

from harness.protocols import Episode, Solver, SolverModel, SolverSandbox

T = TypeVar("T")


class SolverCrash(Exception):
    """A solver in a thread of its own raised; the cause is what it raised."""


def raised_by(failure: BaseException) -> BaseException:
    """What the solver itself raised, wherever it ran."""
    return failure.__cause__ if isinstance(failure, SolverCrash) and failure.__cause__ is not None else failure


async def host(solver: Solver, episode: Episode) -> None:
    """Run the solver to its end, raising what it raises. Cancellation ends the wait, not a blocked thread."""
    if getattr(solver, "isolation", "thread") == "inline":
        await solver.run(episode)
    else:
        await _host_in_thread(solver, episode)


async def _host_in_thread(solver: Solver, episode: Episode) -> None:
    ended = anyio.Event()
    failure: list[BaseException] = []
    async with BlockingPortal() as portal:
        bridged = replace(
            episode,
            sandbox=_BridgedSandbox(portal, episode.sandbox),
            model=None if episode.model is None else _BridgedModel(portal, episode.model),
            note=partial(portal.call, episode.note),
        )

        def work() -> None:
            try:
                asyncio.run(solver.run(bridged))
            except BaseException as error:  # noqa: BLE001  # carried to the harness's side, whatever it is
                failure.append(error)
            with contextlib.suppress(RuntimeError):  # the portal is closed: this thread was abandoned
                portal.call(ended.set)

        threading.Thread(target=work, name="assay-solver", daemon=True).start()
        try:
            await ended.wait()
        finally:
            # Closing the gate has cancelled whatever the thread was waiting for; do not wait for the thread.
            await portal.stop(cancel_remaining=True)
    if failure:
        # Wrapped: a cancellation that the solver made up must not look like the harness's own.
        raise SolverCrash from failure[0]


async def _across(portal: BlockingPortal, function: Callable[..., Awaitable[T]], *args: Any, **options: Any) -> T:
    future = portal.start_task_soon(partial(function, *args, **options))
    return await asyncio.wrap_future(future)


@dataclass
class _BridgedSandbox:
    """A sandbox handle for another thread's event loop."""

    portal: BlockingPortal
    inner: SolverSandbox

    async def exec(self, *args: Any, **options: Any) -> Any:
        return await _across(self.portal, self.inner.exec, *args, **options)

    async def put(self, *args: Any, **options: Any) -> None:
        await _across(self.portal, self.inner.put, *args, **options)

    async def read(self, *args: Any, **options: Any) -> bytes:
        return await _across(self.portal, self.inner.read, *args, **options)


@dataclass
class _BridgedModel:
    """A model handle for another thread's event loop."""

    portal: BlockingPortal
    inner: SolverModel

    @property
    def name(self) -> str:
        return self.inner.name

    async def chat(self, *args: Any, **options: Any) -> Any:
        return await _across(self.portal, self.inner.chat, *args, **options)
