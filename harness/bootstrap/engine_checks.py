"""What the engine can enforce, judged from what it says of itself and from a container's own view of its limits."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker

from harness.bootstrap.base_image import PresentImage
from harness.bootstrap.check import Check, Status
from harness.bootstrap.machine import debian_architecture

MINIMUM_API = (1, 41)
_GIB = 1 << 30
_MOUNTS = Path("/proc/self/mounts")
_QUOTA_DRIVERS = frozenset({"btrfs", "zfs", "devicemapper", "windowsfilter"})

# The limits given to the container that looks at them, and where each shows, on cgroup v1 and v2.
_MEMORY_BYTES, _CPU_NANO, _PIDS = 64 << 20, 500_000_000, 64
_EXPECTED = {
    "memory": {"memory/memory.limit_in_bytes": str(_MEMORY_BYTES), "memory.max": str(_MEMORY_BYTES)},
    "cpu": {"cpu/cpu.cfs_quota_us": "50000", "cpu.max": "50000 100000"},
    "pids": {"pids/pids.max": str(_PIDS), "pids.max": str(_PIDS)},
}
_LIMIT_FILES = tuple(name for files in _EXPECTED.values() for name in files)


@dataclass(frozen=True, slots=True)
class DiskSpace:
    """Free and total bytes of the file system under a path."""

    path: str
    free_bytes: int
    total_bytes: int


def check_version(version: str, api_version: str) -> Check:
    """The engine's version, and whether its API has what the sandbox asks for."""
    finding = f"{version}, API {api_version}"
    numbers = tuple(int(part) for part in api_version.split(".") if part.isdigit())
    if numbers < MINIMUM_API:
        return Check("engine", Status.FAIL, f"{finding}: too old", "upgrade to Docker 20.10 or newer")
    return Check("engine", Status.OK, finding)


def check_architecture(info: Mapping[str, Any], machine: str) -> Check:
    """Whether the engine runs what this machine's own programs are built for."""
    engine = debian_architecture(str(info.get("Architecture", "")))
    if engine == machine:
        return Check("architecture", Status.OK, engine)
    return Check(
        "architecture",
        Status.WARN,
        f"the engine is {engine}, this machine {machine}",
        f"every image must be for linux/{engine}",
    )


def check_limits(info: Mapping[str, Any], seen: Mapping[str, str] | None) -> Check:
    """Whether memory, cpu and pids limits hold.

    Args:
        info: the engine's own account.
        seen: file below /sys/fs/cgroup → content, as a limited container read them; None when none could be run.
    """
    cgroup = f"cgroup v{info.get('CgroupVersion', '1')} ({info.get('CgroupDriver', 'unknown')})"
    remedy = "give the engine these cgroup controllers (rootless: delegate them to the user's service)"
    claims = {"memory": "MemoryLimit", "cpu": "CpuCfsQuota", "pids": "PidsLimit"}
    lacking = [name for name, key in claims.items() if not info.get(key)]
    if seen is None:
        if lacking:
            return Check("limits", Status.FAIL, f"{cgroup}: no {', '.join(lacking)} limit", remedy)
        return Check("limits", Status.WARN, f"{cgroup}: claimed by the engine, not tried", "build the base image first")
    lacking = [name for name, files in _EXPECTED.items() if not any(seen.get(k) == v for k, v in files.items())]
    if lacking:
        return Check("limits", Status.FAIL, f"{cgroup}: {', '.join(lacking)} not applied in a container", remedy)
    return Check("limits", Status.OK, f"{cgroup}: memory, cpu and pids hold in a container")


def read_limits(client: docker.DockerClient, image: str) -> dict[str, str]:
    """Run a limited container of the base image and return what it sees of its cgroup; removes it on every path."""
    script = 'cd /sys/fs/cgroup; for f in "$@"; do [ -r "$f" ] && echo "$f $(cat "$f")"; done; true'
    container = client.containers.create(
        image,
        ["sh", "-c", script, "limits", *_LIMIT_FILES],
        mem_limit=_MEMORY_BYTES,
        nano_cpus=_CPU_NANO,
        pids_limit=_PIDS,
        network_mode="none",
        labels={"org.assay.doctor": "limits"},
    )
    try:
        container.start()
        container.wait(timeout=30)
        lines = container.logs().decode(errors="replace").splitlines()
    finally:
        container.remove(force=True)
    return {name: value for name, _, value in (line.partition(" ") for line in lines)}


