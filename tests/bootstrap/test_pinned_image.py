"""A pinned base image against a real registry on loopback (Debian's docker-registry, when it is installed)."""

from __future__ import annotations

import io
import os
import shutil
import socket
import subprocess
import tarfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import docker
import pytest

from harness.bootstrap.archive import ImageConfig, write_archive
from harness.bootstrap.base_image import RegistryAnswer, Way, ask_registry, ensure_base_image
from harness.bootstrap.engine import Engine, ensure_engine
from harness.bootstrap.machine import debian_architecture
from harness.bootstrap.recipe import Recipe, load_recipe
from harness.records.errors import ConfigError

pytestmark = pytest.mark.docker
_SETTINGS = """\
version: 0.1
log: {{accesslog: {{disabled: true}}}}
storage: {{filesystem: {{rootdirectory: {folder}}}}}
http: {{addr: "127.0.0.1:{port}"}}
"""


@dataclass(frozen=True)
class Published:
    """A tiny image in the registry, and no longer in the engine."""

    pin: str
    config_digest: str
    engine: Engine
    client: docker.DockerClient
    recipe: Recipe


def wait_until_open(port: int) -> None:
    deadline_s = time.monotonic() + 20
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > deadline_s:
                raise
            time.sleep(0.05)


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[int]:
    """The port of a registry that lives for one test."""
    program = shutil.which("docker-registry")
    if program is None:
        pytest.skip("docker-registry is not installed (apt-get install docker-registry)")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = int(server.getsockname()[1])
    settings = tmp_path / "registry.yml"
    settings.write_text(_SETTINGS.format(folder=tmp_path / "registry", port=port))
    with (tmp_path / "registry.log").open("wb") as log:
        process = subprocess.Popen([program, "serve", str(settings)], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        wait_until_open(port)
        yield port
    finally:
        process.terminate()
        process.wait(timeout=10)


@pytest.fixture
def published(registry: int, tmp_path: Path) -> Iterator[Published]:
    """Load a tiny image, push it, drop it from the engine."""
    engine = ensure_engine(os.environ, lambda line: None)
    client = docker.DockerClient(base_url=engine.address.url)
    name = f"127.0.0.1:{registry}/assay-tiny"
    recipe = load_recipe().model_copy(update={"reference": f"assay-test-pin-{uuid.uuid4().hex[:12]}:1"})
    layer = tmp_path / "layer.tar"
    with tarfile.open(layer, "w") as archive:
        entry = tarfile.TarInfo("hello")
        entry.size = 5
        archive.addfile(entry, io.BytesIO(uuid.uuid4().bytes[:5]))
    architecture = debian_architecture(str(client.info()["Architecture"]))
    config = ImageConfig(f"{name}:1", architecture, {"A": "b"}, ("sh",), {}, 0, "a test")
    config_digest = write_archive(layer, config, tmp_path / "image.tar")
    try:
        with (tmp_path / "image.tar").open("rb") as stream:
            client.images.load(stream)
        answers = list(client.api.push(name, tag="1", stream=True, decode=True))
        (digest,) = [answer["aux"]["Digest"] for answer in answers if "aux" in answer]
        client.images.remove(f"{name}:1", force=True)
        yield Published(f"{name}@{digest}", config_digest, engine, client, recipe)
    finally:
        for image in client.images.list(filters={"reference": f"{name}*"}):
            client.images.remove(str(image.id), force=True)
        for image in client.images.list(name=recipe.reference):
            client.images.remove(str(image.id), force=True)
        client.close()


def test_a_pinned_image_is_pulled_once_and_named(published: Published) -> None:
    lines: list[str] = []
    pulled = ensure_base_image(published.engine, os.environ, lines.append, pin=published.pin, recipe=published.recipe)
    assert pulled.how is Way.PULLED
    assert pulled.config_digest == published.config_digest
    assert any(published.pin in line for line in lines)
    named = published.client.images.get(published.recipe.reference)
    assert named.id == published.config_digest
    assert published.pin in named.attrs["RepoDigests"]
    again = ensure_base_image(published.engine, os.environ, lines.append, pin=published.pin, recipe=published.recipe)
    assert again.how is Way.PRESENT


def test_a_digest_the_registry_does_not_have_is_an_error(published: Published) -> None:
    pin = f"{published.pin.partition('@')[0]}@sha256:{'0' * 64}"
    with pytest.raises(ConfigError, match="not given out by its registry") as caught:
        ensure_base_image(published.engine, os.environ, lambda line: None, pin=pin, recipe=published.recipe)
    assert caught.value.place == pin


def test_registries_that_have_it_refuse_it_or_are_not_there(published: Published) -> None:
    assert ask_registry(published.client, published.pin) is RegistryAnswer.HAS_IT
    name = published.pin.partition("@")[0]
    assert ask_registry(published.client, f"{name}@sha256:{'0' * 64}") is RegistryAnswer.REFUSES
    assert ask_registry(published.client, "127.0.0.1:1/assay-tiny:1") is RegistryAnswer.SILENT


def test_an_unreachable_registry_gives_way_to_what_is_here_and_says_so() -> None:
    engine = ensure_engine(os.environ, lambda line: None)
    lines: list[str] = []
    pin = f"127.0.0.1:1/assay-base@sha256:{'0' * 64}"
    image = ensure_base_image(engine, os.environ, lines.append, pin=pin)
    assert image.how is Way.PRESENT
    assert lines == [f"the registry of {pin} cannot be reached: using what is here"]
