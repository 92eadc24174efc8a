"""Linux capabilities of a container as the kernel counts them: a mask in `/proc/PID/status`, one bit for each."""

from __future__ import annotations

_BITS = (
    "CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP",
    "LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "IPC_OWNER",
    "SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT", "SYS_ADMIN", "SYS_BOOT", "SYS_NICE",
    "SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP",
    "MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF",
    "CHECKPOINT_RESTORE",
)  # fmt: skip


def bounding_set(status: str) -> tuple[str, ...] | None:
    """The capabilities that no process of a container can exceed, sorted; None where the status does not tell."""
    for line in status.splitlines():
        name, _, mask = line.partition(":")
        if name == "CapBnd":
            bits = int(mask, 16)
            named = dict(enumerate(_BITS))
            return tuple(sorted(named.get(bit, f"bit {bit}") for bit in range(bits.bit_length()) if bits >> bit & 1))
    return None
