"""Environments in containers: a benchmark's own code at the commit that an image was built from."""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.environments.remote import RemoteEnvironment
from harness.records.errors import ConfigError
from harness.records.execution import SandboxSpec
from harness.records.task import DIGEST_PATTERN, ImagePin, Limits
from harness.sandbox.attached import AttachedContainer


def contained(image: str, command: Sequence[str] = (), limits: Limits | None = None) -> RemoteEnvironment:
    """The environment in a container of an image, by `repository@sha256:…` or the id of an image that was built here.

    Its code is the image: that digest is what it is made of. Raises ConfigError for an image without a digest.
    """
    repository, at, digest = image.rpartition("@")
    if not re.fullmatch(DIGEST_PATTERN, digest) or (at and not repository):
        raise ConfigError(
            f"{image!r} is not pinned by digest",
            place=image,
            remedy="write container:IMAGE@sha256:…, or container:sha256:… for an image that was built here",
        )
    pin = ImagePin(reference=image, repository=repository or None, digest=digest)
    spec = SandboxSpec(
        run="environment", trial=digest[7:19], purpose="environment", image=pin, limits=limits or Limits()
    )

    return RemoteEnvironment(lambda: AttachedContainer(spec, tuple(command)), code=digest)
