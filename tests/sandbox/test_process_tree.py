"""Which processes belong to a command, and what the kernel's tables say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.sandbox.host_view import HostView, control_folders
from harness.sandbox.keeper import keeper_for
from harness.sandbox.process_tree import ProcessEntry, ProcessKey, parse_stat, select_foreign

KEEPER = 100


def row(pid: int, parent: int, state: str = "S", threads: int = 1) -> ProcessEntry:
    return ProcessEntry(ProcessKey(pid, started=pid * 10), parent, state, threads)


def table_of(*rows: ProcessEntry) -> dict[int, ProcessEntry]:
    return {entry.key.pid: entry for entry in (row(KEEPER, 1), *rows)}


def chosen(entries: tuple[ProcessEntry, ...]) -> list[int]:
    return [entry.key.pid for entry in entries]


def test_a_double_fork_belongs_to_the_command_and_a_service_with_its_workers_does_not() -> None:
    service, worker = row(110, KEEPER), row(111, 110)
    root, orphan, grandchild = row(120, 1), row(121, KEEPER), row(122, 121)
    table = table_of(service, worker, root, orphan, grandchild)
    assert chosen(select_foreign(table, keeper=KEEPER, before={service.key})) == [120, 121, 122]
    assert chosen(select_foreign(table, keeper=KEEPER, before={service.key}, spared_roots={120})) == [121, 122]
    assert chosen(select_foreign(table, keeper=KEEPER)) == [110, 111, 120, 121, 122]


def test_a_number_used_again_is_another_process() -> None:
    assert chosen(select_foreign(table_of(row(120, 1)), keeper=KEEPER, before={ProcessKey(120, started=7)})) == [120]


def test_the_dead_need_no_killing_but_a_zombie_with_threads_does() -> None:
    table = table_of(row(120, 1, "Z"), row(121, 1, "X"), row(122, 1, "Z", threads=2))
    assert chosen(select_foreign(table, keeper=KEEPER)) == [122]


@given(st.lists(st.integers(0, 30), min_size=30, max_size=30), st.sets(st.integers(0, 29)), st.sets(st.integers(0, 29)))
def test_the_selection_is_everything_that_no_spared_process_is_above(
    parents: list[int], before: set[int], roots: set[int]
) -> None:
    pids = [KEEPER + 1 + index for index in range(30)]
    table = table_of(*(row(pid, KEEPER + parent) for pid, parent in zip(pids, parents, strict=True)))
    spared_pids = {pids[index] for index in before | roots}
    selected = set(
        chosen(
            select_foreign(
                table,
                keeper=KEEPER,
                before={table[pids[index]].key for index in before},
                spared_roots={pids[index] for index in roots},
            )
        )
    )
    assert KEEPER not in selected
    assert not selected & spared_pids
    for pid in pids:
        above, seen = pid, set()
        while above in table and above != KEEPER and above not in seen and above not in spared_pids:
            seen.add(above)
            above = table[above].parent
        assert (pid in selected) == (above not in spared_pids)


def test_a_name_may_hold_anything() -> None:
    stat = b"42 (a) b (c\n) R 7 42 42 0 -1 4194308 1 0 0 0 1 2 0 0 20 0 3 0 998877 1000 5"
    entry = parse_stat(stat)
    assert entry == ProcessEntry(ProcessKey(42, 998877), 7, "R", threads=3, exiting=True)
    with pytest.raises(ValueError, match="not a stat line"):
        parse_stat(b"42 (x) R 7")


def test_this_process_is_read_as_the_kernel_has_it() -> None:
    entry = parse_stat(Path("/proc/self/stat").read_bytes())
    assert (entry.key.pid, entry.parent, entry.alive, entry.exiting) == (os.getpid(), os.getppid(), True, False)


V1 = """\
30 24 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
31 30 0:27 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
32 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
33 30 0:29 / /mnt/with\\040space rw,relatime - cgroup cgroup rw,pids
"""
V2 = "30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"


def test_control_groups_of_both_kinds_are_found() -> None:
    membership = "9:memory:/docker/abc\n8:cpu,cpuacct:/docker/abc\n7:pids:/docker/abc\n1:name=systemd:/x\n0::/\n"
    assert control_folders(membership, V1) == {
        "memory": Path("/sys/fs/cgroup/memory/docker/abc"),
        "cpu": Path("/sys/fs/cgroup/cpu,cpuacct/docker/abc"),
        "cpuacct": Path("/sys/fs/cgroup/cpu,cpuacct/docker/abc"),
        "pids": Path("/mnt/with space/docker/abc"),
    }
    assert control_folders("0::/system.slice/docker-abc.scope\n", V2) == {
        "": Path("/sys/fs/cgroup/system.slice/docker-abc.scope")
    }


def view_of(tmp_path: Path, membership: str, mountinfo: str, keeper: int) -> HostView | None:
    """A view through a made-up /proc: the keeper is this process, so that it may be signalled."""
    for pid, text in ((str(keeper), membership), ("self", "")):
        (tmp_path / pid).mkdir()
        (tmp_path / pid / "cgroup").write_text(text)
    (tmp_path / "self" / "mountinfo").write_text(mountinfo)
    return HostView.locate("abc", keeper, proc=tmp_path)


@pytest.mark.parametrize("unified", [False, True])
def test_counters_are_read_in_both_kinds(tmp_path: Path, unified: bool) -> None:
    keeper = os.getpid()
    folder = tmp_path / "cg" / "docker" / "abc"
    folder.mkdir(parents=True)
    (folder / "cgroup.procs").write_text(f"{keeper}\n")
    (folder / "pids.events").write_text("max 7\n")
    kind, membership = ("cgroup2", "0::/docker/abc\n") if unified else ("cgroup", "3:memory,pids:/docker/abc\n")
    name = "memory.events" if unified else "memory.oom_control"
    (folder / name).write_text("oom 9\nunder_oom 0\noom_kill 3\n")
    (folder / ("memory.peak" if unified else "memory.max_usage_in_bytes")).write_text("9000\n")
    stat = "file 3000\nshmem 1000\n" if unified else "cache 9\ntotal_cache 3000\ntotal_shmem 1000\n"
    (folder / "memory.stat").write_text(stat)
    view = view_of(tmp_path, membership, f"30 24 0:26 / {tmp_path}/cg rw - {kind} c rw,memory,pids\n", keeper)
    assert view is not None
    assert (view.memory_kills(), view.forks_refused(), view.peak_memory()) == (3, 7, 7000)


@pytest.mark.parametrize(
    "membership",
    ["0::/docker/another\n", "0::/docker/abc-but-not-mounted\n", ""],
    ids=["another process", "no such folder", "nothing"],
)
def test_processes_of_another_machine_are_not_taken_for_the_containers(tmp_path: Path, membership: str) -> None:
    mountinfo = f"30 24 0:26 / {tmp_path}/cg rw - cgroup2 c rw\n"
    assert view_of(tmp_path, membership, mountinfo, os.getpid()) is None


def test_a_process_that_is_not_the_containers_is_not_killed() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        seen = parse_stat(Path(f"/proc/{child.pid}/stat").read_bytes())
        view = HostView("no-such-container", 1, Path("/nowhere"), None, None)
        view.kill(seen)
        assert child.poll() is None
        own = Path("/proc/self/cgroup").read_text().splitlines()[0].rpartition(":")[2]
        HostView(own, 1, Path("/nowhere"), None, None).kill(seen._replace(key=ProcessKey(child.pid, 1)))
        assert child.poll() is None
        HostView(own, 1, Path("/nowhere"), None, None).kill(seen)
        assert child.wait(timeout=10) == -9
    finally:
        child.kill()
        child.wait()


def test_the_keeper_of_this_machine_runs_and_waits(tmp_path: Path) -> None:
    content = keeper_for(os.uname().machine)
    assert content is not None
    program = tmp_path / "keeper"
    program.write_bytes(content)
    program.chmod(0o755)
    child = subprocess.Popen([program])
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(timeout=0.3)
        status = Path(f"/proc/{child.pid}/status").read_text()
        ignored = int(status.split("SigIgn:")[1].split()[0], 16)
        assert ignored & 1 << 16  # SIGCHLD
    finally:
        child.kill()
        child.wait()


def test_there_is_a_keeper_for_the_architectures_that_images_come_in() -> None:
    for name, machine in (("amd64", 62), ("arm64", 183)):
        content = keeper_for(name)
        assert content is not None
        assert content[:4] == b"\x7fELF"
        assert int.from_bytes(content[18:20], "little") == machine
    assert keeper_for("s390x") is None
