"""`assay gc` on the real engine, with owners of every kind."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from harness.records.execution import Owner
from harness.records.task import ImagePin
from harness.sandbox.ownership import this_process

from .world import Done, assay, held_for

pytestmark = pytest.mark.docker


@pytest.fixture
def engine() -> Iterator[docker.APIClient]:
    with docker.APIClient(version="auto", timeout=60) as client:
        yield client


class Planted:
    """Containers and networks with labels as runs would have given them; what is left of them goes in the end."""

    def __init__(self, client: docker.APIClient, pin: ImagePin) -> None:
        self.client, self.pin = client, pin
        self.mark = secrets.token_hex(4)
        self._made: list[tuple[str, str]] = []

    def run(self, name: str) -> str:
        return f"{name}-{self.mark}"

    def container(self, name: str, owner: str) -> None:
        labels = {"assay.run": self.run(name), "assay.trial": f"{self.run(name)}.0000.1", "assay.owner": owner}
        made = self.client.create_container(self.pin.digest, "true", labels=labels, name=f"assay-{self.run(name)}")
        self._made.append(("container", made["Id"]))

    def network(self, name: str, owner: str) -> None:
        labels = {"assay.run": self.run(name), "assay.owner": owner}
        made = self.client.create_network(f"assay-{self.run(name)}", internal=True, labels=labels)
        self._made.append(("network", made["Id"]))

    def remove(self) -> None:
        for kind, id_ in self._made:
            try:
                if kind == "network":
                    self.client.remove_network(id_)
                else:
                    self.client.remove_container(id_, force=True)
            except docker.errors.NotFound:
                continue


@pytest.fixture
def planted(engine: docker.APIClient, base_pin: ImagePin) -> Iterator[Planted]:
    found = Planted(engine, base_pin)
    me = this_process()
    gone = me.model_copy(update={"started": me.started + 1}).label
    try:
        found.container("dead", gone)
        found.network("dead", gone)
        found.container("alive", me.label)
        found.container("far", Owner(host="far", machine="m", boot="b", namespace=1, pid=1, started=1).label)
        found.container("unreadable", "vm/1")
        yield found
    finally:
        found.remove()


def standings(done: Done, planted: Planted, part: str) -> dict[str, set[str]]:
    """Which of our own runs are in a part of the report, with the kinds of things."""
    found: dict[str, set[str]] = {}
    for item in done.json[part]:
        if item["run"].endswith(planted.mark):
            found.setdefault(item["run"].removesuffix(f"-{planted.mark}"), set()).add(item["kind"])
    return found


def test_only_what_dead_processes_own_is_removed_and_the_rest_is_told_with_the_reason(
    planted: Planted, tmp_path: Path
) -> None:
    store = ("--store", str(tmp_path / "none"))
    dry = assay("gc", "--dry-run", "--json", *store)
    assert standings(dry, planted, "removed") == {"dead": {"container", "network"}}
    assert len(held_for(planted.run("dead"))) == 2
    text = assay("gc", "--dry-run", *store)
    assert f"would remove container assay-{planted.run('dead')}" in text.out
    assert f"assay gc --run {planted.run('far')}" in text.err

    done = assay("gc", "--json", *store)
    assert done.code == 0
    assert done.json.keys() >= {"dry_run", "removed", "left", "failed"}
    # A sweep by somebody else may have been faster.
    assert standings(done, planted, "removed").keys() <= {"dead"}
    assert standings(done, planted, "left") == {name: {"container"} for name in ("alive", "far", "unreadable")}
    assert not held_for(planted.run("dead"))
    assert not (tmp_path / "none").exists()

    for name in ("far", "alive", "unreadable"):
        assert assay("gc", "--run", planted.run(name), "--json", *store).code == 0
    assert [len(held_for(planted.run(name))) for name in ("far", "alive", "unreadable")] == [0, 1, 0]


def test_a_network_that_is_in_use_is_told_as_not_removed(
    planted: Planted, engine: docker.APIClient, tmp_path: Path
) -> None:
    me = this_process()
    planted.network("used", me.model_copy(update={"started": me.started + 1}).label)
    network = f"assay-{planted.run('used')}"
    foreign = engine.create_container(
        planted.pin.digest,
        ["sleep", "60"],
        networking_config={"EndpointsConfig": {network: {}}},
    )
    try:
        engine.start(foreign["Id"])
        done = assay("gc", "--run", planted.run("used"), "--json", "--store", str(tmp_path / "none"))
    finally:
        engine.remove_container(foreign["Id"], force=True)
    assert done.code == 3
    assert [(item["name"], item["standing"]) for item in done.json["failed"]] == [(network, "dead")]
    assert "active endpoints" in done.json["failed"][0]["why"]
    assert done.json["removed"] == []
