"""Every grader keeps the contract in real containers."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from harness.protocols import SandboxProvider
from harness.records.task import ImagePin
from harness.sandbox.provider import DockerSandboxProvider
from tests.grading.contract import GraderContract


@pytest.mark.docker
class TestOnDocker(GraderContract):
    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    @pytest.fixture
    async def provider(self) -> AsyncIterator[SandboxProvider]:
        provider = DockerSandboxProvider()
        yield provider
        await provider.close()

    @pytest.fixture
    def pin(self, base_pin: ImagePin) -> ImagePin:
        return base_pin
