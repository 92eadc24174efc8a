"""A program in a container: the contract, what can go wrong, and that nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker
import pytest

from harness.api.contained import contained
from harness.environments.remote import Patience, RemoteEnvironment
from harness.records.environment import EnvironmentFault, Opening
from harness.records.errors import SandboxFault
from harness.records.execution import SandboxSpec
from harness.records.task import ImagePin, Limits
from harness.sandbox.attached import AttachedContainer
from harness.sandbox.container_config import PURPOSE_LABEL, RUN_LABEL
from tests.environments.contract import EnvironmentContract, Subject
from tests.environments.test_contract import counting
from tests.sandbox.conftest import base_pin

__all__ = ["base_pin"]

pytestmark = pytest.mark.docker
RUN = f"attached-{os.getpid()}"


@pytest.fixture(scope="module")
def engine(base_pin: ImagePin) -> Iterator[Any]:
    with docker.APIClient(version="auto", timeout=60) as client:
        yield client


def ours(engine: Any, run: str = RUN) -> list[Any]:
    return list(engine.containers(all=True, filters={"label": f"{RUN_LABEL}={run}"}))


def gone(engine: Any, run: str = RUN) -> bool:
    """Whether no container is left; the engine may take a moment to remove what has ended."""
    for _ in range(200):
        if not ours(engine, run):
            return True
        time.sleep(0.05)
    return False


def spec(pin: ImagePin, **limits: Any) -> SandboxSpec:
    return SandboxSpec(run=RUN, trial="t", purpose="environment", image=pin, limits=Limits(**limits))


class TestInAContainer(EnvironmentContract):
    @pytest.fixture(scope="class")
    @classmethod
    def subject(cls, base_pin: ImagePin, counter: Path) -> Iterator[Subject]:
        command = ("python3", "-c", counter.read_text())
        with contained(str(base_pin.digest), command) as environment:
            yield counting(environment)

    def test_it_is_made_of_its_image(self, subject: Subject, base_pin: ImagePin) -> None:
        assert subject.environment.capabilities.code == base_pin.digest


def test_it_has_limits_no_network_and_is_gone_afterwards(engine: Any, base_pin: ImagePin, counter: Path) -> None:
    command = ("python3", "-c", counter.read_text())
    limited = spec(base_pin, memory_mb=256, pids=32, cpus=0.5)
    with RemoteEnvironment(lambda: AttachedContainer(limited, command)) as environment:
        with environment.open(Opening("normal")) as session:
            assert session.digest()
            (listed,) = ours(engine)
            inspected = engine.inspect_container(listed["Id"])
        host = inspected["HostConfig"]
        assert (host["Memory"], host["MemorySwap"], host["PidsLimit"]) == (256 << 20, 256 << 20, 32)
        assert host["NanoCpus"] == 500_000_000
        assert host["NetworkMode"] == "none"
        assert host["CapDrop"] == ["ALL"]
        assert host["AutoRemove"]
        assert inspected["Image"] == base_pin.digest
        assert inspected["Config"]["Labels"][PURPOSE_LABEL] == "environment"
    assert gone(engine)


@pytest.mark.parametrize(
    ("program", "what"),
    [
        ("import sys; sys.stderr.write('no data'); sys.exit(7)", "it ended with code 7; it said: no data"),
        ("print('Welcome!', flush=True); input()", "something that is no answer: 'Welcome!'"),
        ("import time; time.sleep(600)", "no answer to hello within 2 s"),
        ("x = bytearray(400 << 20)", r"it ended with code 137 \(killed; its memory limit is 64 MiB\)"),
    ],
)
def test_what_goes_wrong_is_told_and_nothing_is_left(engine: Any, base_pin: ImagePin, program: str, what: str) -> None:
    small = spec(base_pin, memory_mb=64)
    remote = RemoteEnvironment(
        lambda: AttachedContainer(small, ("python3", "-c", program)),
        patience=Patience(hello_s=2.0 if "sleep" in program else 60.0),
    )
    with pytest.raises(EnvironmentFault, match=what) as caught:
        _ = remote.capabilities
    assert caught.value.place.startswith("container assay-")
    assert gone(engine)


def test_a_container_that_is_killed_in_the_middle_of_a_session(engine: Any, base_pin: ImagePin, counter: Path) -> None:
    command = ("python3", "-c", counter.read_text())
    remote = RemoteEnvironment(lambda: AttachedContainer(spec(base_pin), command))
    with remote.open(Opening("normal")) as session:
        engine.kill(ours(engine)[0]["Id"])
        with pytest.raises(EnvironmentFault, match=r"it ended with code 137|it reads no more"):
            session.digest()
    assert gone(engine)


def test_a_program_that_is_not_in_the_image_leaves_nothing(engine: Any, base_pin: ImagePin) -> None:
    with pytest.raises(SandboxFault, match="starting the container failed"):
        AttachedContainer(spec(base_pin), ("/no/such/program",))
    assert gone(engine)


@pytest.mark.parametrize(
    ("pin", "what"),
    [
        (ImagePin(reference="debian:12"), "not pinned by digest"),
        (ImagePin(reference="x", digest="sha256:" + "0" * 64), "inspecting the image failed"),
    ],
)
def test_an_image_that_is_not_pinned_or_not_held(engine: Any, pin: ImagePin, what: str) -> None:
    with pytest.raises(SandboxFault, match=what):
        AttachedContainer(spec(pin), ("true",))
    assert gone(engine)


def test_it_goes_when_this_process_is_killed(engine: Any, base_pin: ImagePin, counter: Path) -> None:
    run = f"{RUN}-orphan"
    text = (
        "import sys, time\n"
        "from harness.environments.remote import RemoteEnvironment\n"
        "from harness.records.execution import SandboxSpec\n"
        "from harness.sandbox.attached import AttachedContainer\n"
        "spec = SandboxSpec.model_validate_json(sys.argv[1])\n"
        "remote = RemoteEnvironment(lambda: AttachedContainer(spec, ('python3', '-c', sys.argv[2])))\n"
        "print(remote.capabilities.environment, flush=True)\ntime.sleep(600)\n"
    )
    orphan = spec(base_pin).model_copy(update={"run": run}).model_dump_json()
    command = [sys.executable, "-c", text, orphan, counter.read_text()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "counter@1\n"
        assert len(ours(engine, run)) == 1
        process.send_signal(signal.SIGKILL)
    assert gone(engine, run)
