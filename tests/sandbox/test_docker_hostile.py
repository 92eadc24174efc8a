"""What an image or an agent may do to a Docker sandbox, and what must hold all the same."""

from __future__ import annotations

import io
import os
import platform
import resource
import tarfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import docker
import pytest

from harness.protocols import Sandbox, SandboxFileError
from harness.records.execution import Command, ExecResult, SandboxSpec
from harness.records.task import FileTree, ImagePin, Limits, TreeFile
from harness.sandbox.docker_sandbox import DockerSandbox
from harness.sandbox.keeper import KEEPER_PATH, keeper_for
from harness.sandbox.provider import DockerSandboxProvider

from .contract import sh, tree

pytestmark = [pytest.mark.docker, pytest.mark.anyio]

MIB = 1024 * 1024


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def provider() -> AsyncIterator[DockerSandboxProvider]:
    provider = DockerSandboxProvider()
    yield provider
    await provider.close()


def spec(pin: ImagePin, **limits: object) -> SandboxSpec:
    wanted = Limits.model_validate({"memory_mb": 256, "pids": 256, "cpus": 2, **limits})
    return SandboxSpec(run="hostile", trial="hostile/1", image=pin, limits=wanted, workdir="/app")


async def processes_of(sandbox: Sandbox) -> list[tuple[str, str]]:
    """State and command of every process inside, as `ps` of a fresh image sees it, but for `ps` itself."""
    result = await sandbox.exec(Command(argv=("ps", "-eo", "stat=,args="), timeout_s=30))
    rows = [line.split(None, 1) for line in result.stdout.text.splitlines()]
    return [(state[0], args) for state, args in rows if not args.startswith("ps ")]


async def test_tools_that_an_agent_replaced_are_not_relied_on(
    provider: DockerSandboxProvider, base_pin: ImagePin
) -> None:
    async with provider.open(spec(base_pin)) as sandbox:
        await sh(
            sandbox,
            "for tool in sh dash kill sleep timeout setsid ps true cat tar ls env; do "
            "rm -f /bin/$tool /usr/bin/$tool; printf '#!/bin/bash\\nexit 0\\n' > /usr/bin/$tool; "
            f"chmod +x /usr/bin/$tool; done; rm -f {KEEPER_PATH}; mkdir {KEEPER_PATH}",
        )
        loop = "while :; do echo x >> /app/grow; read -t 0.05 < <(:); done"
        result = await sh(sandbox, f"(bash -c '{loop}' &); ({loop}) & while :; do :; done", timeout_s=1.0)
        assert result.timed_out
        before = await sandbox.read("/app/grow", max_bytes=MIB)
        await anyio.sleep(0.3)
        assert await sandbox.read("/app/grow", max_bytes=MIB) == before
        await sh(sandbox, f"({loop}) > /dev/null 2>&1 & disown")
        assert (await sandbox.end_processes()).found >= 1
        await sandbox.put(tree(t=b"1"), "/tests", replace=True)
        assert await sandbox.read("/tests/t", max_bytes=9) == b"1"


async def test_root_inside_cannot_end_the_container(provider: DockerSandboxProvider, base_pin: ImagePin) -> None:
    async with provider.open(spec(base_pin)) as sandbox:
        await sh(sandbox, "sleep 60 & kill -9 -1; kill -9 1; kill -TERM 1; kill -SEGV 1; sleep 0.2")
        health = await sandbox.health()
        assert health.running
        assert (await sh(sandbox, "echo on")).stdout.text == "on\n"


async def test_a_fork_bomb_ends_with_its_timeout_and_the_container_is_not_left_frozen(
    provider: DockerSandboxProvider, base_pin: ImagePin
) -> None:
    async with provider.open(spec(base_pin, pids=128)) as sandbox:
        result = await sh(sandbox, "f() { f | f & }; f; sleep 60", timeout_s=1.0)
        assert result.timed_out
        assert result.processes_ended > 10
        assert await processes_of(sandbox) == [("S", KEEPER_PATH)]
        assert "forks were refused" in (await sandbox.health()).detail


