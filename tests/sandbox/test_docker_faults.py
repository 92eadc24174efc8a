"""What the engine may do to a sandbox: refuse, lose an answer, be slow, kill the container, or not be there."""

from __future__ import annotations

import contextlib
import http.server
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import docker
import docker.errors
import pytest
import requests
import structlog.testing

from harness.records.errors import SandboxFault
from harness.records.execution import Command, ExecResult, SandboxSpec
from harness.records.task import FileTree, ImagePin, Limits
from harness.records.vocabulary import Network, Reason
from harness.sandbox import container as container_module
from harness.sandbox.provider import DockerSandboxProvider

from .contract import sh

pytestmark = [pytest.mark.docker, pytest.mark.anyio]

Behave = Callable[..., Any]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class BentClient(docker.APIClient):
    """The real client, but for what `bend` says: method name to a function that gets the real method and arguments."""

    bend: dict[str, Behave] = {}

    def __getattribute__(self, name: str) -> Any:
        real = super().__getattribute__(name)
        behave = type(self).bend.get(name)
        return (lambda *args, **kwargs: behave(real, *args, **kwargs)) if behave else real


def provider_with(timeout: int = 60, **bend: Behave) -> DockerSandboxProvider:
    bent = type("Bent", (BentClient,), {"bend": bend})
    return DockerSandboxProvider(client_factory=lambda: bent(version="auto", timeout=timeout))


def spec(pin: ImagePin, run: str, **limits: object) -> SandboxSpec:
    wanted = Limits.model_validate({"memory_mb": 128, "pids": 64, "disk_mb": None, **limits})
    return SandboxSpec(run=run, trial=f"{run}/1", image=pin, limits=wanted, workdir="/app")


def engine_error(status: int, words: str) -> docker.errors.APIError:
    response = requests.Response()
    response.status_code = status
    kind = docker.errors.NotFound if status == 404 else docker.errors.APIError
    return kind(words, response=response, explanation=words)


def failing(error: Exception) -> Behave:
    def behave(real: Any, *args: Any, **kwargs: Any) -> Any:
        raise error

    return behave


async def left_of(provider: DockerSandboxProvider, run: str) -> list[str]:
    return [left.name for left in await provider.leftovers() if left.run == run]


async def open_and_fail(provider: DockerSandboxProvider, wanted: SandboxSpec) -> SandboxFault:
    with pytest.raises(SandboxFault) as caught:
        async with provider.open(wanted):
            raise AssertionError("must not open")
    return caught.value


# --- opening ---


async def test_a_container_that_does_not_start_is_removed(base_pin: ImagePin) -> None:
    provider = provider_with(start=failing(engine_error(500, "OCI runtime create failed")))
    fault = await open_and_fail(provider, spec(base_pin, "no-start"))
    assert fault.reason == Reason.ENGINE_ERROR
    assert "OCI runtime create failed" in str(fault)
    assert await left_of(provider, "no-start") == []


async def test_a_container_whose_creation_was_not_answered_is_removed_by_name(base_pin: ImagePin) -> None:
    def create_and_lose(real: Any, *args: Any, **kwargs: Any) -> Any:
        real(*args, **kwargs)
        raise requests.ReadTimeout("timed out")

    provider = provider_with(create_container_from_config=create_and_lose)
    fault = await open_and_fail(provider, spec(base_pin, "lost-answer"))
    assert fault.reason == Reason.ENGINE_UNREACHABLE
    assert await left_of(provider, "lost-answer") == []


async def test_a_container_of_somebody_else_with_the_same_name_is_not_removed(base_pin: ImagePin) -> None:
    removed = []
    provider = provider_with(
        create_container_from_config=failing(
            engine_error(409, 'The container name "/x" is already in use by container "abc"')
        ),
        remove_container=lambda real, target, **kwargs: removed.append(target),
    )
    fault = await open_and_fail(provider, spec(base_pin, "conflict"))
    assert fault.reason == Reason.NAME_CONFLICT
    assert removed == []


