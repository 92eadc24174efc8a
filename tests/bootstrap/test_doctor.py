"""What the doctor says of machines that are well and of machines that are not."""

from __future__ import annotations

import os
from importlib import metadata
from pathlib import Path
from typing import Any

import docker
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.bootstrap.base_image import PresentImage
from harness.bootstrap.check import Check, Status
from harness.bootstrap.doctor import check_keys, check_python, examine
from harness.bootstrap.engine_checks import (
    DiskSpace,
    check_architecture,
    check_base_image,
    check_disk,
    check_limits,
    check_storage,
    check_version,
    measure_disk,
    mount_options,
)
from harness.bootstrap.libraries import check_libraries, find_problem, parse_requirement, satisfies

INFO: dict[str, Any] = {
    "Architecture": "x86_64",
    "CgroupVersion": "2",
    "CgroupDriver": "systemd",
    "MemoryLimit": True,
    "CpuCfsQuota": True,
    "PidsLimit": True,
    "Driver": "overlay2",
    "DriverStatus": [["Backing Filesystem", "xfs"], ["Supports d_type", "true"]],
    "DockerRootDir": "/var/lib/docker",
}
SEEN_V1 = {"memory/memory.limit_in_bytes": "67108864", "cpu/cpu.cfs_quota_us": "50000", "pids/pids.max": "64"}
SEEN_V2 = {"memory.max": "67108864", "cpu.max": "50000 100000", "pids.max": "64"}
MOUNTS = """\
/dev/vda / ext4 rw,relatime 0 0
/dev/vdb /var/lib/docker xfs rw,prjquota 0 0
/dev/vdc /var/lib/dock xfs rw,noquota 0 0
"""
RECIPE = f"sha256:{'a' * 64}"


@pytest.mark.parametrize(
    ("check", "status", "words"),
    [
        (check_version("20.10.24", "1.41"), Status.OK, "1.41"),
        (check_version("29.0", "1.52"), Status.OK, "1.52"),
        (check_version("18.09", "1.39"), Status.FAIL, "too old"),
        (check_architecture(INFO, "amd64"), Status.OK, "amd64"),
        (check_architecture(INFO, "arm64"), Status.WARN, "engine is amd64"),
        (check_limits(INFO, SEEN_V1), Status.OK, "hold in a container"),
        (check_limits(INFO, SEEN_V2), Status.OK, "cgroup v2"),
        (check_limits(INFO, {**SEEN_V2, "pids.max": "max"}), Status.FAIL, "pids not applied"),
        (check_limits(INFO, {}), Status.FAIL, "memory, cpu, pids not applied"),
        (check_limits(INFO, None), Status.WARN, "not tried"),
        (check_limits({**INFO, "PidsLimit": False}, None), Status.FAIL, "no pids limit"),
        (check_storage(INFO, MOUNTS), Status.OK, "project quotas"),
        (check_storage(INFO, MOUNTS.replace("prjquota", "noquota")), Status.WARN, "no disk quotas"),
        (check_storage(INFO, None), Status.WARN, "no disk quotas"),
        (check_storage({**INFO, "Driver": "btrfs"}, None), Status.OK, "btrfs"),
        (check_storage({"Driver": "overlay2"}, MOUNTS), Status.WARN, "overlay2 on unknown"),
        (check_disk("disk", DiskSpace("/x", 50 << 30, 100 << 30)), Status.OK, "50.0 of 100.0 GiB"),
        (check_disk("disk", DiskSpace("/x", 5 << 30, 100 << 30)), Status.WARN, "5.0"),
        (check_disk("disk", DiskSpace("/x", 5 << 20, 100 << 30)), Status.FAIL, "0.0"),
        (check_disk("disk", None), Status.WARN, "not visible"),
        (check_base_image(PresentImage("sha256:1", "amd64", RECIPE), RECIPE, INFO, "b:1"), Status.OK, "matches"),
        (check_base_image(PresentImage("sha256:1", "amd64", ""), RECIPE, INFO, "b:1"), Status.WARN, "not of the"),
        (check_base_image(PresentImage("sha256:1", "arm64", RECIPE), RECIPE, INFO, "b:1"), Status.FAIL, "arm64"),
        (check_base_image(None, RECIPE, INFO, "b:1"), Status.FAIL, "missing"),
        (check_python((3, 11, 0)), Status.OK, "3.11.0"),
        (check_python((3, 10, 9)), Status.FAIL, "3.10.9"),
        (check_keys({}), Status.WARN, "simulated"),
    ],
)
def test_each_judgement(check: Check, status: Status, words: str) -> None:
    assert check.status is status
    assert words in check.finding
    assert bool(check.remedy) is (status is not Status.OK)


def test_keys_are_told_by_name_and_never_by_value() -> None:
    check = check_keys({"OPENAI_API_KEY": "sk-very-secret", "ANTHROPIC_API_KEY": "", "HOME": "/root"})
    assert check == Check("api keys", Status.OK, "set: OPENAI_API_KEY")