def check_storage(info: Mapping[str, Any], mounts: str | None) -> Check:
    """The storage driver, and whether it can hold a container to a disk limit.

    Args:
        info: the engine's own account.
        mounts: the text of the mount table the engine lives under; None when the engine is elsewhere.
    """
    driver = str(info.get("Driver", "unknown"))
    backing = dict(pair[:2] for pair in info.get("DriverStatus") or []).get("Backing Filesystem", "unknown")
    emulated = "for hard disk limits keep the engine's data on xfs mounted with pquota"
    if driver in _QUOTA_DRIVERS:
        return Check("storage", Status.OK, f"{driver}: disk quotas enforced by the engine")
    if driver == "overlay2" and backing == "xfs":
        options = mount_options(mounts, str(info.get("DockerRootDir", "/"))) if mounts is not None else frozenset()
        if options & {"pquota", "prjquota"}:
            return Check(
                "storage", Status.OK, "overlay2 on xfs with project quotas: disk quotas enforced by the engine"
            )
        return Check("storage", Status.WARN, "overlay2 on xfs without project quotas: no disk quotas", emulated)
    return Check("storage", Status.WARN, f"{driver} on {backing}: no disk quotas", emulated)


def mount_options(mounts: str, path: str) -> frozenset[str]:
    """The options of the mount that holds a path, from a table in the format of /proc/self/mounts."""
    best, options = "", frozenset[str]()
    for line in mounts.splitlines():
        fields = line.split()
        if len(fields) < 4:
            continue
        point = fields[1].replace("\\040", " ")
        below = path == point or path.startswith(point.rstrip("/") + "/")
        # A later line mounted on the same point covers the earlier one.
        if below and len(point) >= len(best):
            best, options = point, frozenset(fields[3].split(","))
    return options


def read_mounts() -> str | None:
    """This machine's mount table."""
    try:
        return _MOUNTS.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def check_disk(name: str, space: DiskSpace | None, *, warn_bytes: int = 10 * _GIB, fail_bytes: int = _GIB) -> Check:
    """Whether enough disk is free; None when it cannot be seen from here."""
    if space is None:
        return Check(name, Status.WARN, "not visible from this machine", "look at the engine's own disk")
    finding = f"{space.free_bytes / _GIB:.1f} of {space.total_bytes / _GIB:.1f} GiB free under {space.path}"
    if space.free_bytes < fail_bytes:
        return Check(name, Status.FAIL, finding, "free some space: `docker image prune` drops unused images")
    if space.free_bytes < warn_bytes:
        return Check(name, Status.WARN, finding, "a suite with large images may not fit")
    return Check(name, Status.OK, finding)


def measure_disk(path: Path) -> DiskSpace | None:
    """Free space where the path is, or where its nearest existing parent is; None when nothing can be seen."""
    existing = next((folder for folder in (path, *path.parents) if os.path.exists(folder)), None)
    if existing is None:
        return None
    usage = shutil.disk_usage(existing)
    return DiskSpace(str(path), usage.free, usage.total)


def check_base_image(image: PresentImage | None, recipe_digest: str, info: Mapping[str, Any], reference: str) -> Check:
    """Whether the base image is there, built from this recipe, for this engine."""
    remedy = "`make setup` builds it"
    if image is None:
        return Check("base image", Status.FAIL, f"{reference} is missing", remedy)
    engine = debian_architecture(str(info.get("Architecture", "")))
    finding = f"{reference} {image.config_digest[:19]}…"
    if image.architecture != engine:
        return Check("base image", Status.FAIL, f"{finding} is for {image.architecture}, the engine {engine}", remedy)
    if image.recipe_digest != recipe_digest:
        return Check("base image", Status.WARN, f"{finding} is not of the current recipe", f"{remedy} anew")
    return Check("base image", Status.OK, f"{finding} matches the recipe")
