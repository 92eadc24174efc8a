"""Which process this is, and which of the processes that own containers are still there, as this machine's kernel
shows them."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.records.execution import Owner
from harness.sandbox.process_tree import ProcessEntry, parse_stat

PROC = Path("/proc")
MACHINE_ID = Path("/etc/machine-id")


@dataclass(frozen=True)
class MachineFacts:
    """What this machine knows of owners. A process number that is absent from `processes` is nobody's; None stands for
    a process that exists but is not shown to this user."""

    me: Owner
    processes: Mapping[int, ProcessEntry | None]


def this_process(proc: Path = PROC, machine_id: Path = MACHINE_ID) -> Owner:
    """This process as an owner. What the kernel does not tell is "" or 0, and makes the owner unknowable elsewhere."""
    stat = _entry(os.getpid(), proc)
    return Owner(
        host=socket.gethostname().replace("/", "-"),
        machine=_text(machine_id).replace("/", "-"),
        boot=_text(proc / "sys/kernel/random/boot_id"),
        namespace=_inode(proc / "self/ns/pid"),
        pid=os.getpid(),
        started=stat.key.started if stat is not None else 0,
    )


def look_around(pids: Iterable[int], proc: Path = PROC, machine_id: Path = MACHINE_ID) -> MachineFacts:
    """The facts about some process numbers of this namespace, now."""
    found = {pid: _entry(pid, proc) for pid in set(pids) if pid > 0}
    return MachineFacts(
        this_process(proc, machine_id),
        {pid: entry for pid, entry in found.items() if entry is not None or _exists(pid)},
    )


def _entry(pid: int, proc: Path) -> ProcessEntry | None:
    try:
        return parse_stat((proc / str(pid) / "stat").read_bytes())
    except (OSError, ValueError):
        return None


def _exists(pid: int) -> bool:
    """Whether the number is taken: /proc may be mounted so that it hides other users' processes (hidepid)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0