def test_the_mount_of_a_path_is_the_longest_whole_prefix() -> None:
    assert "prjquota" in mount_options(MOUNTS, "/var/lib/docker/overlay2")
    assert "noquota" in mount_options(MOUNTS, "/var/lib/dock")
    assert mount_options(MOUNTS, "/var/lib/dockyard") == {"rw", "relatime"}
    assert "ro" in mount_options(MOUNTS + "x /var/lib/docker tmpfs ro 0 0\n", "/var/lib/docker")
    assert mount_options("nonsense\n", "/") == frozenset()


def test_a_store_that_does_not_exist_yet_is_measured_at_its_parent(tmp_path: Path) -> None:
    space = measure_disk(tmp_path / "not" / "yet")
    assert space is not None
    assert space.path == str(tmp_path / "not" / "yet")
    assert 0 < space.free_bytes <= space.total_bytes


@pytest.mark.parametrize(
    ("version", "clauses", "good"),
    [
        ("7.1.0", ">=7.1,<8", True),
        ("7.0.9", ">=7.1,<8", False),
        ("8.0", ">=7.1,<8", False),
        ("8", "<8.0.0", False),
        ("2.10", ">2.9", True),
        ("2.9.0.post0", ">=2.9", True),
        ("1.0", "", True),
        ("1.2", "==1.2.0", True),
        ("1.2", "!=1.2,>=1", False),
        ("1!2.0", "<=2", True),
    ],
)
def test_versions_against_clauses(version: str, clauses: str, good: bool) -> None:
    assert satisfies(version, clauses) is good


@given(st.lists(st.integers(0, 99), min_size=1, max_size=4), st.lists(st.integers(0, 99), min_size=1, max_size=4))
def test_exactly_one_of_less_equal_greater_holds(left: list[int], right: list[int]) -> None:
    version, other = ".".join(map(str, left)), ".".join(map(str, right))
    assert sum(satisfies(version, f"{sign}{other}") for sign in ("<", "==", ">")) == 1
    assert satisfies(version, f"<={other}") is not satisfies(version, f">{other}")


def test_what_is_not_understood_is_not_passed_over() -> None:
    with pytest.raises(ValueError, match="not a version clause"):
        satisfies("1.0", "~=1.0")
    with pytest.raises(ValueError, match="not a version"):
        satisfies("unknown", ">=1")
    with pytest.raises(ValueError, match="not a requirement"):
        parse_requirement(">=1")


def test_requirements_of_extras_are_not_this_installations() -> None:
    assert parse_requirement("docker<8,>=7.1") == ("docker", "<8,>=7.1")
    assert parse_requirement("httpx[http2] (>=0.27)") == ("httpx", ">=0.27")
    assert parse_requirement('matplotlib>=3.9; extra == "plot"') is None


def test_a_broken_combination_names_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "brokenlib.py").write_text("raise AttributeError('urllib3 has no such thing')")
    folder = tmp_path / "brokenlib-1.5.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: brokenlib\nVersion: 1.5\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(metadata, "requires", lambda name: ["brokenlib>=1", "absentlib", "pytest>=1"])
    check = check_libraries()
    assert check.status is Status.FAIL
    assert "brokenlib 1.5 cannot be imported: AttributeError: urllib3 has no such thing" in check.finding
    assert "absentlib is not installed" in check.finding
    assert "pytest" not in check.finding
    assert find_problem("brokenlib", "<1") == "brokenlib 1.5 is not <1"


def test_every_declared_dependency_is_understood() -> None:
    for text in metadata.requires("assay") or []:
        parsed = parse_requirement(text)
        if parsed is not None:
            satisfies("1.0", parsed[1])


@pytest.mark.parametrize("url", ["unix:///nope", "ssh://nowhere"])
def test_no_engine_is_one_failed_check_and_the_rest_is_still_told(url: str, tmp_path: Path) -> None:
    checks = examine({"DOCKER_HOST": url}, tmp_path)
    names = [check.name for check in checks]
    assert names == ["python", "libraries", "engine", "store disk", "api keys"]
    assert checks[2].status is Status.FAIL
    assert url in checks[2].finding


@pytest.mark.docker
def test_this_machine_is_examined_and_left_as_it_was(tmp_path: Path) -> None:
    client = docker.DockerClient(base_url=os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock"))
    try:
        checks = {check.name: check for check in examine(os.environ, tmp_path)}
        left = client.containers.list(all=True, filters={"label": "org.assay.doctor"})
    finally:
        client.close()
    assert left == []
    assert list(checks) == [
        "python", "libraries", "engine", "architecture", "limits", "storage", "engine disk", "base image",
        "store disk", "api keys",
    ]  # fmt: skip
    assert [name for name, check in checks.items() if check.status is Status.FAIL] == []
    assert checks["base image"].status is Status.OK
    assert "hold in a container" in checks["limits"].finding
