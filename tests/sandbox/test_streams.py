"""Frames, captures and archives: pure parts that eat whatever the engine or an agent sends."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.protocols import SandboxFileError
from harness.records.task import FileTree, TreeFile
from harness.sandbox.archive import (
    BrokenArchive,
    PathStat,
    pack_file,
    pack_replacement,
    pack_tree,
    parents_of,
    read_all,
    read_names,
    read_one_file,
)
from harness.sandbox.capture import StreamCapture
from harness.sandbox.frames import STDERR, STDOUT, FrameError, FrameParser


def cut(data: bytes, places: list[int]) -> Iterator[bytes]:
    """`data` in pieces, cut at the given places."""
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return (data[start:end] for start, end in pairwise(edges))


def frame(stream: int, payload: bytes) -> bytes:
    return bytes([stream, 0, 0, 0]) + len(payload).to_bytes(4, "big") + payload


cuts = st.lists(st.integers(min_value=0, max_value=1 << 20), max_size=12)


@given(st.lists(st.tuples(st.sampled_from([STDOUT, STDERR]), st.binary(max_size=300)), max_size=8), cuts)
def test_frames_are_put_together_however_they_were_cut(frames: list[tuple[int, bytes]], places: list[int]) -> None:
    got: dict[int, bytearray] = {STDOUT: bytearray(), STDERR: bytearray()}
    parser = FrameParser({stream: got[stream].extend for stream in got})
    for piece in cut(b"".join(frame(*item) for item in frames), places):
        parser.feed(piece)
    assert parser.whole
    for stream, seen in got.items():
        assert bytes(seen) == b"".join(payload for name, payload in frames if name == stream)


def test_payload_goes_on_before_its_frame_is_whole() -> None:
    got = bytearray()
    parser = FrameParser({STDOUT: got.extend})
    parser.feed(frame(STDOUT, bytes(4_000_000_000 >> 8))[:20])
    assert (len(got), parser.whole) == (12, False)


@pytest.mark.parametrize("header", [b"\x07\0\0\0\0\0\0\1", b"HTTP/1.1", b"\x01\0\1\0\0\0\0\1"])
def test_what_is_no_frame_is_refused(header: bytes) -> None:
    with pytest.raises(FrameError, match="not a frame header"):
        FrameParser({}).feed(header)


def test_a_stream_that_nobody_asked_for_is_passed_over() -> None:
    got = bytearray()
    FrameParser({STDOUT: got.extend}).feed(frame(0, b"input") + frame(STDERR, b"err") + frame(STDOUT, b"out"))
    assert got == b"out"


@given(st.binary(max_size=400), cuts, st.integers(0, 60), st.integers(0, 60))
def test_a_capture_keeps_head_and_tail_exactly(data: bytes, places: list[int], head: int, tail: int) -> None:
    capture = StreamCapture(head, tail)
    for piece in cut(data, places):
        capture.feed(piece)
    captured = capture.captured()
    rest = data[head:]
    assert captured.head == data[:head]
    assert captured.tail == (rest[-tail:] if tail else b"")
    assert captured.seen_bytes == len(data)
    assert captured.truncated == (len(data) > head + tail)


def test_a_capture_holds_little_however_much_it_sees() -> None:
    capture = StreamCapture(10, 100)
    for _ in range(10_000):
        capture.feed(b"x" * 99)
    assert len(capture._head) + len(capture._tail) <= 310
    assert capture.captured().seen_bytes == 990_000


# --- archives ---


def names_in(archive: bytes) -> list[tuple[str, bool, int]]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as members:
        return [(member.name, member.isdir(), member.mode) for member in members]


def small_tree() -> FileTree:
    return FileTree(files=(TreeFile(path="a/b/c", content=b"1", mode=0o755), TreeFile(path="d", content=b"2")))


def test_a_tree_is_packed_without_folders_so_that_those_there_keep_their_mode() -> None:
    assert names_in(pack_tree(small_tree(), "/app")) == [("app/a/b/c", False, 0o755), ("app/d", False, 0o644)]


def test_a_replacement_is_a_file_then_a_folder_then_the_content() -> None:
    assert names_in(pack_replacement(small_tree(), "/logs/verifier", ("/logs",))) == [
        ("logs", True, 0o755),
        ("logs/verifier", False, 0o644),
        ("logs/verifier", True, 0o755),
        ("logs/verifier/a", True, 0o755),
        ("logs/verifier/a/b", True, 0o755),
        ("logs/verifier/a/b/c", False, 0o755),
        ("logs/verifier/d", False, 0o644),
    ]


@pytest.mark.parametrize(
    ("path", "parents"), [("/", ()), ("/a", ()), ("/a/b/", ("/a",)), ("/a/b/c", ("/a", "/a/b")), ("/a/../b/c", ("/b",))]
)
def test_the_folders_above_a_path(path: str, parents: tuple[str, ...]) -> None:
    assert parents_of(path) == parents


@given(st.binary(max_size=3000), cuts)
def test_a_file_is_read_back_however_the_archive_was_cut(content: bytes, places: list[int]) -> None:
    archive = pack_file("/x/f", content, 0o600)
    assert read_one_file(cut(archive, places), "/x/f", 3000) == content
    assert read_all(cut(archive, places), "/x/f", 1 << 20) == archive


@given(st.integers(1, 2500))
def test_an_archive_that_ends_early_is_never_taken_for_whole(missing: int) -> None:
    archive = pack_file("/x/f", bytes(range(250)) * 10, 0o600)
    ended = archive[: 512 + 2500 - missing]
    with pytest.raises(BrokenArchive):
        read_one_file([ended], "/x/f", 5000)
    with pytest.raises(BrokenArchive):
        read_all([ended], "/x/f", 1 << 20)


def test_a_file_is_sized_up_before_it_is_read() -> None:
    def endless() -> Iterator[bytes]:
        header = tarfile.TarInfo("f")
        header.size = 1 << 40
        yield header.tobuf(tarfile.GNU_FORMAT) + bytes(64 * 1024)
        raise AssertionError("must not be read")

    with pytest.raises(SandboxFileError, match="too large"):
        read_one_file(endless(), "/f", 100)


def test_names_are_relative_to_the_folder_and_need_not_be_text() -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT, errors="surrogateescape") as archive:
        for name, kind in [("d", tarfile.DIRTYPE), ("d/z\udcff", tarfile.REGTYPE), ("d/a" * 80, tarfile.SYMTYPE)]:
            header = tarfile.TarInfo(name)
            header.type = kind
            archive.addfile(header)
    assert read_names([buffer.getvalue()]) == (("d/a" * 80)[2:], "z\udcff")
    assert read_names([pack_file("/f", b"", 0o644)]) == ()
    with pytest.raises(BrokenArchive):
        read_names([buffer.getvalue()[: 2 * 512]])  # ends neatly after two entries


@pytest.mark.parametrize(
    ("mode", "kind"),
    [
        (0o644, "file"),
        (1 << 23 | 0o755, "file"),  # set-user-id
        (1 << 31 | 1 << 20 | 0o777, "folder"),  # sticky
        (1 << 27 | 0o777, "link"),
        (1 << 25 | 0o644, "other"),  # named pipe
        (1 << 26 | 0o644, "other"),  # device
    ],
)
def test_the_engines_file_modes_are_understood(mode: int, kind: str) -> None:
    assert PathStat.of({"mode": mode, "size": 7}) == (kind, 7)