async def test_a_process_whose_first_thread_has_ended_is_not_taken_for_dead(
    provider: DockerSandboxProvider, base_pin: ImagePin
) -> None:
    code = (
        b"import ctypes, threading, time\n"
        b"def grow():\n"
        b"    while True:\n"
        b"        open('/app/grow', 'ab').write(b'x'); time.sleep(0.02)\n"
        b"threading.Thread(target=grow).start()\n"
        b"ctypes.CDLL(None).pthread_exit(None)\n"
    )
    async with provider.open(spec(base_pin)) as sandbox:
        await sandbox.put(FileTree(files=(TreeFile(path="t.py", content=code),)), "/app")
        await sh(sandbox, "setsid python3 /app/t.py > /dev/null 2>&1 & sleep 0.5")
        assert ("Z", "[python3] <defunct>") in await processes_of(sandbox)
        assert (await sandbox.end_processes()).found >= 1
        before = await sandbox.read("/app/grow", max_bytes=MIB)
        await anyio.sleep(0.3)
        assert await sandbox.read("/app/grow", max_bytes=MIB) == before


async def test_orphans_leave_no_zombies(provider: DockerSandboxProvider, base_pin: ImagePin) -> None:
    async with provider.open(spec(base_pin, pids=600)) as sandbox:
        for _ in range(3):
            result = await sh(sandbox, "for i in $(seq 500); do (sleep 0.01 &) ; done; sleep 0.3")
            assert result.exit_code == 0
        assert await processes_of(sandbox) == [("S", KEEPER_PATH)]


async def test_a_daemon_that_holds_the_output_does_not_hold_the_command(
    provider: DockerSandboxProvider, base_pin: ImagePin
) -> None:
    async with provider.open(spec(base_pin)) as sandbox:
        result = await sh(sandbox, "echo started; sleep 60 & exit 3")
        assert (result.exit_code, result.stdout.text, result.stdio_held_open) == (3, "started\n", True)
        assert result.duration_s < 2
        flood = await sh(sandbox, "yes & exit 4")
        assert flood.exit_code == 4
        assert flood.duration_s < 10


async def test_a_command_that_closes_its_output_is_waited_for(
    provider: DockerSandboxProvider, base_pin: ImagePin
) -> None:
    async with provider.open(spec(base_pin)) as sandbox:
        result = await sh(sandbox, "echo said; exec > /dev/null 2>&1; sleep 1; exit 5")
        assert (result.exit_code, result.stdout.text) == (5, "said\n")
        assert result.duration_s >= 1
        assert (await sh(sandbox, "exec > /dev/null 2>&1; sleep 60", timeout_s=1.0)).timed_out


async def test_a_memory_kill_is_named_though_the_command_hides_it(
    provider: DockerSandboxProvider, base_pin: ImagePin
) -> None:
    async with provider.open(spec(base_pin, memory_mb=64)) as sandbox:
        before = sandbox.facts.id
        assert not (await sandbox.health()).memory_killed
        result = await sh(sandbox, "python3 -c 'x = bytearray(200 << 20)'; exit 0")
        assert (result.exit_code, result.memory_killed) == (0, True)
        health = await sandbox.health()
        assert (health.running, health.memory_killed) == (True, True)
        assert "memory" in health.detail
        later = await sh(sandbox, "kill -9 $$")
        assert (later.exit_code, later.memory_killed) == (137, False)
        assert sandbox.facts.id == before


async def test_a_flood_of_output_does_not_grow_the_harness(provider: DockerSandboxProvider, base_pin: ImagePin) -> None:
    async with provider.open(spec(base_pin)) as sandbox:
        await sh(sandbox, "true")
        before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        result = await sh(sandbox, "head -c 200000000 /dev/zero; echo; echo verdict >&2; echo end", timeout_s=120)
        grown_mib = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib) / 1024
        assert result.stdout.seen_bytes == 200_000_005
        assert result.stdout.tail.endswith(b"\nend\n")
        assert result.stderr.text == "verdict\n"
        assert grown_mib < 20


