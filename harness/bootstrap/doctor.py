"""What works on this machine and what to do about the rest. Looks only; changes nothing but one short container."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from pathlib import Path

import docker
import requests
from docker.errors import DockerException

from harness.bootstrap.base_image import inspect_image
from harness.bootstrap.check import Check, Status
from harness.bootstrap.engine import describe_failure
from harness.bootstrap.engine_checks import (
    check_architecture,
    check_base_image,
    check_disk,
    check_limits,
    check_storage,
    check_version,
    measure_disk,
    read_limits,
    read_mounts,
)
from harness.bootstrap.libraries import check_libraries
from harness.bootstrap.locate import EngineAddress, choose_address, connect_engine, probe_engine
from harness.bootstrap.machine import debian_architecture
from harness.bootstrap.recipe import load_recipe
from harness.records.errors import AssayError

MINIMUM_PYTHON = (3, 11)
KEY_NAMES = (
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "MISTRAL_API_KEY",
    "GROQ_API_KEY",
    "OPENROUTER_API_KEY",
    "TOGETHER_API_KEY",
    "DEEPSEEK_API_KEY",
    "XAI_API_KEY",
)


def examine(environment: Mapping[str, str], store: Path = Path(".assay")) -> tuple[Check, ...]:
    """All checks, in the order to mend them.

    Args:
        environment: where the engine's address and the API keys are looked for; only names of keys are told.
        store: the folder that runs are stored in, for its disk.

    Never raises for a thing that is wrong with the machine: that is a check that failed.
    """
    return (
        check_python(sys.version_info[:3]),
        check_libraries(),
        *_examine_engine(environment),
        check_disk("store disk", measure_disk(store.absolute())),
        check_keys(environment),
    )


def check_python(version: tuple[int, ...]) -> Check:
    """The interpreter's version."""
    finding = f"{platform.python_implementation()} {'.'.join(map(str, version))}"
    if version < MINIMUM_PYTHON:
        return Check("python", Status.FAIL, finding, "use Python 3.11 or newer")
    return Check("python", Status.OK, finding)


def check_keys(environment: Mapping[str, str]) -> Check:
    """Which providers' keys are set, by name."""
    names = [name for name in KEY_NAMES if environment.get(name)]
    if names:
        return Check("api keys", Status.OK, f"set: {', '.join(names)}")
    return Check(
        "api keys", Status.WARN, "none is set: only the simulated model can be run", "export your provider's key"
    )


def _examine_engine(environment: Mapping[str, str]) -> tuple[Check, ...]:
    try:
        address = choose_address(environment)
    except AssayError as error:
        return (Check("engine", Status.FAIL, f"{error.place}: {error.message}", error.remedy),)
    probe = probe_engine(address, environment)
    if probe.failure is not None:
        refusal = describe_failure(probe)
        return (Check("engine", Status.FAIL, refusal.message, refusal.remedy),)
    version = check_version(probe.version, probe.api_version)
    try:
        client = connect_engine(address, environment)
        try:
            return (version, *_examine_answering(client, address))
        finally:
            client.close()
    except (DockerException, requests.RequestException) as error:
        return (version, Check("engine answers", Status.FAIL, str(error), "see the engine's log"))


def _examine_answering(client: docker.DockerClient, address: EngineAddress) -> tuple[Check, ...]:
    """The checks that need a live engine."""
    recipe = load_recipe()
    info = client.info()
    image = inspect_image(client, recipe.reference)
    seen = read_limits(client, image.config_digest) if image else None
    # Behind a socket of this machine the engine's folder is ours to see, unless it lives in a virtual machine.
    root = Path(str(info.get("DockerRootDir", "/")))
    local = address.url.startswith("unix://") and os.path.isdir(root)
    return (
        check_architecture(info, debian_architecture(platform.machine())),
        check_limits(info, seen),
        check_storage(info, read_mounts() if local else None),
        check_disk("engine disk", measure_disk(root) if local else None),
        check_base_image(image, recipe.digest(), info, recipe.reference),
    )
