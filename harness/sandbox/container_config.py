"""What a sandbox asks of the engine, and what came of it. Pure: records in, API bodies and words out."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from typing import Any

from harness.records.execution import SandboxSpec
from harness.records.vocabulary import Network
from harness.sandbox.engine import EngineInfo
from harness.sandbox.keeper import KEEPER_PATH

RUN_LABEL, TRIAL_LABEL, PURPOSE_LABEL, OWNER_LABEL = "assay.run", "assay.trial", "assay.purpose", "assay.owner"
_MIB = 1024 * 1024
_QUOTA_DRIVERS = ("btrfs", "zfs")


def labels_of(spec: SandboxSpec, owner: str) -> dict[str, str]:
    """Whose a container is. They are part of its creation, so that no container is ever without."""
    return {
        **spec.labels,
        RUN_LABEL: spec.run,
        TRIAL_LABEL: spec.trial,
        PURPOSE_LABEL: spec.purpose,
        OWNER_LABEL: owner,
    }


def container_name(spec: SandboxSpec) -> str:
    """A name that no other container has: two runs of a task, or two attempts at a trial, never meet."""
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", f"{spec.run[:40]}-{spec.trial[-60:]}")
    return f"assay-{plain}-{secrets.token_hex(4)}"


def quota_worth_trying(info: EngineInfo) -> bool:
    """Whether the storage driver may hold a size; overlay2 does on XFS with project quotas only, and says so late."""
    return info.storage in _QUOTA_DRIVERS or (info.storage == "overlay2" and info.backing == "xfs")


def container_config(spec: SandboxSpec, image: str, *, owner: str, network: str, quota: bool) -> dict[str, Any]:
    """The body of `POST /containers/create`. `image` is a digest, `network` an engine network mode, `owner` a label."""
    limits = spec.limits
    disk_bytes = limits.disk_mb * _MIB if limits.disk_mb else None
    ulimits = [{"Name": "core", "Soft": 0, "Hard": 0}]
    if disk_bytes and not quota:
        ulimits.append({"Name": "fsize", "Soft": disk_bytes, "Hard": disk_bytes})
    host: dict[str, Any] = {
        "NanoCpus": int(limits.cpus * 1_000_000_000),
        "Memory": limits.memory_mb * _MIB,
        "MemorySwap": limits.memory_mb * _MIB,  # memory and swap together: no swap
        "PidsLimit": limits.pids,
        "CapAdd": list(spec.capabilities),
        "CapDrop": ["ALL"] if spec.drop_capabilities else [],
        "SecurityOpt": ["no-new-privileges"],
        "NetworkMode": network,
        "LogConfig": {"Type": "none"},  # nothing is written by the keeper
        "RestartPolicy": {"Name": "no"},
        "Init": False,  # the keeper is the init, see harness.sandbox.keeper
        "Ulimits": ulimits,
    }
    if disk_bytes and quota:
        host["StorageOpt"] = {"size": str(disk_bytes)}
    return {
        "Image": image,
        "Entrypoint": [KEEPER_PATH],
        "Cmd": [],
        "User": "0:0",  # of the keeper; commands name their own
        "WorkingDir": spec.workdir,
        "Env": [f"{name}={value}" for name, value in spec.env.items()],
        "Labels": labels_of(spec, owner),
        "Healthcheck": {"Test": ["NONE"]},  # an image's own check would run commands of its own
        "HostConfig": host,
    }


def enforcement(
    spec: SandboxSpec, info: EngineInfo, *, quota: bool, warnings: Sequence[str], network: str
) -> dict[str, str]:
    """How each limit is held: "cgroup", "quota", "emulated: …", or "refused: …" with the engine's words."""
    said = {
        "cpus": _held(info.cpu_quota, "the kernel has no CPU quota", warnings, ("cpu cfs", "nanocpus", "cpu shares")),
        "memory": _held(info.memory_limit, "the kernel has no memory limit", warnings, ("memory limit",)),
        "swap": _held(info.swap_limit, "the kernel does not count swap", warnings, ("swap limit", "swap accounting")),
        "pids": _held(info.pids_limit, "the kernel has no process limit", warnings, ("pids",)),
        "network": network,
    }
    if spec.limits.disk_mb is None:
        said["disk"] = "none: no limit asked"
    elif quota:
        said["disk"] = f"quota: {info.storage}"
    else:
        said["disk"] = "emulated: no file may grow larger, and the sum is measured at the seal"
    rest = [warning for warning in warnings if not any(warning in how for how in said.values())]
    return said | ({"warnings": "; ".join(rest)} if rest else {})


def network_words(network: Network, host: str | None) -> str:
    """How the network mode is held; `host` is the address of this machine inside the network."""
    if network is Network.NONE:
        return "none: loopback only"
    if network is Network.GATEWAY:
        return f"internal: no route out, this machine is {host}"
    return "bridge: open"


def capability_words(spec: SandboxSpec, seen: Sequence[str] | None) -> str:
    """The capabilities of root in a container: as the kernel has them, or, where that is out of sight, as asked."""
    if seen is not None:
        return ", ".join(seen) or "none"
    added = ", ".join(spec.capabilities)
    if spec.drop_capabilities:
        return f"asked: {added or 'none'}"
    return f"asked: the engine's default{f' and {added}' if added else ''}"


def _held(able: bool, why_not: str, warnings: Sequence[str], words: tuple[str, ...]) -> str:
    complaint = next((warning for warning in warnings if any(word in warning.lower() for word in words)), None)
    if complaint is None and able:
        return "cgroup"
    return f"refused: {complaint or why_not}"
