"""The images that the engine holds. Looked at, never pulled, never built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import docker.errors

from harness.records.errors import SandboxFault
from harness.records.execution import ImageFacts
from harness.records.task import ImagePin
from harness.records.vocabulary import Reason
from harness.sandbox.engine import Engine


@dataclass(frozen=True)
class HeldImage:
    """An image, with the parts of its configuration that a sandbox needs."""

    facts: ImageFacts
    user: str
    architecture: str

    @classmethod
    def of(cls, inspected: Mapping[str, Any]) -> HeldImage:
        """From the answer to `GET /images/NAME/json`."""
        parts = (inspected.get("Os"), inspected.get("Architecture"), inspected.get("Variant"))
        facts = ImageFacts(
            digest=inspected["Id"],
            repo_digests=tuple(inspected.get("RepoDigests") or ()),
            platform="/".join(part for part in parts if part),
            size_bytes=inspected.get("Size") or 0,
        )
        configured = inspected.get("Config") or {}
        return cls(facts, configured.get("User") or "0:0", str(inspected.get("Architecture")))


class Images:
    """Looks images up; those found by digest are remembered, since they cannot change."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._known: dict[str, HeldImage] = {}

    async def held(self, name: str) -> HeldImage | None:
        """The image of that name or digest, or None. Raises SandboxFault."""

        def inspect(client: Any) -> dict[str, Any] | None:
            try:
                answer: dict[str, Any] = client.inspect_image(name)
            except docker.errors.NotFound:
                return None
            return answer

        inspected = await self._engine.call("inspecting the image", inspect, place=name)
        return None if inspected is None else HeldImage.of(inspected)

    async def pinned(self, pin: ImagePin) -> HeldImage:
        """The image of a pin. Raises SandboxFault with a reason of the group "image"."""
        if pin.locator is None:
            raise SandboxFault(
                "the image is not pinned by digest",
                reason=Reason.IMAGE_MISSING,
                place=pin.reference,
                remedy="lock the suite (`assay suite lock`)",
            )
        image = self._known.get(pin.locator) or await self.held(pin.locator)
        if image is None:
            raise SandboxFault(
                f"the engine does not hold {pin.locator}",
                reason=Reason.IMAGE_MISSING,
                place=pin.reference,
                remedy="build or pull it and lock the suite (`assay suite lock`)",
            )
        if pin.platform is not None and not image.facts.platform.startswith(pin.platform):
            raise SandboxFault(
                f"the image is for {image.facts.platform}, not {pin.platform}",
                reason=Reason.IMAGE_PLATFORM,
                place=pin.reference,
            )
        self._known[pin.locator] = image
        return image


def check_started(pin: ImagePin, image: HeldImage, started: Mapping[str, Any]) -> None:
    """Read back what a container was started from: the pinned digest, or the image found to carry it.

    Raises SandboxFault (image.mismatch).
    """
    expected = image.facts.digest if pin.repository else pin.digest
    carried = pin.repository is None or pin.locator in image.facts.repo_digests
    if started["Image"] != expected or not carried:
        raise SandboxFault(
            f"the container was started from {started['Image']}, not from {pin.locator}",
            reason=Reason.IMAGE_MISMATCH,
            place=pin.reference,
            remedy="lock the suite again (`assay suite lock`)",
        )
