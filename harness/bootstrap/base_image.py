"""Have the base image that the bundled tasks run in: found, pulled or built.

`plan_ways` decides over a record of facts which ways to try in which order; `ensure_base_image` gathers the facts and
walks the ways. The image carries the digest of its recipe as a label, so that a changed recipe is a changed image.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

import docker
import requests
from docker.errors import APIError, DockerException, ImageNotFound, NotFound

from harness.bootstrap.build import Builder, build_from_dockerfile, build_with_mmdebstrap, pull_image
from harness.bootstrap.commands import Report, as_unavailable
from harness.bootstrap.engine import Engine
from harness.bootstrap.locate import connect_engine
from harness.bootstrap.machine import Machine, debian_architecture, survey_machine
from harness.bootstrap.recipe import RECIPE_LABEL, Recipe, load_recipe
from harness.records.errors import AssayError, ConfigError, EngineUnavailable

BUILD_TIMEOUT_S = 900.0
_REGISTRY_TIMEOUT_S = 8.0
_PIN = re.compile(r"[^@\s]+@sha256:[0-9a-f]{64}")
_REFUSALS = frozenset({401, 403, 404})


class Way(StrEnum):
    """How the image can be had; in the record, how it was."""

    PRESENT = "present"
    PULLED = "pulled"
    DOCKERFILE = "dockerfile"
    MMDEBSTRAP = "mmdebstrap"


class RegistryAnswer(StrEnum):
    """What a registry said about a reference; `silent` when it could not be reached in time."""

    NOT_ASKED = "not_asked"
    HAS_IT = "has_it"
    REFUSES = "refuses"
    SILENT = "silent"


@dataclass(frozen=True, slots=True)
class PresentImage:
    """An image in the engine. `config_digest` is its id; architecture in Debian's words."""

    config_digest: str
    architecture: str
    recipe_digest: str


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """What the decision needs: the wish, what the engine has, who answers, and what this machine can do."""

    recipe_digest: str
    engine_architecture: str
    machine: Machine
    pin: str = ""
    pinned: PresentImage | None = None
    local: PresentImage | None = None
    pin_registry: RegistryAnswer = RegistryAnswer.NOT_ASKED
    parent: RegistryAnswer = RegistryAnswer.NOT_ASKED


@dataclass(frozen=True, slots=True)
class ImagePlan:
    """The ways to try in order; when there is none, the error to raise. A `note` is worth telling."""

    ways: tuple[Way, ...]
    problem: AssayError | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class BaseImage:
    """The image that is there now. `reference` is the local name, `config_digest` the engine's id of it."""

    reference: str
    config_digest: str
    how: Way
    seconds: float


def is_usable(facts: ImageFacts) -> bool:
    """Whether the engine has what is wished for already, so that nobody else need be asked."""
    if facts.pin:
        return facts.pinned is not None and facts.pinned.architecture == facts.engine_architecture
    return _recipe_matches(facts)


def _recipe_matches(facts: ImageFacts) -> bool:
    local = facts.local
    return (
        local is not None
        and local.recipe_digest == facts.recipe_digest
        and local.architecture == facts.engine_architecture
    )


def plan_ways(facts: ImageFacts) -> ImagePlan:
    """The ways to try, in order. Pure.

    A pinned image that its registry refuses is an error, since another one was not asked for; only a registry that
    cannot be reached gives way to a build, and the plan's note says so.
    """
    if is_usable(facts):
        return ImagePlan((Way.PRESENT,))
    note = ""
    if facts.pin:
        if facts.pinned is not None:
            mismatch = f"is for {facts.pinned.architecture}, the engine for {facts.engine_architecture}"
            return _refuse_pin(facts, mismatch, "pin the image of the engine's architecture")
        if facts.pin_registry is RegistryAnswer.HAS_IT:
            return ImagePlan((Way.PULLED,))
        if facts.pin_registry is RegistryAnswer.REFUSES:
            remedy = "correct the digest, `docker login`, or leave the pin out to build the image here"
            return _refuse_pin(facts, "is not given out by its registry, which answers", remedy)
        note = f"the registry of {facts.pin} cannot be reached: building from the recipe instead"
        if _recipe_matches(facts):
            return ImagePlan((Way.PRESENT,), note=f"the registry of {facts.pin} cannot be reached: using what is here")
    return _plan_build(facts, note)


def _refuse_pin(facts: ImageFacts, what: str, remedy: str) -> ImagePlan:
    return ImagePlan((), ConfigError(f"the pinned base image {what}", place=facts.pin, remedy=remedy))


def _plan_build(facts: ImageFacts, note: str) -> ImagePlan:
    machine = facts.machine
    ways = [Way.DOCKERFILE] if facts.parent is RegistryAnswer.HAS_IT else []
    obstacles = []
    if not machine.root:
        obstacles.append("this is not root")
    if not machine.debian:
        obstacles.append(f"{machine.distribution} has no mmdebstrap of its own")
    if machine.architecture != facts.engine_architecture:
        obstacles.append(f"the engine is {facts.engine_architecture}, this machine {machine.architecture}")
    if not obstacles:
        ways.append(Way.MMDEBSTRAP)
    if ways:
        return ImagePlan(tuple(ways), note=note)
    problem = EngineUnavailable(
        f"the base image is missing, no registry gives its parent, and mmdebstrap is out: {'; '.join(obstacles)}",
        remedy="run `make setup` as root on Debian, or give a pinned image with --base-image name@sha256:…",
    )
    return ImagePlan((), problem)