async def test_an_endless_flood_ends_with_its_timeout(provider: DockerSandboxProvider, base_pin: ImagePin) -> None:
    async with provider.open(spec(base_pin)) as sandbox:
        result = await sh(sandbox, "yes", timeout_s=1.0)
        assert result.timed_out
        assert result.stdout.truncated
        assert result.duration_s < 5


async def test_names_that_are_no_text_survive(provider: DockerSandboxProvider, base_pin: ImagePin) -> None:
    odd = b"caf\xe9\n\xff".decode("utf-8", "surrogateescape")
    async with provider.open(spec(base_pin)) as sandbox:
        await sh(sandbox, r"""mkdir /d; echo 1 > $'/d/caf\xe9\n\xff'; ln -s $'\xfe' /d/link""")
        assert await sandbox.list("/d") == (odd, "link")
        assert await sandbox.read(f"/d/{odd}", max_bytes=9) == b"1\n"
        await sh(sandbox, r"mkdir $'/d/fol\xffder'; echo 2 > $'/d/fol\xffder/x'")
        assert await sandbox.list("/d/fol\udcffder") == ("x",)
        assert await sandbox.read("/d/fol\udcffder/x", max_bytes=9) == b"2\n"
        await sh(sandbox, r"rm -r $'/d/fol\xffder'")
        archive = await sandbox.fetch("/d", max_bytes=MIB)
        await sandbox.restore(archive, "/copy")
        assert await sandbox.list("/copy/d") == (odd, "link")
        assert any(change.startswith("A /d/caf") for change in await sandbox.changes())


async def test_no_file_grows_past_the_disk_limit_and_the_sum_is_measured(
    provider: DockerSandboxProvider, base_pin: ImagePin
) -> None:
    async with provider.open(spec(base_pin, disk_mb=8)) as sandbox:
        result = await sh(sandbox, "head -c 20M /dev/zero > /app/big")
        assert result.exit_code != 0
        await sh(sandbox, "for i in 1 2; do head -c 6M /dev/zero > /app/$i; done")
        written = (await sandbox.health()).disk_bytes
        assert written is not None
        assert 19 * MIB < written < 22 * MIB
        assert sandbox.facts.enforced["disk"].startswith(("emulated:", "quota:"))


async def test_limits_reach_the_commands(provider: DockerSandboxProvider, base_pin: ImagePin) -> None:
    async with provider.open(spec(base_pin)) as sandbox:
        status = (await sh(sandbox, "cat /proc/self/status; ls /sys/class/net")).stdout.text
        assert "CapEff:\t0000000000000000" in status
        assert "NoNewPrivs:\t1" in status
        assert status.splitlines()[-1] == "lo"
    wider = spec(base_pin).model_copy(update={"capabilities": ("CHOWN",), "user": "1000:1000"})
    async with provider.open(wider) as sandbox:
        assert (await sh(sandbox, "id -u")).stdout.text == "1000\n"
        assert (await sh(sandbox, "touch /x && chown 7 /x && stat -c %u /x", user="0")).stdout.text == "7\n"


async def test_two_commands_at_once_are_ended_apart(provider: DockerSandboxProvider, base_pin: ImagePin) -> None:
    results: dict[str, ExecResult] = {}

    async def run(sandbox: Sandbox, name: str, line: str, timeout_s: float) -> None:
        results[name] = await sh(sandbox, line, timeout_s=timeout_s)

    async with provider.open(spec(base_pin)) as sandbox, anyio.create_task_group() as group:
        group.start_soon(run, sandbox, "short", "sleep 60", 1.0)
        await anyio.sleep(0.4)
        group.start_soon(run, sandbox, "long", "bash -c 'sleep 2; echo done'", 30.0)
    assert results["short"].timed_out
    assert (results["long"].exit_code, results["long"].stdout.text) == (0, "done\n")


