"""The three ways to obtain the base image when the engine lacks it: pull, build from the Dockerfile, mmdebstrap."""

from __future__ import annotations

import io
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
from docker.errors import APIError

from harness.bootstrap.archive import ImageConfig, write_archive
from harness.bootstrap.commands import Command, Report, install_packages, run_command
from harness.bootstrap.machine import Machine
from harness.bootstrap.recipe import RECIPE_LABEL, Recipe, mmdebstrap_argv, render_dockerfile
from harness.records.errors import AssayError

# Not /tmp: that may be a small memory file system, or one without device files.
_WORK_FOLDER = Path("/var/tmp")
_SHOWN_CHARACTERS = 120
_PROXIES = {"Acquire::http::Proxy": "http_proxy", "Acquire::https::Proxy": "https_proxy"}


@dataclass(frozen=True, slots=True)
class Builder:
    """The engine to build into, what to build, for which architecture (Debian's word), and who hears of it."""

    client: docker.DockerClient
    recipe: Recipe
    architecture: str
    report: Report

    @property
    def platform(self) -> str:
        """The engine's name of the platform."""
        return f"linux/{self.architecture}"


def pull_image(builder: Builder, pin: str) -> None:
    """Pull `name@sha256:…` and give it the recipe's reference.

    Raises:
        AssayError: the registry or the transfer failed.
    """
    builder.report(f"pulling {pin}")
    name, _, digest = pin.partition("@")
    try:
        follow_stream(
            builder.client.api.pull(name, tag=digest, stream=True, decode=True, platform=builder.platform),
            builder.report,
            place=pin,
        )
        builder.client.images.get(pin).tag(builder.recipe.reference)
    except APIError as error:
        raise AssayError(f"the pull failed: {error.explanation or error}", place=pin) from error


def build_from_dockerfile(builder: Builder) -> None:
    """Build the generated Dockerfile in the engine; needs its parent image and, inside, Debian's archive.

    Raises:
        AssayError: a step of the build failed; with the step's own words.
    """
    recipe = builder.recipe
    builder.report(f"building {recipe.reference} from {recipe.parent} in the engine")
    try:
        stream = builder.client.api.build(
            fileobj=io.BytesIO(render_dockerfile(recipe).encode()),
            tag=recipe.reference,
            labels={RECIPE_LABEL: recipe.digest()},
            platform=builder.platform,
            rm=True,
            forcerm=True,
            decode=True,
        )
        follow_stream(stream, builder.report, place="tasks/base/Dockerfile")
    except APIError as error:
        raise AssayError(f"the build failed: {error.explanation or error}", place="tasks/base/Dockerfile") from error


def follow_stream(stream: Iterable[dict[str, Any]], report: Report, *, place: str) -> None:
    """Report the steps of a pull or build as the engine tells them.

    Raises:
        AssayError: the stream says that it failed; the engine's status was 200 by then.
    """
    said = ""
    for message in stream:
        if "error" in message:
            raise AssayError(f"{message['error']}{f' (after: {said})' if said else ''}", place=place)
        line = str(message.get("stream") or "").strip()
        said = line or said
        if line.startswith("Step ") or (not line and "status" in message and "progressDetail" not in message):
            report((line or str(message["status"]).strip())[:_SHOWN_CHARACTERS])


def build_with_mmdebstrap(builder: Builder, machine: Machine) -> None:
    """Install Debian into a tar file and load it; needs root on Debian, no registry.

    Raises:
        AssayError: mmdebstrap could not be installed or failed.
    """
    recipe, report = builder.recipe, builder.report
    if not machine.mmdebstrap_installed:
        install_packages(["mmdebstrap"], report)
    report(f"building {recipe.reference} with mmdebstrap: {len(recipe.packages)} packages of Debian {recipe.suite}")
    with tempfile.TemporaryDirectory(prefix="assay-base-", dir=_WORK_FOLDER) as folder:
        layer, archive = Path(folder, "layer.tar"), Path(folder, "image.tar")
        run_command(
            Command(
                mmdebstrap_argv(recipe, builder.architecture, layer),
                {"SOURCE_DATE_EPOCH": str(recipe.epoch_s), "TMPDIR": str(_WORK_FOLDER), **_apt_proxies()},
                progress=_is_progress,
                remedy=f"see that {recipe.mirrors[0].split()[1]} can be reached and {_WORK_FOLDER} has 1 GB free",
            ),
            report,
        )
        config = ImageConfig(
            reference=recipe.reference,
            architecture=builder.architecture,
            environment=recipe.environment,
            command=recipe.command,
            labels={RECIPE_LABEL: recipe.digest()},
            created_s=recipe.epoch_s,
            created_by=f"mmdebstrap --variant=minbase {recipe.suite}",
        )
        digest = write_archive(layer, config, archive)
        report(f"loading {archive.stat().st_size / 1e6:.0f} MB as {digest[:19]}…")
        with archive.open("rb") as stream:
            builder.client.images.load(stream)


def _is_progress(line: str) -> bool:
    return line.startswith(("I: ", "W: ", "E: ")) and "--customize-hook" not in line


def _apt_proxies() -> dict[str, str]:
    """The proxies of this machine's apt as environment variables: mmdebstrap does not read apt's configuration."""
    dump = subprocess.run(
        ["apt-config", "dump", *_PROXIES], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
    )
    found = {}
    for line in dump.stdout.splitlines():
        key, _, value = line.partition(" ")
        proxy = value.strip('";')
        if key in _PROXIES and proxy and proxy != "DIRECT":
            found[_PROXIES[key]] = proxy
    return found
