"""A container's processes and counters as the kernel of this machine shows them, where it is the engine's machine too.

Needs nothing inside the container. Cgroup v1 and v2 alike.
"""

from __future__ import annotations

import errno
import os
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.sandbox.capabilities import bounding_set
from harness.sandbox.process_tree import ProcessEntry, ProcessKey, parse_stat

# The group is gone, or going, or threaded: then the group above it lists its processes.
_NO_LISTING = (errno.ENOENT, errno.ENODEV, errno.EOPNOTSUPP)
_PROCESS_CONTROLLERS = ("", "pids", "memory", "freezer", "devices")  # "" is the unified hierarchy


@dataclass(frozen=True)
class HostView:
    """Look at the processes of one container, and signal them, by their numbers on the host."""

    container: str
    keeper: int
    folder: Path  # the control group whose cgroup.procs lists the container's processes
    memory_folder: Path | None
    pids_folder: Path | None
    proc: Path = Path("/proc")

    @classmethod
    def locate(cls, container: str, keeper: int, proc: Path = Path("/proc")) -> HostView | None:
        """The view of a running container, or None where its processes are not this machine's to see or to signal."""
        if keeper <= 0 or not hasattr(os, "pidfd_open") or not hasattr(signal, "pidfd_send_signal"):
            return None
        try:
            if container not in (proc / str(keeper) / "cgroup").read_text():
                return None
            folders = control_folders(
                (proc / str(keeper) / "cgroup").read_text(), (proc / "self" / "mountinfo").read_text()
            )
            listing = [folders[name] for name in _PROCESS_CONTROLLERS if name in folders]
            folder = next((folder for folder in listing if keeper in _pids_in(folder)), None)
            os.close(os.pidfd_open(keeper))
        except OSError:
            return None
        if folder is None:
            return None
        unified = folders.get("")
        return cls(container, keeper, folder, folders.get("memory", unified), folders.get("pids", unified), proc)

    def table(self) -> dict[int, ProcessEntry]:
        """The container's processes by number, the keeper among them; those that end meanwhile are left out."""
        found = {}
        for folder, _, _ in os.walk(self.folder):
            for pid in _pids_in(Path(folder)):
                entry = self._entry(pid)
                if entry is not None:
                    found[pid] = entry
        return found

    def keys(self) -> frozenset[ProcessKey]:
        """Identities of all processes but the keeper."""
        return frozenset(entry.key for pid, entry in self.table().items() if pid != self.keeper)

    def keeper_is_up(self) -> bool:
        """Whether the container lives: its end begins with the keeper's, before the others are killed."""
        entry = self._entry(self.keeper)
        return entry is not None and entry.alive and not entry.exiting and self._is_ours(self.keeper)

    def kill(self, entry: ProcessEntry) -> None:
        """SIGKILL, for certain to the process that was seen: the number may since be another's, even the host's own.

        Raises PermissionError where this user may not signal it.
        """
        try:
            handle = os.pidfd_open(entry.key.pid)
        except ProcessLookupError:
            return
        try:
            now = self._entry(entry.key.pid)
            if now is not None and now.key == entry.key and self._is_ours(entry.key.pid):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        except ProcessLookupError:
            return
        finally:
            os.close(handle)

    def memory_kills(self) -> int | None:
        """How often the kernel killed for memory in the container since it started; None where it does not tell."""
        return _counter(self.memory_folder, ("memory.events", "memory.oom_control"), "oom_kill")

    def peak_memory(self) -> int | None:
        """Most bytes in use at once since the container started, without page cache that the kernel holds now and
        could let go: an estimate, from above where cached files were deleted meanwhile. None where it does not tell.
        """
        peak = _number(self.memory_folder, ("memory.peak", "memory.max_usage_in_bytes"))
        if peak is None:
            return None
        cached = _either(self.memory_folder, "total_cache", "file")  # cgroup v1, v2
        shared = _either(self.memory_folder, "total_shmem", "shmem")  # counted as cache, but nobody can let it go
        return max(0, peak - max(0, (cached or 0) - (shared or 0)))

    def forks_refused(self) -> int | None:
        """How often the process limit refused a new process; None where the kernel does not tell."""
        return _counter(self.pids_folder, ("pids.events",), "max")

    def capabilities(self) -> tuple[str, ...] | None:
        """What the container may at most, by name; None where the kernel does not tell."""
        try:
            return bounding_set((self.proc / str(self.keeper) / "status").read_text())
        except OSError:
            return None

    def _entry(self, pid: int) -> ProcessEntry | None:
        try:
            return parse_stat((self.proc / str(pid) / "stat").read_bytes())
        except (FileNotFoundError, ProcessLookupError):
            return None

    def _is_ours(self, pid: int) -> bool:
        try:
            return self.container in (self.proc / str(pid) / "cgroup").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return False


def control_folders(membership: str, mountinfo: str) -> dict[str, Path]:
    """The folder of each controller for a process; "" stands for the unified hierarchy.

    `membership` is the text of `/proc/PID/cgroup`, `mountinfo` that of `/proc/self/mountinfo`.
    """
    mounts = dict(_control_mounts(mountinfo))
    found = {}
    for line in membership.splitlines():
        _, names, path = line.split(":", 2)
        for name in names.split(","):
            mount = mounts.get(name)
            if mount is not None:
                found[name] = mount / path.lstrip("/")
    return found


def _control_mounts(mountinfo: str) -> Iterator[tuple[str, Path]]:
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        kind, _, options = (*right.split(" "), "", "")[:3]
        mount = Path(re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), left.split(" ")[4]))
        if kind == "cgroup2":
            yield "", mount
        elif kind == "cgroup":
            for option in options.split(","):
                yield option, mount


def _pids_in(folder: Path) -> list[int]:
    try:
        return [int(pid) for pid in (folder / "cgroup.procs").read_bytes().split()]
    except OSError as error:
        if error.errno in _NO_LISTING:
            return []
        raise


def _either(folder: Path | None, *names: str) -> int | None:
    found = (_counter(folder, ("memory.stat",), name) for name in names)
    return next((value for value in found if value is not None), None)


def _number(folder: Path | None, files: tuple[str, ...]) -> int | None:
    for file in files:
        try:
            return int((folder / file).read_text()) if folder else None
        except (OSError, ValueError):
            continue
    return None


def _counter(folder: Path | None, files: tuple[str, ...], name: str) -> int | None:
    for file in files:
        try:
            lines = (folder / file).read_text().splitlines() if folder else []
        except OSError:
            continue
        for line in lines:
            key, _, value = line.partition(" ")
            if key == name:
                return int(value)
    return None
