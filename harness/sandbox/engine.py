"""The Docker Engine API through docker-py, from a bounded set of worker threads, with every failure mapped once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import anyio
import anyio.to_thread
from docker import APIClient
from docker.utils import kwargs_from_env

from harness.sandbox.errors import ENGINE_FAILURES, fault_from

T = TypeVar("T")

CALL_TIMEOUT_S = 120  # of one API call; streams have no read timeout, their deadline is the command's
THREADS = 32

Connect = Callable[[], APIClient]


@dataclass(frozen=True)
class EngineInfo:
    """What the engine says of itself, once per provider."""

    version: str
    kernel: str
    storage: str
    backing: str
    memory_limit: bool
    swap_limit: bool
    cpu_quota: bool
    pids_limit: bool

    @classmethod
    def of(cls, info: Mapping[str, Any]) -> EngineInfo:
        """From the answer to `GET /info`."""
        status = {key: value for key, value in info.get("DriverStatus") or () if isinstance(key, str)}
        return cls(
            version=str(info.get("ServerVersion", "")),
            kernel=str(info.get("KernelVersion", "")),
            storage=str(info.get("Driver", "")),
            backing=str(status.get("Backing Filesystem", "")),
            memory_limit=bool(info.get("MemoryLimit", True)),
            swap_limit=bool(info.get("SwapLimit", True)),
            cpu_quota=bool(info.get("CpuCfsQuota", True)),
            pids_limit=bool(info.get("PidsLimit", True)),
        )


def connector(base_url: str | None) -> Connect:
    """How to reach the engine at `base_url`, or at DOCKER_HOST, or at the default socket. No I/O until it is called."""

    def connect() -> APIClient:
        # Our own timeout is always given: DOCKER_CLIENT_TIMEOUT and the like must not decide a trial.
        settings: dict[str, Any] = {**kwargs_from_env(), **({"base_url": base_url} if base_url else {})}
        client = APIClient(version="auto", timeout=CALL_TIMEOUT_S, max_pool_size=THREADS, **settings)
        if client.base_url.startswith("http+"):
            client.trust_env = False  # a socket needs no proxy, and looking for one costs a third of every call
        return client

    return connect


class Engine:
    """Calls the engine. One connection pool, shared by the threads."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._client: APIClient | None = None
        self._connecting = threading.Lock()
        self._info: EngineInfo | None = None

    @cached_property
    def _limiter(self) -> anyio.CapacityLimiter:
        return anyio.CapacityLimiter(THREADS)

    async def call(self, doing: str, use: Callable[[APIClient], T], *, place: str = "", abandon: bool = False) -> T:
        """The answer of `use`, run in a worker thread. Raises SandboxFault; its cause is what `use` raised.

        Cancellation waits for the answer (which may name something to remove), unless `abandon`.
        """

        def run() -> T:
            return use(self._connected())

        try:
            return await anyio.to_thread.run_sync(run, abandon_on_cancel=abandon, limiter=self._limiter)
        except ENGINE_FAILURES as error:
            raise fault_from(error, doing, place=place) from error

    async def info(self) -> EngineInfo:
        """What the engine is; asked for once."""
        if self._info is None:
            self._info = EngineInfo.of(await self.call("asking what the engine is", lambda client: client.info()))
        return self._info

    async def close(self) -> None:
        """Close the idle connections."""
        client, self._client = self._client, None
        if client is not None:
            await anyio.to_thread.run_sync(client.close)

    def _connected(self) -> APIClient:
        with self._connecting:
            if self._client is None:
                self._client = self._connect()
            return self._client