def ensure_base_image(
    engine: Engine, environment: Mapping[str, str], report: Report, *, pin: str = "", recipe: Recipe | None = None
) -> BaseImage:
    """The base image under the recipe's reference in this engine, obtained if it is not there.

    Args:
        engine: from `ensure_engine`.
        environment: for the engine's TLS settings.
        report: is told each line of progress.
        pin: `name@sha256:…` of a published image to use instead of building; "" for none.
        recipe: the recipe; the bundled one when left out.

    Raises:
        ConfigError: the pin is not of the form name@sha256:…, or its registry or architecture refuses it.
        EngineUnavailable: the image cannot be had, or the engine went away; says why for the last way tried.
    """
    started_s = time.monotonic()
    recipe = recipe or load_recipe()
    if pin and not _PIN.fullmatch(pin):
        raise ConfigError(
            f"{pin!r} does not pin an image", place="base image", remedy="write name@sha256:<64 hexadecimal digits>"
        )
    client = connect_engine(engine.address, environment, BUILD_TIMEOUT_S)
    try:
        facts = gather_facts(client, recipe, pin)
        plan = plan_ways(facts)
        if plan.note:
            report(plan.note)
        if plan.problem is not None:
            raise plan.problem
        builder = Builder(client, recipe, facts.engine_architecture, report)
        how = _walk(plan.ways, builder, facts)
        image = inspect_image(client, recipe.reference)
    except (requests.RequestException, DockerException) as error:
        raise EngineUnavailable(
            f"the engine failed while the base image was prepared: {error}",
            place=engine.address.url,
            remedy="see the engine's log and run the command again",
        ) from error
    finally:
        client.close()
    if image is None:
        raise EngineUnavailable(
            "the base image vanished while it was prepared", place=recipe.reference, remedy="run it again"
        )
    return BaseImage(recipe.reference, image.config_digest, how, time.monotonic() - started_s)


def _walk(ways: tuple[Way, ...], builder: Builder, facts: ImageFacts) -> Way:
    """Try each way; the failure of all but the last is reported and passed over."""
    acts: dict[Way, Callable[[], None]] = {
        Way.PRESENT: lambda: _name_present(builder, facts),
        Way.PULLED: lambda: pull_image(builder, facts.pin),
        Way.DOCKERFILE: lambda: build_from_dockerfile(builder),
        Way.MMDEBSTRAP: lambda: build_with_mmdebstrap(builder, facts.machine),
    }
    for way in ways[:-1]:
        try:
            acts[way]()
        except AssayError as error:
            builder.report(f"{way} failed ({error.message}); trying the next way")
        else:
            return way
    try:
        acts[ways[-1]]()
    except (AssayError, OSError) as error:
        raise as_unavailable(error) from error
    return ways[-1]


def _name_present(builder: Builder, facts: ImageFacts) -> None:
    """Give a pinned image that is in the engine already the name under which the tasks know it."""
    if facts.pinned is not None:
        builder.client.images.get(facts.pin).tag(builder.recipe.reference)


def gather_facts(client: docker.DockerClient, recipe: Recipe, pin: str) -> ImageFacts:
    """Look into the engine, and ask a registry only when what is there does not do."""
    facts = ImageFacts(
        recipe_digest=recipe.digest(),
        engine_architecture=debian_architecture(str(client.info().get("Architecture", ""))),
        machine=survey_machine(),
        pin=pin,
        pinned=inspect_image(client, pin) if pin else None,
        local=inspect_image(client, recipe.reference),
    )
    if is_usable(facts):
        return facts
    return replace(
        facts,
        pin_registry=ask_registry(client, pin) if pin else RegistryAnswer.NOT_ASKED,
        parent=_parent_answer(client, recipe.parent),
    )


def _parent_answer(client: docker.DockerClient, parent: str) -> RegistryAnswer:
    present = inspect_image(client, parent)
    return RegistryAnswer.HAS_IT if present is not None else ask_registry(client, parent)


def inspect_image(client: docker.DockerClient, reference: str) -> PresentImage | None:
    """What the engine holds under this reference, if anything."""
    try:
        attributes = client.images.get(reference).attrs
    except ImageNotFound:
        return None
    labels = attributes.get("Config", {}).get("Labels") or {}
    return PresentImage(
        config_digest=attributes["Id"],
        architecture=debian_architecture(attributes.get("Architecture", "")),
        recipe_digest=labels.get(RECIPE_LABEL, ""),
    )


def ask_registry(client: docker.DockerClient, reference: str) -> RegistryAnswer:
    """Ask the registry through the engine, which has its own proxies and credentials; gives up after a few seconds."""
    usual_s, client.api.timeout = client.api.timeout, int(_REGISTRY_TIMEOUT_S)
    try:
        client.images.get_registry_data(reference)
    except NotFound:
        return RegistryAnswer.REFUSES
    except APIError as error:
        return RegistryAnswer.REFUSES if error.status_code in _REFUSALS else RegistryAnswer.SILENT
    except requests.RequestException:
        return RegistryAnswer.SILENT
    finally:
        client.api.timeout = usual_s
    return RegistryAnswer.HAS_IT
