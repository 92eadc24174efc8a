"""What root may in a container: as the kernel says, else as it was asked for."""

from __future__ import annotations

from typing import Any

import pytest

from harness.records.execution import SandboxSpec
from harness.records.task import ImagePin, Limits
from harness.sandbox.capabilities import bounding_set
from harness.sandbox.container_config import capability_words
from harness.sandbox.provider import DockerSandboxProvider


def spec(pin: ImagePin = ImagePin(reference="x"), **changes: Any) -> SandboxSpec:  # noqa: B008  # frozen
    values = {"run": "caps", "trial": "caps/1", "image": pin, "limits": Limits(), **changes}
    return SandboxSpec.model_validate(values)


@pytest.mark.parametrize(
    ("status", "names"),
    [
        ("Name:\tx\nCapBnd:\t0000000000000000\n", ()),
        ("CapEff:\t0000000000000003\nCapBnd:\t0000000000000021\n", ("CHOWN", "KILL")),
        ("CapBnd:\t0000060000000000\n", ("bit 41", "bit 42")),  # of a younger kernel
        ("Name:\tx\n", None),
    ],
)
def test_the_mask_is_read(status: str, names: tuple[str, ...] | None) -> None:
    assert bounding_set(status) == names


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "asked: none"),
        ({"capabilities": ("KILL", "CHOWN")}, "asked: KILL, CHOWN"),
        ({"drop_capabilities": False}, "asked: the engine's default"),
        ({"drop_capabilities": False, "capabilities": ("NET_ADMIN",)}, "asked: the engine's default and NET_ADMIN"),
    ],
)
def test_out_of_sight_it_is_what_was_asked(changes: dict[str, Any], words: str) -> None:
    assert capability_words(spec(**changes), None) == words
    assert capability_words(spec(**changes), ()) == "none"
    assert capability_words(spec(**changes), ("CHOWN", "KILL")) == "CHOWN, KILL"


@pytest.mark.docker
@pytest.mark.anyio
class TestOnTheEngine:
    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    async def test_the_effective_set_is_recorded(self, base_pin: ImagePin) -> None:
        """Harbor's tasks keep the engine's default: `apt-get`, `chown`, `su` and `useradd` need most of these."""
        provider = DockerSandboxProvider()
        async with provider.open(spec(base_pin, drop_capabilities=False)) as sandbox:
            held = sandbox.facts.enforced["capabilities"].removeprefix("asked: ")
            assert {"CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID"} <= set(held.split(", "))
            assert "SYS_ADMIN" not in held
        async with provider.open(spec(base_pin, capabilities=("KILL",))) as sandbox:
            assert sandbox.facts.enforced["capabilities"].removeprefix("asked: ") == "KILL"
        async with provider.open(spec(base_pin)) as sandbox:
            assert sandbox.facts.enforced["capabilities"].removeprefix("asked: ") == "none"
        await provider.close()