async def test_commands_cut_off_while_they_start_do_not_freeze_the_container(
    provider: DockerSandboxProvider, base_pin: ImagePin
) -> None:
    """An engine that is asked to start a command in a frozen container answers neither that nor anything after."""
    command = Command(argv=("bash", "-c", "sleep 1; echo late >> /app/late"), timeout_s=30)
    for cut_after_s in (0.01, 0.05, 0.15):
        async with provider.open(spec(base_pin)) as sandbox:
            with anyio.fail_after(60):
                with anyio.move_on_after(cut_after_s):
                    async with anyio.create_task_group() as group:
                        for _ in range(6):
                            group.start_soon(sandbox.exec, command)
                assert await processes_of(sandbox) == [("S", KEEPER_PATH)]
                await anyio.sleep(1.2)
                assert await sandbox.list("/app") == ()


async def test_a_command_cut_off_spares_one_that_is_starting(
    provider: DockerSandboxProvider, base_pin: ImagePin
) -> None:
    async with provider.open(spec(base_pin)) as sandbox:
        codes = []

        async def other() -> None:
            await anyio.sleep(0.5)
            for _ in range(8):
                codes.append((await sh(sandbox, "sleep 0.05")).exit_code)

        async with anyio.create_task_group() as group:
            group.start_soon(other)
            for _ in range(4):
                assert (await sh(sandbox, "sleep 60", timeout_s=0.6)).timed_out
        assert codes == [0] * 8


async def test_an_image_with_nothing_in_it_will_do(bare_pin: ImagePin, provider: DockerSandboxProvider) -> None:
    async with provider.open(spec(bare_pin)) as sandbox:
        result = await sandbox.exec(Command(argv=("/waits",), timeout_s=1.0))
        assert result.timed_out
        assert (await sandbox.end_processes()).found == 0
        missing = await sandbox.exec(Command(argv=("bash", "-c", "true"), timeout_s=10))
        assert missing.exit_code in (126, 127)
        assert b"exec failed" in missing.stderr.head
        await sandbox.put(tree(x=b"1"), "/logs/verifier", replace=True)
        assert await sandbox.list("/logs") == ("verifier", "verifier/x")


@pytest.fixture
def bare_pin(base_pin: ImagePin) -> Iterator[ImagePin]:
    """An image without a shell, of one static program that waits."""
    content = keeper_for(platform.machine())
    assert content is not None
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        header = tarfile.TarInfo("waits")
        header.mode, header.size = 0o755, len(content)
        archive.addfile(header, io.BytesIO(content))
    client: Any = docker.APIClient(version="auto", timeout=60)
    name = f"assay-test-bare-{os.getpid()}"
    client.import_image_from_data(buffer.getvalue(), repository=name, tag="1")
    try:
        yield ImagePin(reference=f"{name}:1", digest=client.inspect_image(f"{name}:1")["Id"])
    finally:
        client.remove_image(f"{name}:1", force=True)
        client.close()


async def test_folders_nested_without_end_and_rings_of_links_are_no_fault(
    provider: DockerSandboxProvider, base_pin: ImagePin
) -> None:
    nest = "import os\nos.chdir('/tmp')\nfor _ in range(3000): os.mkdir('d' * 9); os.chdir('d' * 9)"
    async with provider.open(spec(base_pin)) as sandbox:
        assert (await sandbox.exec(Command(argv=("python3", "-c", nest), timeout_s=60))).exit_code == 0
        await sh(sandbox, "mkdir /logs; ln -s verifier /logs/verifier; ln -s tests /tests; echo >> /etc/hostname.new")
        changes = await sandbox.changes()
        assert "A /tmp/ddddddddd/ddddddddd" in changes
        assert "A /etc/hostname.new" in changes
        for folder in ("/logs/verifier", "/tests"):
            assert await sandbox.list(folder) == ()
            with pytest.raises(SandboxFileError, match="missing"):
                await sandbox.fetch(f"{folder}/x", max_bytes=1000)
            await sandbox.put(tree(test_sh=b"x"), folder, replace=True)
            assert await sandbox.read(f"{folder}/test_sh", max_bytes=10) == b"x"


