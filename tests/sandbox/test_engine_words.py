"""What is asked of the engine, and what its answers and failures are taken for."""

from __future__ import annotations

import errno
import re
from typing import Any

import docker.errors
import pytest
import requests

from harness.records.errors import SandboxFault
from harness.records.execution import SandboxSpec
from harness.records.task import ImagePin, Limits
from harness.records.vocabulary import Network, Reason
from harness.sandbox.container_config import (
    container_config,
    container_name,
    enforcement,
    network_words,
    quota_worth_trying,
)
from harness.sandbox.engine import EngineInfo
from harness.sandbox.errors import already_gone, fault_from, path_is_missing
from harness.sandbox.images import HeldImage, check_started
from harness.sandbox.provider import DockerSandboxProvider

DIGEST = "sha256:" + "a" * 64


def api_error(status: int, words: str) -> docker.errors.APIError:
    response = requests.Response()
    response.status_code = status
    kind = docker.errors.NotFound if status == 404 else docker.errors.APIError
    return kind(words, response=response, explanation=words)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (api_error(404, "No such image: sha256:0"), Reason.IMAGE_MISSING),
        (api_error(404, "No such container: abc"), Reason.CONTAINER_LOST),
        (api_error(404, "No such exec instance: abc"), Reason.CONTAINER_LOST),
        (api_error(409, "Container abc is not running"), Reason.CONTAINER_LOST),
        (api_error(409, 'Conflict. The container name "/x" is already in use by container "y"'), Reason.NAME_CONFLICT),
        (api_error(500, "write /x: No space left on device"), Reason.DISK_FULL),
        (
            api_error(500, "could not find an available, non-overlapping IPv4 address pool among the defaults"),
            Reason.NETWORK_POOL,
        ),
        (api_error(500, "all predefined address pools have been fully subnetted"), Reason.NETWORK_POOL),
        (api_error(500, "something new"), Reason.ENGINE_ERROR),
        (docker.errors.DockerException("Error while fetching server API version"), Reason.ENGINE_UNREACHABLE),
        (requests.ConnectionError("Connection aborted."), Reason.ENGINE_UNREACHABLE),
        (requests.ReadTimeout("Read timed out."), Reason.ENGINE_UNREACHABLE),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), Reason.ENGINE_UNREACHABLE),
        (OSError(errno.ENOSPC, "No space left on device"), Reason.DISK_FULL),
    ],
    ids=lambda value: value.name if isinstance(value, Reason) else None,
)
def test_every_failure_has_its_reason(error: Exception, reason: Reason) -> None:
    fault = fault_from(error, "doing it", place="container x")
    assert fault.reason == reason
    assert str(fault).startswith("container x: doing it failed: ")
    assert "\n" not in str(fault)


def test_a_missing_path_is_not_a_missing_container() -> None:
    assert path_is_missing(api_error(404, "Could not find the file /x in container abc"))
    assert not path_is_missing(api_error(404, "No such container: abc"))
    assert already_gone(api_error(404, "No such container: abc"))
    assert already_gone(api_error(409, "removal of container abc is already in progress"))
    assert not already_gone(api_error(409, "You cannot remove a paused container"))


INFO = EngineInfo("20.10", "6.1", "overlay2", "extfs", True, True, True, True)


def spec(**changes: Any) -> SandboxSpec:
    pin = ImagePin(reference="x:1", digest=DIGEST)
    values = {"run": "r", "trial": "a/b 1", "image": pin, "limits": Limits(disk_mb=10, cpus=1.5), **changes}
    return SandboxSpec(**values)


