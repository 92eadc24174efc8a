"""What of a solver's artifacts is carried into a fresh container."""

from __future__ import annotations

import io
import tarfile
import threading
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.runner import sealing
from harness.runner.carrying import Carried, carry

Entry = tuple[str, bytes, bytes | str]  # name, tar type, content or target


def packed(*entries: Entry) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, kind, body in entries:
            header = tarfile.TarInfo(name)
            header.type = kind
            if isinstance(body, str):
                header.linkname, body = body, b""
            header.size = len(body)
            archive.addfile(header, io.BytesIO(body))
    return buffer.getvalue()


def names(archive: bytes) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return tar.getnames()


FILE, FOLDER, LINK, HARD, FIFO, DEVICE = (
    tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE,
)  # fmt: skip


def test_files_and_folders_are_carried_byte_for_byte() -> None:
    archive = packed(("out", FOLDER, b""), ("out/a", FILE, b"\xff" * 700), ("out/" + "long" * 40, FILE, b""))
    carried = carry({"/app/out": archive})
    assert carried.archives == {"/app/out": archive}
    assert carried.left_out == {}


@pytest.mark.parametrize(
    ("entry", "what"),
    [
        (("answer", FIFO, b""), "a FIFO"),
        (("answer", DEVICE, b""), "a device"),
        (("answer", LINK, "/dev/zero"), "a link to /dev/zero"),
    ],
)
def test_an_artifact_that_is_no_file_is_left_out_and_named(entry: Entry, what: str) -> None:
    carried = carry({"/app/answer": packed(entry)})
    assert (carried.archives, carried.left_out) == ({}, {"/app/answer": what})


def test_a_socket_leaves_an_empty_archive() -> None:
    assert carry({"/app/answer": packed()}).left_out.keys() == {"/app/answer"}


def test_the_rest_of_a_folder_is_carried() -> None:
    archive = packed(
        ("out", FOLDER, b""),
        ("out/first", FILE, b"1"),
        ("out/" + "n" * 150, FIFO, b""),
        ("out/pipe", FIFO, b""),
        ("out/pipe-too", HARD, "out/pipe"),
        ("out/first-too", HARD, "out/first"),
        ("out/away", LINK, "../../etc/passwd"),
        ("out/last", FILE, b"2" * 600),
    )
    carried = carry({"/app/out": archive})
    assert names(carried.archives["/app/out"]) == ["out", "out/first", "out/first-too", "out/last"]
    assert sorted(carried.left_out) == ["/app/out/away", "/app/out/" + "n" * 150, "/app/out/pipe", "/app/out/pipe-too"]
    with tarfile.open(fileobj=io.BytesIO(carried.archives["/app/out"])) as tar:
        last = tar.extractfile("out/last")
        assert last is not None
        assert last.read() == b"2" * 600


@pytest.mark.parametrize(
    ("target", "stays"),
    [
        ("a", True),
        ("./sub/../a", False),  # `..` after a name leads where that name's own link does
        ("../out/a", True),
        ("../other/b", True),  # another artifact
        ("/app/other", True),
        ("/app/out/../../etc", False),
        ("../elsewhere", False),
        ("../outside/a", False),
        ("/", False),
        ("/proc/self/fd/0", False),
        ("..", False),
        (".", True),
    ],
)
def test_links_may_lead_to_artifacts_only(target: str, stays: bool) -> None:
    out = packed(("out", FOLDER, b""), ("out/a", FILE, b""), ("out/link", LINK, target))
    carried = carry({"/app/out": out, "/app/other": packed(("other", FOLDER, b""))})
    assert ("/app/out/link" not in carried.left_out) is stays


@given(st.lists(st.tuples(st.sampled_from([FILE, FOLDER, LINK, FIFO, DEVICE]), st.integers(0, 1500)), max_size=12))
def test_what_is_left_is_a_whole_archive_of_what_was_not_named(kinds: list[tuple[bytes, int]]) -> None:
    entries: list[Entry] = [("out", FOLDER, b"")]
    for number, (kind, size) in enumerate(kinds):
        body: bytes | str = b"x" * size if kind == FILE else "/etc" if kind == LINK else b""
        entries.append((f"out/{number}", kind, body))
    carried = carry({"/app/out": packed(*entries)})
    kept = carried.archives["/app/out"]
    assert {f"/app/{name}" for name in names(kept)} | carried.left_out.keys() == {
        f"/app/{name}" for name, _, _ in entries
    }
    assert not {f"/app/{name}" for name in names(kept)} & carried.left_out.keys()


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_large_archives_are_read_off_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []

    def watched(archives: Mapping[str, bytes]) -> Carried:
        seen.append(threading.current_thread() is threading.main_thread())
        return carry(archives)

    monkeypatch.setattr(sealing, "carry", watched)
    for size in (1, sealing.LARGE_BYTES):
        archive = packed(("out", FILE, b"x" * size))
        carried = await sealing._carried({"/app/out": archive})
        assert carried.archives == {"/app/out": archive}
    assert seen == [True, False]
