"""A frozen container is thawed past an engine that does not answer."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import anyio
import pytest

from harness.records.errors import SandboxFault
from harness.records.task import ImagePin
from harness.records.vocabulary import Reason
from harness.sandbox import container as container_module
from harness.sandbox.container import Container
from harness.sandbox.engine import Engine
from harness.sandbox.freezer import CONTROL_ROOT, thaw_past_engine
from harness.sandbox.provider import DockerSandboxProvider
from tests.sandbox.test_docker_faults import left_of, provider_with, spec

ID = "ab" * 32


def group(root: Path, folder: str, file: str, text: str) -> Path:
    control = root / folder / file
    control.parent.mkdir(parents=True)
    control.write_text(text)
    return control


def test_the_group_of_the_first_version_is_thawed(tmp_path: Path) -> None:
    ours = group(tmp_path, f"freezer/docker/{ID}", "freezer.state", "FROZEN")
    other = group(tmp_path, f"freezer/docker/{'cd' * 32}", "freezer.state", "FROZEN")
    memory = group(tmp_path, f"memory/docker/{ID}", "freezer.state", "FROZEN")
    assert thaw_past_engine(ID, tmp_path)
    assert [path.read_text() for path in (ours, other, memory)] == ["THAWED", "FROZEN", "FROZEN"]


def test_the_group_of_the_second_version_is_thawed(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu memory")
    ours = group(tmp_path, f"system.slice/docker-{ID}.scope", "cgroup.freeze", "1")
    assert thaw_past_engine(ID, tmp_path)
    assert ours.read_text() == "0"


def test_a_container_of_another_machine_is_not_found(tmp_path: Path) -> None:
    assert not thaw_past_engine(ID, tmp_path)
    assert not thaw_past_engine(ID, tmp_path / "gone")


@pytest.mark.docker
@pytest.mark.anyio
class TestOnTheEngine:
    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    async def test_what_the_kernel_froze_is_swept_at_once(self, base_pin: ImagePin) -> None:
        """As an engine sees it that began a command in a container while it froze: killing has no end."""
        provider = DockerSandboxProvider()
        async with provider.open(spec(base_pin, "frozen")) as sandbox:
            controls = list((CONTROL_ROOT / "freezer").rglob(f"{sandbox.facts.id}/freezer.state"))
            if not controls:
                pytest.skip("the engine's control groups are not here")
            controls[0].write_text("FROZEN")
            (left,) = [item for item in await provider.leftovers() if item.id == sandbox.facts.id]
            with anyio.fail_after(5):
                await provider.remove(left)
            assert await left_of(provider, "frozen") == []
        await provider.close()

    async def test_thawing_has_an_end_even_under_a_shield(
        self, base_pin: ImagePin, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(container_module, "THAW_DEADLINE_S", 0.6)
        monkeypatch.setattr(container_module, "PROMPT_S", 0.3)
        answer = threading.Event()

        def late(real: Any, *args: Any, **kwargs: Any) -> Any:
            answer.wait(20)
            return real(*args, **kwargs)

        provider = provider_with(unpause=late)
        async with provider.open(spec(base_pin, "thawing")) as sandbox:
            engine: Engine = provider._engine
            frozen = Container(engine, sandbox.facts.id, sandbox.facts.name, b"").frozen()
            with anyio.fail_after(5), pytest.raises(SandboxFault, match="did not thaw") as caught:
                async with frozen:
                    pass
            assert caught.value.reason == Reason.ENGINE_ERROR
            answer.set()
        assert await left_of(provider, "thawing") == []
        await provider.close()

    async def test_a_container_that_runs_already_counts_as_thawed(self, base_pin: ImagePin) -> None:
        provider = DockerSandboxProvider()
        async with provider.open(spec(base_pin, "running")) as sandbox:
            container = Container(provider._engine, sandbox.facts.id, sandbox.facts.name, b"")
            async with container.frozen():
                await provider._engine.call("unpausing", lambda client: client.unpause(container.id))
        await provider.close()
