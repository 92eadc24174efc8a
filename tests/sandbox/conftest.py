"""The engine and the base image for the tests marked `docker`."""

from __future__ import annotations

import os

import docker
import docker.errors
import pytest
import requests

from harness.records.task import ImagePin

BASE_IMAGE = "assay-base:1"


@pytest.fixture(scope="session")
def base_pin() -> ImagePin:
    """The base image by digest. Skips only where there is no engine and none was promised (ASSAY_REQUIRE_DOCKER)."""
    try:
        client = docker.APIClient(version="auto", timeout=60)
    except (docker.errors.DockerException, requests.RequestException) as error:
        if os.environ.get("ASSAY_REQUIRE_DOCKER"):
            raise
        pytest.skip(f"no container engine: {error}")
    with client:
        inspected = client.inspect_image(BASE_IMAGE)  # type: ignore[no-untyped-call]
    return ImagePin(reference=BASE_IMAGE, digest=inspected["Id"])
