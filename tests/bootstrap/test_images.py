"""Settling images: found, built once, and failures that say why. Pulls need a registry and are not tried here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import docker
import pytest

from harness.bootstrap.images import BUILD_REPOSITORY, build_image, resolve_images
from harness.bootstrap.locate import choose_address, connect_engine
from harness.formats.lock import ImageNeed, images_needed, make_lock
from harness.formats.suite import load_suite
from harness.records.errors import LoadErrors, TaskError

pytestmark = pytest.mark.docker
BASE = "assay-base:1"


@pytest.fixture
def client() -> Iterator[docker.DockerClient]:
    engine = connect_engine(choose_address(os.environ), os.environ)
    yield engine
    engine.close()


@pytest.fixture
def task(tmp_path: Path, client: docker.DockerClient) -> Iterator[Path]:
    """A task with a Dockerfile that nobody has built before; what is built of it is removed."""
    folder = tmp_path / "built"
    files = {
        "task.toml": "",
        "instruction.md": "x",
        "tests/test.sh": "echo 0 > /logs/verifier/reward.txt\n",
        "environment/Dockerfile": f"FROM {BASE}\nCOPY data /data\nRUN echo building {uuid4()} && test -x /data/run\n",
        "environment/data/run": "#!/bin/sh\n",
        "environment/data/left-out": "x",
        "environment/.dockerignore": "data/left-out\n",
    }
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)
    (folder / "environment/data/run").chmod(0o700)
    yield folder
    need = images_needed(load_suite(folder))[0]
    tag = f"{BUILD_REPOSITORY}:{need.reference[len('build:sha256:') :][:32]}"
    if client.images.list(name=tag):
        client.images.remove(tag)


def test_an_image_that_is_there_is_known_by_its_digest(client: docker.DockerClient) -> None:
    lines: list[str] = []
    images = resolve_images(client, [ImageNeed(BASE, None, ("a",))], lines.append)
    assert images[BASE].digest == client.images.get(BASE).id
    assert (images[BASE].repository, images[BASE].platform.partition("/")[0]) == (None, "linux")
    assert lines == []


def test_a_dockerfile_is_built_once_and_pinned(client: docker.DockerClient, task: Path) -> None:
    suite = load_suite(task)
    lines: list[str] = []
    images = resolve_images(client, images_needed(suite), lines.append)
    assert any("RUN echo building" in line for line in lines)
    lock = make_lock(suite, images)
    image = load_suite(task, lock=lock).tasks[0].image
    assert image.locator is not None
    container = client.containers.run(image.locator, ["ls", "/data"], remove=True, network_mode="none")
    assert container == b"run\n"
    again: list[str] = []
    assert resolve_images(client, images_needed(suite), again.append) == images
    assert again == []


def test_a_failed_build_shows_its_last_lines(client: docker.DockerClient, task: Path) -> None:
    (task / "environment/Dockerfile").write_text(f"FROM {BASE}\nRUN echo what happened; exit 3\n")
    with pytest.raises(TaskError, match="what happened") as caught:
        resolve_images(client, images_needed(load_suite(task)), lambda line: None)
    assert "non-zero code: 3" in caught.value.message
    assert caught.value.place == str(task / "environment/Dockerfile")


def test_a_dockerfile_that_makes_no_sense_is_the_tasks_fault(client: docker.DockerClient, task: Path) -> None:
    (task / "environment/Dockerfile").write_text("NONSENSE\n")
    with pytest.raises(TaskError, match=r"unknown instruction: NONSENSE[^|]*mend the Dockerfile"):
        resolve_images(client, images_needed(load_suite(task)), lambda line: None)


def test_a_build_that_takes_too_long_ends(client: docker.DockerClient, task: Path) -> None:
    (task / "environment/Dockerfile").write_text(f"FROM {BASE}\nRUN sleep 60\n")
    with pytest.raises(TaskError, match="not done after 0 s"):
        build_image(client, images_needed(load_suite(task))[0], lambda line: None, timeout_s=0.0)


def test_all_images_that_cannot_be_had_are_told(client: docker.DockerClient) -> None:
    needs = [ImageNeed(f"localhost:1/assay-{name}:1", None, (name,)) for name in ("one", "two")]
    with pytest.raises(LoadErrors) as caught:
        resolve_images(client, needs, lambda line: None)
    assert [error.place for error in caught.value.errors] == ["one", "two"]
    assert all("cannot be pulled" in error.message for error in caught.value.errors)
