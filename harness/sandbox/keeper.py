"""The keeper: a static program of a few dozen bytes that is process 1 of every sandbox.

A container needs a first process that lives, whatever the image holds: it may have no shell and no `sleep`, or such as
an agent replaced. So Assay brings its own, put into the container through the archive API before every start.

It ignores SIGCHLD, so that the kernel buries orphans without a zombie, and then waits for ever. As process 1 of its
namespace it has no handler for any signal, so that nothing inside can end it, not even root's `kill -9 -1`; an
init with a child would go down with the child.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

KEEPER_PATH = "/.assay-keeper"

_BASE = 0x400000
_HEADERS_BYTES = 64 + 56  # one ELF header, one program header
_SIGCHLD = 17
_IGNORE = struct.pack("<4Q", 1, 0, 0, 0)  # struct sigaction: SIG_IGN, no flags, no restorer, empty mask


def keeper_for(architecture: str) -> bytes | None:
    """The keeper's ELF file for an engine's architecture name ("amd64", "arm64"), or None when there is none."""
    builder = _BUILDERS.get(architecture)
    return builder() if builder else None


def _x86_64() -> bytes:
    code = (
        b"\x48\x8d\x35\x1d\x00\x00\x00"  # lea rsi, [rip+0x1d]   the structure after the code
        + b"\xbf" + struct.pack("<I", _SIGCHLD)  # mov edi, SIGCHLD
        + b"\x31\xd2"  # xor edx, edx
        + b"\x41\xba\x08\x00\x00\x00"  # mov r10d, 8             bytes of the mask
        + b"\xb8\x0d\x00\x00\x00\x0f\x05"  # mov eax, 13; syscall  rt_sigaction
        + b"\xb8\x22\x00\x00\x00\x0f\x05"  # mov eax, 34; syscall  pause
        + b"\xeb\xf7"  # jmp to the pause
    )  # fmt: skip
    return _elf(62, code + _IGNORE)


def _aarch64() -> bytes:
    def put(register: int, value: int) -> int:  # movz xN, #value
        return 0xD2800000 | value << 5 | register

    call = 0xD4000001  # svc #0
    words = [
        0x10000000 | (0x38 >> 2) << 5 | 1,  # adr x1, +0x38: the structure after the code
        *(put(0, _SIGCHLD), put(2, 0), put(3, 8), put(8, 134), call),  # rt_sigaction
        *(put(0, 0), put(1, 0), put(2, 0), put(3, 0), put(8, 73), call),  # ppoll of nothing, without timeout
        0x14000000 | (-6 & 0x3FFFFFF),  # b to the ppoll
        0xD503201F,  # nop: aligns the structure
    ]
    return _elf(183, struct.pack(f"<{len(words)}I", *words) + _IGNORE)


def _elf(machine: int, content: bytes) -> bytes:
    """A minimal executable: one readable and executable segment that is the whole file."""
    identity = b"\x7fELF" + bytes([2, 1, 1, 0]) + bytes(8)  # 64 bits, little endian, version 1, System V
    entry = _BASE + _HEADERS_BYTES
    header = identity + struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, entry, 64, 0, 0, 64, 56, 1, 64, 0, 0)
    size = _HEADERS_BYTES + len(content)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, _BASE, _BASE, size, size, 0x10000)
    return header + segment + content


_BUILDERS: dict[str, Callable[[], bytes]] = {
    "amd64": _x86_64,
    "x86_64": _x86_64,
    "arm64": _aarch64,
    "aarch64": _aarch64,
}
