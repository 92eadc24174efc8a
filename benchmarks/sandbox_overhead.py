"""What the Docker sandbox costs beyond the engine's own work.

One trial is the same in every variant: create, start, 3 commands, 2 copies in, 1 copy out, remove. The variants:

* assay     the sandbox, with all it does besides: limits, labels, keeper, process snapshots, facts read back;
* docker-py the same calls of the low-level client, made directly in threads;
* http      the same calls as bare HTTP over the engine's socket: the floor.

Trials of the variants alternate, so that a noisy machine is noisy for all. Run with
`python benchmarks/sandbox_overhead.py [--trials 20] [--concurrency 1 4]`; needs the engine and the base image.
"""

from __future__ import annotations

import argparse
import http.client
import io
import json
import resource
import socket
import statistics
import tarfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.to_thread
import docker
from docker.utils.socket import frames_iter

from harness.records.execution import Command, SandboxSpec
from harness.records.task import FileTree, ImagePin, Limits, TreeFile
from harness.sandbox.provider import DockerSandboxProvider

IMAGE = "assay-base:1"
SOCKET = "/var/run/docker.sock"
COMMANDS = (("true",), ("bash", "-c", "echo hello > /app/out"), ("cat", "/etc/passwd"))
WALL_TARGET, CPU_TARGET = 1.5, 2.0


@dataclass
class Measured:
    """Seconds of each trial, of all together, and of this process's own work."""

    walls_s: list[float] = field(default_factory=list)
    total_s: float = 0.0
    cpu_s: float = 0.0
    ends_s: list[float] = field(default_factory=list)


Trial = Callable[[Measured], Awaitable[None]]


def host_config() -> dict[str, Any]:
    return {"NetworkMode": "none", "Memory": 256 << 20, "MemorySwap": 256 << 20, "PidsLimit": 128, "CapDrop": ["ALL"]}


