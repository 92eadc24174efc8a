"""Opens Docker sandboxes (:class:`harness.protocols.SandboxProvider`)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from harness.records.errors import SandboxFault
from harness.records.execution import ImageFacts, Leftover, Owner, SandboxFacts, SandboxSpec
from harness.records.task import ImagePin
from harness.records.vocabulary import Network, Reason
from harness.sandbox.container import Container, remove_container
from harness.sandbox.container_config import (
    OWNER_LABEL,
    RUN_LABEL,
    TRIAL_LABEL,
    capability_words,
    container_config,
    container_name,
    enforcement,
    network_words,
    quota_worth_trying,
)
from harness.sandbox.container_files import ContainerFiles
from harness.sandbox.container_processes import ContainerProcesses
from harness.sandbox.docker_sandbox import DockerSandbox
from harness.sandbox.engine import Connect, Engine, connector
from harness.sandbox.images import Images, check_started
from harness.sandbox.keeper import keeper_for
from harness.sandbox.networks import RunNetworks, remove_network
from harness.sandbox.overlay_changes import Layers
from harness.sandbox.ownership import this_process

_NOTHING_CREATED = (Reason.IMAGE_MISSING, Reason.NAME_CONFLICT)


class DockerSandboxProvider:
    """Sandboxes of the engine at `base_url`, or at DOCKER_HOST, or of one that `client_factory` connects to.

    Constructing it does no I/O; every method may raise SandboxFault. `close` it at the end of the run.
    `host_signals` False: never look at this machine's process table, as if the engine were elsewhere.
    """

    name = "docker"

    def __init__(
        self,
        base_url: str | None = None,
        *,
        client_factory: Connect | None = None,
        host_signals: bool = True,
    ) -> None:
        self._engine = Engine(client_factory or connector(base_url))
        self._networks = RunNetworks(self._engine)
        self._host_signals = host_signals
        self._images = Images(self._engine)
        self._quota_refused = False

    async def ping(self) -> None:
        """Reach the engine, before anything is planned. Raises SandboxFault(engine.unreachable)."""
        await self._engine.info()

    @asynccontextmanager
    async def open(self, spec: SandboxSpec) -> AsyncIterator[DockerSandbox]:
        """As the protocol says. Four calls of the engine, and at most one to remove it."""
        image = await self._images.pinned(spec.image)
        keeper = keeper_for(image.architecture)
        if keeper is None:
            raise SandboxFault(
                f"no keeper for images of {image.facts.platform}",
                reason=Reason.IMAGE_PLATFORM,
                place=spec.image.reference,
                remedy="use an amd64 or arm64 image",
            )
        network, network_said = await self._network(spec)
        name = container_name(spec)
        removable: str | None = name  # by name, until the engine has told the id
        try:
            try:
                created, quota = await self._create(spec, name, network)
            except SandboxFault as fault:
                removable = None if fault.reason in _NOTHING_CREATED else name
                raise
            removable = created["Id"]
            container = Container(self._engine, created["Id"], name, keeper)
            started = await container.start()
            check_started(spec.image, image, started)
            processes = ContainerProcesses(container, started, host_signals=self._host_signals)
            facts = SandboxFacts(
                id=container.id,
                name=name,
                image_digest=started["Image"],
                repo_digest=spec.image.locator if spec.image.repository else None,
                platform=image.facts.platform,
                engine=f"docker {(await self._engine.info()).version}",
                kernel=(await self._engine.info()).kernel,
                enforced=enforcement(
                    spec,
                    await self._engine.info(),
                    quota=quota,
                    warnings=created.get("Warnings") or (),
                    network=network_said,
                )
                | {"capabilities": capability_words(spec, processes.capabilities())},
            )
            layers = Layers.of(started) if processes.visible else None
            files = ContainerFiles(self._engine, container.id, name, layers)
            yield DockerSandbox(container, processes, files, spec, facts, spec.user or image.user)
        finally:
            if removable is not None:
                await remove_container(self._engine, removable)

    async def image(self, pin: ImagePin) -> ImageFacts | None:
        """The image of a pin; of an open pin what its reference names, so that it can be locked."""
        held = await self._images.held(pin.locator or pin.reference)
        return held.facts if held else None

    async def gateway_address(self, run: str) -> str:
        """Where sandboxes of the run with network "gateway" reach this machine: bind the metering gateway there."""
        return (await self._networks.network(run))[1]

    async def leftovers(self) -> tuple[Leftover, ...]:
        """Containers first: a network cannot go while one is in it."""
        filters = {"label": RUN_LABEL}
        containers = await self._engine.call(
            "listing containers", lambda client: client.containers(all=True, filters=filters)
        )
        networks = await self._engine.call("listing networks", lambda client: client.networks(filters=filters))
        return (
            *(
                Leftover(
                    id=item["Id"],
                    kind="container",
                    name=(item.get("Names") or ["/"])[0].lstrip("/"),
                    run=item["Labels"][RUN_LABEL],
                    trial=item["Labels"].get(TRIAL_LABEL),
                    created=str(item.get("Created", "")),
                    owner=Owner.read(item["Labels"].get(OWNER_LABEL, "")),
                )
                for item in containers
            ),
            *(
                Leftover(
                    id=item["Id"],
                    kind="network",
                    name=item["Name"],
                    run=item["Labels"][RUN_LABEL],
                    created=str(item.get("Created", "")),
                    owner=Owner.read(item["Labels"].get(OWNER_LABEL, "")),
                )
                for item in networks
            ),
        )

    async def remove(self, leftover: Leftover) -> None:
        """Remove a container (a failure is logged, see `leftovers`) or a network."""
        if leftover.kind == "network":
            await remove_network(self._engine, leftover.id)
        else:
            await remove_container(self._engine, leftover.id, maybe_frozen=True)

    async def close(self) -> None:
        """Remove the networks that were made, and let go of the engine."""
        await self._networks.close()
        await self._engine.close()

    async def _network(self, spec: SandboxSpec) -> tuple[str, str]:
        wanted = spec.limits.network
        if wanted is Network.GATEWAY:
            network_id, host = await self._networks.network(spec.run)
            return network_id, network_words(wanted, host)
        return {Network.NONE: "none", Network.INTERNET: "bridge"}[wanted], network_words(wanted, None)

    async def _create(self, spec: SandboxSpec, name: str, network: str) -> tuple[dict[str, Any], bool]:
        """The engine's answer, and whether it enforces the size."""
        wish = spec.limits.disk_mb is not None and not self._quota_refused
        quota = wish and quota_worth_trying(await self._engine.info())
        try:
            return await self._create_with(spec, name, network, quota), quota
        except SandboxFault as fault:
            if not quota or "storage-opt" not in fault.message.lower():
                raise
            self._quota_refused = True
            return await self._create_with(spec, name, network, False), False

    async def _create_with(self, spec: SandboxSpec, name: str, network: str, quota: bool) -> dict[str, Any]:
        owner = this_process().label
        config = container_config(spec, str(spec.image.locator), owner=owner, network=network, quota=quota)

        def create(client: Any) -> dict[str, Any]:
            answer: dict[str, Any] = client.create_container_from_config(config, name)
            return answer

        return await self._engine.call("creating the container", create, place=name)