async def test_cancelling_the_opening_leaves_nothing(base_pin: ImagePin) -> None:
    started = threading.Event()

    def slowly(real: Any, *args: Any, **kwargs: Any) -> Any:
        answer = real(*args, **kwargs)
        started.set()
        threading.Event().wait(0.5)
        return answer

    provider = provider_with(create_container_from_config=slowly)
    async with anyio.create_task_group() as group:

        async def open_it() -> None:
            async with provider.open(spec(base_pin, "cancelled")):
                raise AssertionError("must not open")

        group.start_soon(open_it)
        await anyio.to_thread.run_sync(started.wait)
        assert len(await left_of(provider, "cancelled")) == 1
        group.cancel_scope.cancel()
    assert await left_of(provider, "cancelled") == []


async def test_a_full_disk_and_a_used_up_pool_have_their_own_reasons(base_pin: ImagePin) -> None:
    full = engine_error(500, "failed to mkdir /var/lib/docker/overlay2/x: no space left on device")
    fault = await open_and_fail(provider_with(create_container_from_config=failing(full)), spec(base_pin, "full"))
    assert fault.reason == Reason.DISK_FULL
    pool = engine_error(
        500, "could not find an available, non-overlapping IPv4 address pool among the defaults to assign"
    )
    provider = provider_with(create_network=failing(pool))
    fault = await open_and_fail(provider, spec(base_pin, "pool", network=Network.GATEWAY))
    assert fault.reason == Reason.NETWORK_POOL
    assert "assay gc" in fault.remedy


async def test_an_engine_that_is_not_there_is_named(base_pin: ImagePin) -> None:
    for url in ("unix:///nowhere/docker.sock", "tcp://127.0.0.1:9"):
        provider = DockerSandboxProvider(url)
        fault = await open_and_fail(provider, spec(base_pin, "unreachable"))
        assert fault.reason == Reason.ENGINE_UNREACHABLE
        assert "assay doctor" in fault.remedy


# --- running ---


