"""What of a solver's artifacts is carried: files, folders, and links that stay among the artifacts. Pure.

A FIFO in the place of the answer would hold a test until its time is over, a device feeds it without end, and a link
to `/dev/zero` or to the tests' own files shows it something else than what was made. None of them is carried.
"""

from __future__ import annotations

import io
import posixpath
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_TRAILER = bytes(2 * tarfile.BLOCKSIZE)
_KINDS = {tarfile.FIFOTYPE: "a FIFO", tarfile.CHRTYPE: "a device", tarfile.BLKTYPE: "a device"}


@dataclass(frozen=True)
class Carried:
    """Archives by the artifact's path, byte for byte but for what was left out: by its own path, what it is."""

    archives: dict[str, bytes]
    left_out: dict[str, str]


def carry(archives: Mapping[str, bytes]) -> Carried:
    """Choose what is carried of the artifacts' tars. An artifact of which nothing is left has no archive."""
    kept: dict[str, bytes] = {}
    left_out: dict[str, str] = {}
    for path, archive in archives.items():
        content, refused = _carried(path, archive, tuple(archives))
        left_out |= refused
        if content:
            kept[path] = content
    return Carried(kept, left_out)


def _carried(path: str, archive: bytes, artifacts: Sequence[str]) -> tuple[bytes, dict[str, str]]:
    parent = posixpath.dirname(path)
    refused: dict[str, str] = {}
    pieces: list[bytes] = []
    names: set[str] = set()
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:", errors="surrogateescape") as tar:
        members = tar.getmembers()
        if not members:
            return b"", {path: "a socket, or nothing that an archive can hold"}
        ends = [*(member.offset for member in members[1:]), tar.offset]
    for member, end in zip(members, ends, strict=True):
        place = posixpath.join(parent, member.name.rstrip("/"))
        problem = _problem(member, place, artifacts, names)
        if problem is None:
            names.add(member.name)
            pieces.append(archive[member.offset : end])
        else:
            refused[place] = problem
    return (archive if not refused else b"".join([*pieces, _TRAILER]) if pieces else b""), refused


def _problem(member: tarfile.TarInfo, place: str, artifacts: Sequence[str], kept: set[str]) -> str | None:
    """What keeps an entry from being carried, or None."""
    if member.isreg() or member.isdir():
        return None
    if member.issym():
        return None if _stays(member.linkname, place, artifacts) else f"a link to {member.linkname}"
    if member.islnk():
        return None if member.linkname in kept else "a second name of what is left out"
    return _KINDS.get(member.type, "no file")


def _stays(target: str, place: str, artifacts: Sequence[str]) -> bool:
    """Whether a link leads to a place among the artifacts, whatever the links on its way are.

    After a name, `..` leads wherever that name's own link does: so it may only stand first, where it is the folder
    that the link really is in.
    """
    parts = [part for part in target.split("/") if part not in ("", ".")]
    first_name = next((at for at, part in enumerate(parts) if part != ".."), len(parts))
    if ".." in parts[first_name:]:
        return False
    leads_to = posixpath.normpath(posixpath.join(posixpath.dirname(place), target))
    return any(leads_to == path or leads_to.startswith(path.rstrip("/") + "/") for path in artifacts)