def test_a_container_is_limited_labelled_and_drops_everything() -> None:
    config = container_config(
        spec(capabilities=("CHOWN",), labels={"mine": "1", "assay.run": "forged", "assay.owner": "forged"}),
        DIGEST,
        owner="me/1",
        network="none",
        quota=False,
    )
    host = config["HostConfig"]
    assert config["Image"] == DIGEST
    assert config["Labels"]["assay.run"] == "r"
    assert config["Labels"]["assay.trial"] == "a/b 1"
    assert config["Labels"]["mine"] == "1"
    assert config["Labels"]["assay.owner"] == "me/1"
    assert host["NanoCpus"] == 1_500_000_000
    assert host["Memory"] == host["MemorySwap"] == 2048 * 1024 * 1024
    assert (host["PidsLimit"], host["CapDrop"], host["CapAdd"]) == (512, ["ALL"], ["CHOWN"])
    assert host["SecurityOpt"] == ["no-new-privileges"]
    assert host["RestartPolicy"] == {"Name": "no"}
    assert {"Name": "fsize", "Soft": 10485760, "Hard": 10485760} in host["Ulimits"]
    assert "StorageOpt" not in host


def test_a_driver_with_quotas_gets_the_size() -> None:
    host = container_config(spec(), DIGEST, owner="me/1", network="none", quota=True)["HostConfig"]
    assert host["StorageOpt"] == {"size": "10485760"}
    assert all(limit["Name"] != "fsize" for limit in host["Ulimits"])
    assert not quota_worth_trying(INFO)
    xfs = EngineInfo.of({"Driver": "overlay2", "DriverStatus": [["Backing Filesystem", "xfs"]]})
    assert quota_worth_trying(xfs)


def test_names_are_the_engines_kind_and_never_the_same() -> None:
    names = {container_name(spec()) for _ in range(50)}
    assert len(names) == 50
    assert all(re.fullmatch(r"assay-r-a-b-1-[0-9a-f]{8}", name) for name in names)


def test_a_limit_that_is_not_held_says_so() -> None:
    warning = "Your kernel does not support swap limit capabilities or the cgroup is not mounted."
    said = enforcement(spec(), INFO, quota=False, warnings=[warning, "Something else."], network="none: loopback only")
    assert said["memory"] == said["cpus"] == said["pids"] == "cgroup"
    assert said["swap"] == f"refused: {warning}"
    assert said["warnings"] == "Something else."
    assert said["disk"].startswith("emulated:")
    poor = EngineInfo.of({"PidsLimit": False, "CpuCfsQuota": False})
    said = enforcement(spec(limits=Limits(disk_mb=None)), poor, quota=False, warnings=[], network="")
    assert said["pids"].startswith("refused:")
    assert said["cpus"].startswith("refused:")
    assert said["disk"] == "none: no limit asked"
    assert "172.18.0.1" in network_words(Network.GATEWAY, "172.18.0.1")


def held(digest: str, *repo_digests: str, architecture: str = "amd64") -> HeldImage:
    return HeldImage.of(
        {"Id": digest, "RepoDigests": list(repo_digests), "Os": "linux", "Architecture": architecture, "Variant": "v8"}
    )


def test_what_was_started_must_be_what_was_pinned() -> None:
    image = held("sha256:" + "c" * 64, f"ghcr.io/x/y@{DIGEST}")
    registry = ImagePin(reference="y:1", repository="ghcr.io/x/y", digest=DIGEST)
    check_started(registry, image, {"Image": image.facts.digest})
    check_started(ImagePin(reference="y:1", digest=image.facts.digest), image, {"Image": image.facts.digest})
    for pin, found, started in [
        (registry, image, DIGEST),
        (registry, held(image.facts.digest, f"ghcr.io/x/other@{DIGEST}"), image.facts.digest),
        (ImagePin(reference="y:1", digest=DIGEST), image, image.facts.digest),
    ]:
        with pytest.raises(SandboxFault) as caught:
            check_started(pin, found, {"Image": started})
        assert caught.value.reason == Reason.IMAGE_MISMATCH
    assert image.facts.platform == "linux/amd64/v8"


def test_constructing_a_provider_touches_nothing() -> None:
    def connect() -> Any:
        raise AssertionError("must not connect")

    DockerSandboxProvider(client_factory=connect)
    DockerSandboxProvider("unix:///nowhere")
