"""The container engine that every command uses: the one that the `docker` command would."""

from __future__ import annotations

import os

from harness.bootstrap.locate import choose_address
from harness.sandbox.provider import DockerSandboxProvider


def open_provider() -> DockerSandboxProvider:
    """Sandboxes of the engine that DOCKER_HOST, the docker context or the default socket names. No I/O on it yet."""
    return DockerSandboxProvider(choose_address(os.environ).url)
