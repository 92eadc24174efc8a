"""The Docker sandbox keeps the sandbox contract."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from harness.protocols import SandboxProvider
from harness.records.task import ImagePin
from harness.sandbox.provider import DockerSandboxProvider

from .contract import SandboxContract, sh


@pytest.mark.docker
class TestDockerContract(SandboxContract):
    @pytest.fixture(params=["asyncio"])
    def anyio_backend(self, request: pytest.FixtureRequest) -> str:
        return str(request.param)

    @pytest.fixture
    async def provider(self) -> AsyncIterator[SandboxProvider]:
        provider = DockerSandboxProvider()
        yield provider
        await provider.close()

    @pytest.fixture
    def pin(self, base_pin: ImagePin) -> ImagePin:
        return base_pin

    def writer(self, path: str, hold_s: float) -> tuple[str, ...]:
        loop = f"while :; do echo x >> {path}; sleep 0.05; done"
        line = f"mkdir -p $(dirname {path}); (setsid bash -c '{loop}' > /dev/null 2>&1 &); sleep {hold_s}"
        return ("bash", "-c", line)

    async def test_peak_memory_counts_what_was_held_and_not_the_page_cache(
        self, provider: SandboxProvider, pin: ImagePin
    ) -> None:
        async with provider.open(self.spec(pin)) as sandbox:
            await sh(sandbox, "head -c 100000000 /dev/zero > /app/large; cat /app/large > /dev/null")
            cached = await sandbox.peak_memory()
            await sh(sandbox, "head -c 60000000 /dev/zero | tail -n 1 > /dev/null")  # tail holds the one long line
            held = await sandbox.peak_memory()
        assert cached is not None
        assert held is not None
        assert cached < 60_000_000 <= held
