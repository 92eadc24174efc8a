"""Facts about this machine that decide how an engine or an image can be had: root, distribution, daemons."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

OS_RELEASE = Path("/etc/os-release")
SYSTEMD_RUNS = Path("/run/systemd/system")
PROCESSES = Path("/proc")
_DEBIAN_FAMILY = frozenset({"debian", "ubuntu"})
# Debian's, Docker's and the kernel's names of one architecture.
_ARCHITECTURES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


@dataclass(frozen=True, slots=True)
class PidFile:
    """A daemon's pid file: stale when no process of that name has the pid it holds."""

    path: Path
    daemon: str


# dockerd refuses to start while its own file names any live process, even an unrelated one that inherited the
# number after a crash; with containerd's file it waits for a peer that will never answer.
PID_FILES = (
    PidFile(Path("/var/run/docker.pid"), "dockerd"),
    PidFile(Path("/var/run/docker/containerd/containerd.pid"), "containerd"),
)


@dataclass(frozen=True, slots=True)
class Machine:
    """What the decisions need to know; `architecture` in Debian's words (amd64, arm64)."""

    root: bool
    debian: bool
    distribution: str
    architecture: str
    systemd: bool
    dockerd_installed: bool
    iptables_installed: bool
    mmdebstrap_installed: bool
    dockerd_pid: int | None = None
    stale_pid_files: tuple[Path, ...] = ()


def survey_machine() -> Machine:
    """Look at this machine; reads files and PATH only."""
    release = read_os_release(OS_RELEASE)
    running = running_processes(PROCESSES)
    return Machine(
        root=os.geteuid() == 0,
        debian=is_debian(release),
        distribution=release.get("PRETTY_NAME", platform.system()),
        architecture=debian_architecture(platform.machine()),
        systemd=SYSTEMD_RUNS.is_dir(),
        dockerd_installed=find_program("dockerd") is not None,
        iptables_installed=find_program("iptables") is not None,
        mmdebstrap_installed=find_program("mmdebstrap") is not None,
        dockerd_pid=next((pid for pid, name in running.items() if name == "dockerd"), None),
        stale_pid_files=stale_pid_files(PID_FILES, running),
    )


def read_os_release(path: Path) -> dict[str, str]:
    """The keys of an os-release file, unquoted; empty when there is no such file."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line and not line.startswith("#"))
    return {key.strip(): value.strip().strip("\"'") for key, value in pairs}


def is_debian(release: dict[str, str]) -> bool:
    """True for Debian, Ubuntu and what declares itself like them: apt has docker.io and mmdebstrap there."""
    names = {release.get("ID", ""), *release.get("ID_LIKE", "").split()}
    return bool(names & _DEBIAN_FAMILY)


def debian_architecture(machine: str) -> str:
    """Debian's name of a kernel's or an engine's architecture; unknown names pass through."""
    return _ARCHITECTURES.get(machine.lower(), machine.lower())


def find_program(name: str) -> str | None:
    """Where a program is, looking into the administrator's folders as well, which a user's PATH may lack."""
    return shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/local/sbin:/usr/sbin:/sbin")


def running_processes(processes: Path) -> dict[int, str]:
    """pid → command name of every live process; a zombie does not count."""
    found = {}
    for entry in processes.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:  # it ended while we looked
            continue
        # "pid (comm) state …": comm may itself hold blanks and parentheses.
        name, _, rest = stat.partition("(")[2].rpartition(")")
        if rest.split()[:1] != ["Z"]:
            found[int(entry.name)] = name
    return found


def stale_pid_files(files: Iterable[PidFile], running: dict[int, str]) -> tuple[Path, ...]:
    """The pid files whose daemon is dead; none while any daemon of that name lives, whatever the file says.

    A file that this user may not see (os.path.exists says no, where Path.exists raises) is not this user's to judge.
    """
    return tuple(file.path for file in files if os.path.exists(file.path) and file.daemon not in running.values())