def tar_of(path: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        header = tarfile.TarInfo(path)
        header.size = len(content)
        archive.addfile(header, io.BytesIO(content))
    return buffer.getvalue()


def first_file(archive: bytes) -> bytes:
    with tarfile.open(fileobj=io.BytesIO(archive)) as members:
        file = members.extractfile(next(iter(members)))
        return file.read() if file else b""


def sandbox_trial(provider: DockerSandboxProvider, pin: ImagePin) -> Trial:
    limits = Limits(memory_mb=256, pids=128, disk_mb=None)
    files = FileTree(files=(TreeFile(path="x", content=b"1"),))

    async def run(measured: Measured) -> None:
        spec = SandboxSpec(run="bench", trial="bench/1", image=pin, limits=limits, workdir="/app")
        async with provider.open(spec) as sandbox:
            await sandbox.put(files, "/in/one")
            for argv in COMMANDS:
                await sandbox.exec(Command(argv=argv, timeout_s=60))
            await sandbox.put(files, "/tests", replace=True)
            await sandbox.read("/app/out", max_bytes=100)
            started_s = time.perf_counter()
            await sandbox.end_processes()
            measured.ends_s.append(time.perf_counter() - started_s)

    return run


def docker_py_trial(client: Any, image: str) -> Trial:
    frames: Any = frames_iter

    def work() -> None:
        config = {"Image": image, "Cmd": ["sleep", "600"], "WorkingDir": "/app"}
        container = client.create_container_from_config({**config, "HostConfig": {**host_config(), "Init": True}})["Id"]
        try:
            client.start(container)
            client.put_archive(container, "/", tar_of("in/one/x", b"1"))
            for argv in COMMANDS:
                run = client.exec_create(container, list(argv))["Id"]
                for _ in frames(client.exec_start(run, socket=True), tty=False):
                    pass
                client.exec_inspect(run)
            client.put_archive(container, "/", tar_of("tests/x", b"1"))
            first_file(b"".join(client.get_archive(container, "/app/out")[0]))
        finally:
            client.remove_container(container, force=True, v=True)

    return lambda measured: anyio.to_thread.run_sync(work)


class UnixConnection(http.client.HTTPConnection):
    """HTTP over the engine's socket."""

    def __init__(self) -> None:
        super().__init__("localhost")

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(SOCKET)


def http_trial(image: str) -> Trial:
    def ask(
        connection: UnixConnection, method: str, path: str, body: Any = None, kind: str = "application/json"
    ) -> bytes:
        data = json.dumps(body).encode() if kind == "application/json" and body is not None else body
        connection.request(method, path, data, {"Content-Type": kind})
        answer = connection.getresponse()
        content = answer.read()
        if answer.status >= 400:
            raise RuntimeError(f"{method} {path}: {answer.status} {content!r}")
        return content

    def execute(connection: UnixConnection, container: str, argv: tuple[str, ...]) -> None:
        wanted = {"AttachStdout": True, "AttachStderr": True, "Cmd": list(argv)}
        run = json.loads(ask(connection, "POST", f"/containers/{container}/exec", wanted))["Id"]
        stream = UnixConnection()
        stream.request("POST", f"/exec/{run}/start", b"{}", {"Content-Type": "application/json"})
        stream.getresponse().read()
        stream.close()
        ask(connection, "GET", f"/exec/{run}/json")

    def work() -> None:
        connection = UnixConnection()
        host = {**host_config(), "Init": True}
        config = {"Image": image, "Cmd": ["sleep", "600"], "WorkingDir": "/app", "HostConfig": host}
        container = json.loads(ask(connection, "POST", "/containers/create", config))["Id"]
        try:
            ask(connection, "POST", f"/containers/{container}/start")
            archive = f"/containers/{container}/archive?path="
            ask(connection, "PUT", archive + "/", tar_of("in/one/x", b"1"), "application/x-tar")
            for argv in COMMANDS:
                execute(connection, container, argv)
            ask(connection, "PUT", archive + "/", tar_of("tests/x", b"1"), "application/x-tar")
            first_file(ask(connection, "GET", archive + "/app/out"))
        finally:
            ask(connection, "DELETE", f"/containers/{container}?force=1&v=1")
            connection.close()

    return lambda measured: anyio.to_thread.run_sync(work)


def cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def run_round(trial: Trial, measured: Measured, count: int) -> None:
    """`count` trials at once."""

    async def one() -> None:
        started_s = time.perf_counter()
        await trial(measured)
        measured.walls_s.append(time.perf_counter() - started_s)

    started_s, started_cpu_s = time.perf_counter(), cpu_s()
    async with anyio.create_task_group() as group:
        for _ in range(count):
            group.start_soon(one)
    measured.total_s += time.perf_counter() - started_s
    measured.cpu_s += cpu_s() - started_cpu_s


def table(concurrency: int, trials: int, results: dict[str, Measured]) -> str:
    lines = [
        f"\n{trials} trials of each, {concurrency} at once",
        f"{'':10} {'wall/trial':>11} {'all trials':>11} {'cpu/trial':>10}   ratios of assay: wall, all, cpu",
    ]
    ours = results["assay"]
    for name, measured in results.items():
        wall, cpu = statistics.median(measured.walls_s), measured.cpu_s / trials
        line = f"{name:10} {wall * 1000:8.0f} ms {measured.total_s:9.2f} s {cpu * 1000:7.1f} ms"
        if measured is not ours:
            ratios = (
                statistics.median(ours.walls_s) / wall,
                ours.total_s / measured.total_s,
                ours.cpu_s / measured.cpu_s,
            )
            line += "   " + "  ".join(f"{ratio:.2f}x" for ratio in ratios)
        lines.append(line)
    ends = ours.ends_s
    lines.append(
        f"end_processes with nothing running: median {statistics.median(ends) * 1e3:.2f} ms (within assay's wall)"
    )
    return "\n".join(lines)


async def main(trials: int, concurrencies: list[int]) -> None:
    provider = DockerSandboxProvider()
    held = await provider.image(ImagePin(reference=IMAGE))
    if held is None:
        raise SystemExit(f"the engine holds no {IMAGE}: run `make setup`")
    client = docker.APIClient(version="auto", timeout=120, max_pool_size=32)
    variants = {
        "assay": sandbox_trial(provider, ImagePin(reference=IMAGE, digest=held.digest)),
        "docker-py": docker_py_trial(client, held.digest),
        "http": http_trial(held.digest),
    }
    for trial in variants.values():
        await trial(Measured())  # connections, caches, imports
    for concurrency in concurrencies:
        results = {name: Measured() for name in variants}
        for _ in range(trials // concurrency):
            for name, trial in variants.items():
                await run_round(trial, results[name], concurrency)
        print(table(concurrency, trials // concurrency * concurrency, results))
    print(f"\npeak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
    print(f"targets against docker-py: wall {WALL_TARGET}x, cpu {CPU_TARGET}x")
    await provider.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 4])
    arguments = parser.parse_args()
    anyio.run(main, arguments.trials, arguments.concurrency)