async def test_changes_are_those_that_the_engine_finds(provider: DockerSandboxProvider, base_pin: ImagePin) -> None:
    changes = """
        echo new > /app/new; mkdir -p /app/a/b && echo x > /app/a/b/c; mkdir /app/empty; ln -s new /app/link
        echo more >> /etc/profile; chmod 600 /etc/issue; chmod 700 /srv; touch -d 2001-01-01 /etc/motd
        rm /etc/debian_version; rm -r /usr/share/bash-completion /etc/skel
        rm -r /etc/profile.d /etc/apt; mkdir /etc/apt /etc/profile.d; echo again > /etc/apt/sources.list
        mv /etc/pam.d /etc/moved 2> /dev/null; rm -r /usr/share/pam; echo file > /usr/share/pam
        touch /etc/hosts2 && rm /etc/hosts2; : >> /etc/shells; touch /tmp/t; mkfifo /tmp/p; rm -rf /app/a/b
    """
    async with provider.open(spec(base_pin)) as sandbox:
        await sh(sandbox, changes)
        assert sandbox._files.layers is not None or os.geteuid() != 0
        found = await sandbox.changes()
        assert set(found) == set(await sandbox._files.engine_changes())
        assert {"A /app/new", "C /etc/profile", "D /etc/debian_version", "A /app/a"} <= set(found)
        assert len(found) > 15


def test_it_runs_on_trio_as_well(base_pin: ImagePin) -> None:
    async def main() -> None:
        provider = DockerSandboxProvider()
        async with provider.open(spec(base_pin)) as sandbox:
            result = await sh(sandbox, "cat; echo before; yes", stdin=b"given ", timeout_s=1.0)
            assert result.timed_out
            assert result.stdout.head.startswith(b"given before\ny\ny\n")
            with anyio.move_on_after(0.5) as scope:
                await sh(sandbox, "sleep 60")
            assert scope.cancelled_caught
            assert (await sandbox.end_processes()).found == 0
        await provider.close()

    anyio.run(main, backend="trio")


# --- where the engine's processes are out of reach, as with a remote engine ---


@asynccontextmanager
async def remote_sandbox(pin: ImagePin) -> AsyncIterator[DockerSandbox]:
    provider = DockerSandboxProvider(host_signals=False)
    async with provider.open(spec(pin)) as sandbox:
        yield sandbox
    await provider.close()


async def test_out_of_reach_a_timeout_restarts_the_container(base_pin: ImagePin) -> None:
    async with remote_sandbox(base_pin) as sandbox:
        await sh(sandbox, f"rm {KEEPER_PATH}; ln -s /bin/false {KEEPER_PATH}; echo kept > /app/kept")
        line = "echo before; (setsid bash -c 'while :; do echo x >> /app/grow; sleep 0.05; done' &); sleep 60"
        result = await sh(sandbox, line, timeout_s=1.5)
        assert (result.timed_out, result.stdout.text) == (True, "before\n")
        assert result.processes_ended >= 2
        before = await sandbox.read("/app/grow", max_bytes=MIB)
        await anyio.sleep(0.3)
        assert await sandbox.read("/app/grow", max_bytes=MIB) == before
        assert (await sh(sandbox, "cat /app/kept")).stdout.text == "kept\n"
        assert (await sandbox.health()).running


async def test_out_of_reach_the_seal_restarts_only_when_something_runs(base_pin: ImagePin) -> None:
    async with remote_sandbox(base_pin) as sandbox:
        assert (await sandbox.end_processes()).method == "none"
        await sh(sandbox, "sleep 60 > /dev/null 2>&1 &")
        report = await sandbox.end_processes()
        assert (report.found, report.method) == (1, "restart")
        assert await processes_of(sandbox) == [("S", KEEPER_PATH)]


async def test_out_of_reach_a_cancelled_command_is_ended(base_pin: ImagePin) -> None:
    async with remote_sandbox(base_pin) as sandbox:
        with anyio.move_on_after(1.0) as scope:
            await sh(sandbox, "sleep 60")
        assert scope.cancelled_caught
        assert await processes_of(sandbox) == [("S", KEEPER_PATH)]
