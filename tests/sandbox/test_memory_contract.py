"""The in-memory twin keeps the sandbox contract, on virtual time."""

from __future__ import annotations

import anyio
import pytest
import trio.testing

from harness.protocols import SandboxProvider
from harness.records.execution import ImageFacts
from harness.records.task import ImagePin
from harness.sandbox.memory import MemorySandboxProvider
from harness.sandbox.memory_files import MemoryFiles
from harness.sandbox.memory_process import Process
from harness.sandbox.tiny_shell import tiny_shell

from .contract import SandboxContract

DIGEST = "sha256:" + "a" * 64


async def program(process: Process) -> int:
    """The tiny shell, and a command `writer PATH SECONDS`."""
    if process.argv[0] != "writer":
        return await tiny_shell(process)
    path = process.argv[1]

    def tick(files: MemoryFiles) -> None:
        files[path] = files.get(path, b"") + b"x\n"

    process.spawn("writer", tick, every_s=0.05)
    await anyio.sleep(float(process.argv[2]))
    return 0


class TestMemoryContract(SandboxContract):
    @pytest.fixture
    def anyio_backend(self) -> tuple[str, dict[str, object]]:
        return "trio", {"clock": trio.testing.MockClock(autojump_threshold=0)}

    @pytest.fixture
    def provider(self) -> SandboxProvider:
        return MemorySandboxProvider(program, images=[ImageFacts(digest=DIGEST, platform="linux/amd64")])

    @pytest.fixture
    def pin(self) -> ImagePin:
        return ImagePin(reference="assay-base:1", digest=DIGEST)

    def writer(self, path: str, hold_s: float) -> tuple[str, ...]:
        return ("writer", path, str(hold_s))
