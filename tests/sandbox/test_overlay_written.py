"""The tar of an overlay's upper folder: everything but what is no file of the container's, and nothing from outside."""

from __future__ import annotations

import io
import os
import socket
import tarfile
from pathlib import Path

import pytest

from harness.protocols import SandboxFileError
from harness.sandbox.keeper import KEEPER_PATH
from harness.sandbox.overlay_changes import Layers, OutOfReach
from harness.sandbox.overlay_written import pack_written


@pytest.fixture
def upper(tmp_path: Path) -> Path:
    folder = tmp_path / "upper"
    (folder / "app" / "deep").mkdir(parents=True)
    (folder / "app" / "answer").write_bytes(b"42")
    (folder / "app").chmod(0o750)
    return folder


def packed(upper: Path, most: int = 1_000_000) -> dict[str, tarfile.TarInfo]:
    archive = pack_written(Layers(os.fsencode(upper), ()), most)
    with tarfile.open(fileobj=io.BytesIO(archive), errors="surrogateescape") as tar:
        return {member.name: member for member in tar.getmembers()}


def test_files_and_folders_come_with_their_modes(upper: Path) -> None:
    found = packed(upper)
    assert list(found) == ["app", "app/answer", "app/deep"]
    assert (found["app"].mode, found["app/answer"].size) == (0o750, 2)


def test_links_stay_links_and_what_they_lead_to_is_never_read(upper: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the host")
    (upper / "app" / "link").symlink_to(secret)
    (upper / "app" / "up").symlink_to("/", target_is_directory=True)
    found = packed(upper)
    assert found["app/link"].issym()
    assert found["app/up"].issym()
    assert not [name for name in found if name.startswith("app/up/")]
    assert b"of the host" not in pack_written(Layers(os.fsencode(upper), ()), 1_000_000)


def test_odd_files_and_names_are_packed_or_passed_over(upper: Path) -> None:
    os.mkfifo(upper / "app" / "pipe")
    os.link(upper / "app" / "answer", upper / "app" / "twin")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(upper / "app" / "sock"))
    Path(os.fsdecode(os.fsencode(upper / "app") + b"/\xff\xfe")).write_bytes(b"x")
    keeper = upper / KEEPER_PATH.lstrip("/")
    keeper.parent.mkdir(parents=True, exist_ok=True)
    keeper.write_bytes(b"not the agent's")
    found = packed(upper)
    assert found["app/pipe"].isfifo()
    assert found["app/twin"].islnk() or found["app/answer"].islnk()
    assert "app/\udcff\udcfe" in found
    assert not {"app/sock", KEEPER_PATH.lstrip("/")} & found.keys()


@pytest.mark.skipif(os.geteuid() != 0, reason="making a device takes root")
def test_a_whiteout_is_no_file(upper: Path) -> None:
    os.mknod(upper / "app" / "gone", 0o600 | 0o020000, os.makedev(0, 0))
    assert "app/gone" not in packed(upper)


def test_more_than_may_be_kept_is_not_packed(upper: Path) -> None:
    with pytest.raises(SandboxFileError, match="too large"):
        packed(upper, 1)
    with (upper / "app" / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(SandboxFileError, match="too large"):
        packed(upper)


def test_folders_without_end_are_left_to_the_engine(upper: Path) -> None:
    below = upper
    for _ in range(300):
        below = below / "d"
        below.mkdir()
    with pytest.raises(OutOfReach, match="nested"):
        packed(upper)


def test_a_layer_that_is_not_there_is_out_of_reach(tmp_path: Path) -> None:
    with pytest.raises(OutOfReach):
        packed(tmp_path / "elsewhere")
