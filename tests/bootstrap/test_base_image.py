"""The decision how to have the base image, and the image itself."""

from __future__ import annotations

import os
from dataclasses import replace

import docker
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.bootstrap.base_image import (
    ImageFacts,
    PresentImage,
    RegistryAnswer,
    Way,
    ensure_base_image,
    is_usable,
    plan_ways,
)
from harness.bootstrap.engine import ensure_engine
from harness.bootstrap.machine import Machine
from harness.bootstrap.recipe import RECIPE_LABEL, load_recipe
from harness.records.errors import ConfigError, EngineUnavailable

RECIPE = f"sha256:{'a' * 64}"
PIN = f"registry.example/base@sha256:{'b' * 64}"
DEBIAN = Machine(
    root=True,
    debian=True,
    distribution="Debian",
    architecture="amd64",
    systemd=False,
    dockerd_installed=True,
    iptables_installed=True,
    mmdebstrap_installed=False,
)
FEDORA = replace(DEBIAN, debian=False, distribution="Fedora")
OURS = PresentImage("sha256:1", "amd64", RECIPE)
OLD = PresentImage("sha256:2", "amd64", f"sha256:{'c' * 64}")
FOREIGN = PresentImage("sha256:3", "arm64", RECIPE)
PUBLISHED = PresentImage("sha256:4", "amd64", "")
MISSING = ImageFacts(RECIPE, "amd64", DEBIAN)
PINNED = replace(MISSING, pin=PIN)
HAS_IT, REFUSES, SILENT = RegistryAnswer.HAS_IT, RegistryAnswer.REFUSES, RegistryAnswer.SILENT


@pytest.mark.parametrize(
    ("facts", "ways"),
    [
        (replace(MISSING, local=OURS), (Way.PRESENT,)),
        (replace(MISSING, local=OLD), (Way.MMDEBSTRAP,)),
        (replace(MISSING, local=FOREIGN), (Way.MMDEBSTRAP,)),
        (MISSING, (Way.MMDEBSTRAP,)),
        (replace(MISSING, parent=SILENT), (Way.MMDEBSTRAP,)),
        (replace(MISSING, parent=HAS_IT), (Way.DOCKERFILE, Way.MMDEBSTRAP)),
        (replace(MISSING, parent=HAS_IT, machine=FEDORA), (Way.DOCKERFILE,)),
        (replace(MISSING, parent=HAS_IT, engine_architecture="arm64"), (Way.DOCKERFILE,)),
        (replace(PINNED, pinned=PUBLISHED), (Way.PRESENT,)),
        (replace(PINNED, pin_registry=HAS_IT), (Way.PULLED,)),
        # A pin is a wish: an image of our own that is here does not answer it while the registry does.
        (replace(PINNED, local=OURS, pin_registry=HAS_IT), (Way.PULLED,)),
        (replace(PINNED, local=OURS, pin_registry=SILENT), (Way.PRESENT,)),
        (replace(PINNED, pin_registry=SILENT), (Way.MMDEBSTRAP,)),
    ],
)
def test_the_ways_in_their_order(facts: ImageFacts, ways: tuple[Way, ...]) -> None:
    plan = plan_ways(facts)
    assert plan.ways == ways
    assert plan.problem is None
    assert bool(plan.note) is (facts.pin_registry is SILENT), "another image than the pinned one must be told"


@pytest.mark.parametrize(
    ("facts", "kind", "words"),
    [
        (replace(MISSING, machine=FEDORA, parent=SILENT), EngineUnavailable, "Fedora has no mmdebstrap"),
        (replace(MISSING, machine=replace(DEBIAN, root=False)), EngineUnavailable, "not root"),
        (replace(MISSING, engine_architecture="arm64"), EngineUnavailable, "the engine is arm64"),
        (replace(PINNED, pin_registry=REFUSES), ConfigError, "not given out by its registry"),
        (replace(PINNED, pin_registry=REFUSES, local=OURS), ConfigError, "not given out by its registry"),
        (replace(PINNED, pinned=FOREIGN), ConfigError, "is for arm64, the engine for amd64"),
    ],
)
def test_what_cannot_be_had_says_why_and_what_to_do(facts: ImageFacts, kind: type[Exception], words: str) -> None:
    plan = plan_ways(facts)
    assert plan.ways == ()
    assert type(plan.problem) is kind
    assert plan.problem is not None
    assert words in plan.problem.message
    assert plan.problem.remedy


images = st.sampled_from([None, OURS, OLD, FOREIGN, PUBLISHED])
answers = st.sampled_from(RegistryAnswer)
any_facts = st.builds(
    ImageFacts,
    recipe_digest=st.just(RECIPE),
    engine_architecture=st.sampled_from(["amd64", "arm64"]),
    machine=st.sampled_from([DEBIAN, FEDORA, replace(DEBIAN, root=False)]),
    pin=st.sampled_from(["", PIN]),
    pinned=images,
    local=images,
    pin_registry=answers,
    parent=answers,
)


@given(any_facts)
def test_a_plan_is_ways_or_a_problem_and_never_an_unfit_image(facts: ImageFacts) -> None:
    plan = plan_ways(facts)
    assert bool(plan.ways) is (plan.problem is None)
    if Way.PRESENT in plan.ways:
        taken = facts.pinned if facts.pin and facts.pinned else facts.local
        assert taken is not None
        assert taken.architecture == facts.engine_architecture
        assert taken.recipe_digest == facts.recipe_digest or taken is facts.pinned
    if Way.PULLED in plan.ways:
        assert facts.pin
    if Way.MMDEBSTRAP in plan.ways:
        assert facts.machine.root
        assert facts.machine.debian
    assert not (is_usable(facts) and plan.ways != (Way.PRESENT,))


@pytest.mark.docker
def test_the_base_image_is_here_and_runs() -> None:
    engine = ensure_engine(os.environ, lambda line: None)
    lines: list[str] = []
    image = ensure_base_image(engine, os.environ, lines.append)
    assert image.how is Way.PRESENT, "make setup comes before the tests"
    assert lines == []
    client = docker.DockerClient(base_url=engine.address.url)
    try:
        recipe = load_recipe()
        found = client.images.get(image.config_digest)
        assert recipe.reference in found.tags
        assert found.labels[RECIPE_LABEL] == recipe.digest()
        tools = "bash gawk jq sqlite3 nc ss ip curl git zip unzip bc make rsync ps pstree file patch less xz openssl"
        script = f"set -e; python3 --version; python3 -m pytest --version; locale; for t in {tools}; do which $t; done"
        output = client.containers.run(
            image.config_digest, ["bash", "-c", script], network_mode="none", remove=True, stderr=True
        ).decode()
    finally:
        client.close()
    assert "Python 3." in output
    assert "pytest" in output
    assert "LANG=C.UTF-8" in output


@pytest.mark.docker
@pytest.mark.parametrize("pin", ["debian:12", "debian", f"debian@sha256:{'a' * 63}", f"a b@sha256:{'a' * 64}"])
def test_a_tag_is_not_a_pin(pin: str) -> None:
    engine = ensure_engine(os.environ, lambda line: None)
    with pytest.raises(ConfigError, match="does not pin an image"):
        ensure_base_image(engine, os.environ, lambda line: None, pin=pin)