async def test_a_silent_command_outlives_the_client_timeout(
    base_pin: ImagePin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_CLIENT_TIMEOUT", "1")
    provider = provider_with(timeout=2)
    async with provider.open(spec(base_pin, "silent")) as sandbox:
        result = await sh(sandbox, "sleep 4; echo ok")
        assert (result.exit_code, result.stdout.text) == (0, "ok\n")


async def test_a_container_that_dies_is_not_started_again(base_pin: ImagePin) -> None:
    provider = DockerSandboxProvider()
    client: Any = docker.APIClient(version="auto", timeout=60)
    results: list[ExecResult] = []
    async with provider.open(spec(base_pin, "dies")) as sandbox:

        async def run() -> None:
            results.append(await sh(sandbox, "echo before; sleep 60"))

        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await anyio.sleep(0.7)
            await anyio.to_thread.run_sync(client.kill, sandbox.facts.id)
        assert (results[0].exit_code, results[0].timed_out) == (None, False)
        assert results[0].stdout.text == "before\n"
        health = await sandbox.health()
        assert (health.running, health.exit_code) == (False, 137)
        with pytest.raises(SandboxFault) as caught:
            await sh(sandbox, "true")
        assert caught.value.reason == Reason.CONTAINER_LOST
        assert "code 137" in str(caught.value)
        client.remove_container(sandbox.facts.id, force=True)
        with pytest.raises(SandboxFault) as caught:
            await sandbox.put(FileTree(), "/x", replace=True)
        assert caught.value.reason == Reason.CONTAINER_LOST
        with pytest.raises(SandboxFault):
            await sandbox.health()
    assert await left_of(provider, "dies") == []
    await provider.close()


class Wire:
    """Passes bytes between a socket of its own and the engine's, until it is cut as if the engine had died."""

    def __init__(self, path: Path) -> None:
        self.url = f"unix://{path}"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(64)
        self._ends: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        for end in (self._listener, *self._ends):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.socket(socket.AF_UNIX)
                far.connect("/var/run/docker.sock")
                self._ends += [near, far]
                for source, target in ((near, far), (far, near)):
                    threading.Thread(target=self._pump, args=(source, target), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(65536):
                target.sendall(piece)
            target.shutdown(socket.SHUT_WR)


async def test_an_engine_that_goes_away_under_a_command_is_the_engines_fault(
    base_pin: ImagePin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container_module, "_REMOVAL_PAUSES_S", (0.0, None))
    wire = Wire(tmp_path / "engine.sock")
    provider = DockerSandboxProvider(wire.url)
    with structlog.testing.capture_logs() as logs:
        async with provider.open(spec(base_pin, "gone")) as sandbox:
            assert (await sh(sandbox, "echo on")).stdout.text == "on\n"
            async with anyio.create_task_group() as group:

                async def run() -> None:
                    with pytest.raises(SandboxFault) as caught:
                        await sh(sandbox, "sleep 60")
                    assert caught.value.reason == Reason.ENGINE_UNREACHABLE

                group.start_soon(run)
                await anyio.sleep(0.7)
                wire.cut()
            with pytest.raises(SandboxFault) as caught:
                await sandbox.health()
            assert caught.value.reason == Reason.ENGINE_UNREACHABLE
    assert [entry["event"] for entry in logs] == ["sandbox.not_removed"]
    sweeper = DockerSandboxProvider()
    for left in await sweeper.leftovers():
        if left.run == "gone":
            await sweeper.remove(left)
    assert await left_of(sweeper, "gone") == []


async def test_a_timeout_that_falls_into_the_start_of_a_command_still_ends_it(base_pin: ImagePin) -> None:
    provider = DockerSandboxProvider()
    async with provider.open(spec(base_pin, "early")) as sandbox:
        for timeout_s in (0.001, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08):
            result = await sandbox.exec(Command(argv=("sleep", "60"), timeout_s=timeout_s))
            assert result.timed_out
            assert (await sandbox.end_processes()).found == 0
    await provider.close()


# --- removal ---


async def test_a_failing_removal_is_told_and_changes_nothing(
    base_pin: ImagePin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container_module, "_REMOVAL_PAUSES_S", (0.0, None))
    provider = provider_with(remove_container=failing(engine_error(500, "device or resource busy")))
    with structlog.testing.capture_logs() as logs:
        async with provider.open(spec(base_pin, "stuck")) as sandbox:
            assert (await sh(sandbox, "echo result")).stdout.text == "result\n"
    assert [(entry["event"], entry["container"]) for entry in logs] == [("sandbox.not_removed", sandbox.facts.id)]
    assert "device or resource busy" in logs[0]["error"]
    sweeper = DockerSandboxProvider()
    for left in await sweeper.leftovers():
        if left.run == "stuck":
            await sweeper.remove(left)
    assert await left_of(sweeper, "stuck") == []


async def test_a_hanging_removal_is_given_up(base_pin: ImagePin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container_module, "REMOVAL_DEADLINE_S", 0.3)
    answer = threading.Event()

    def late(real: Any, *args: Any, **kwargs: Any) -> Any:
        answer.wait(5)
        return real(*args, **kwargs)

    provider = provider_with(remove_container=late)
    with structlog.testing.capture_logs() as logs:
        async with provider.open(spec(base_pin, "hanging")):
            pass
    assert [entry["event"] for entry in logs] == ["sandbox.not_removed"]
    answer.set()
    with anyio.fail_after(20):
        while await left_of(provider, "hanging"):  # noqa: ASYNC110
            await anyio.sleep(0.05)


# --- the gateway's network ---


class _Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"from the gateway")

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


@contextmanager
def serving_at(host: str) -> Iterator[int]:
    with http.server.ThreadingHTTPServer((host, 0), _Answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


async def test_a_run_has_one_network_that_reaches_the_gateway_and_nothing_else(base_pin: ImagePin) -> None:
    provider = DockerSandboxProvider()
    wanted = spec(base_pin, "gateway", network=Network.GATEWAY)
    host = await provider.gateway_address("gateway")
    async with provider.open(wanted) as one, provider.open(wanted) as other:
        networks = [left for left in await provider.leftovers() if left.run == "gateway" and left.kind == "network"]
        assert len(networks) == 1
        with serving_at(host) as port:
            for sandbox in (one, other):
                assert (await sh(sandbox, f"curl -s http://{host}:{port}/")).stdout.text == "from the gateway"
        assert (await sh(one, "curl -s -m 3 http://1.1.1.1/")).exit_code != 0
        assert host in one.facts.enforced["network"]
    resumed = DockerSandboxProvider()
    assert await resumed.gateway_address("gateway") == host
    await provider.close()
    assert await left_of(resumed, "gateway") == []
    await resumed.close()
