"""What a container changed, read from its overlay file system where that is on this machine.

The engine's own answer compares every file of the image, which takes it a third of a second for a small image and many
seconds for a large one. What changed lies in the upper folder alone, so only that is walked here; the rules for
what counts as changed are the engine's.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.sandbox.keeper import KEEPER_PATH

_DEEPEST = 64  # levels that are looked into: an agent may nest folders without end
_NEEDS_THE_ENGINE = (b"trusted.overlay.redirect", b"trusted.overlay.metacopy")


class OutOfReach(Exception):
    """The layers cannot be read here, or use a feature that this does not know: ask the engine."""


@dataclass(frozen=True)
class Layers:
    """The folders of an overlay: where writes go, and what lies below it, topmost first."""

    upper: bytes
    lower: tuple[bytes, ...]

    @classmethod
    def of(cls, inspected: Mapping[str, Any]) -> Layers | None:
        """From the answer to `GET /containers/ID/json`; None for other storage, or where only root may look."""
        driver = inspected.get("GraphDriver") or {}
        data = driver.get("Data") or {}
        if driver.get("Name") != "overlay2" or os.geteuid() != 0 or not os.path.isdir(data.get("UpperDir", "")):
            return None
        return cls(os.fsencode(data["UpperDir"]), tuple(os.fsencode(path) for path in data["LowerDir"].split(":")))

    def changes(self) -> tuple[str, ...]:
        """Changed paths as :meth:`harness.protocols.Sandbox.changes` gives them. Raises OutOfReach."""
        try:
            found = list(_walk(b"", self.upper, self.lower))
        except PermissionError as error:
            raise OutOfReach(str(error)) from error
        named = sorted((path.decode("utf-8", "replace"), kind) for path, kind in found)
        return tuple(f"{kind} {path}" for path, kind in named if path != KEEPER_PATH)


def _walk(path: bytes, upper: bytes, lowers: Sequence[bytes]) -> Iterator[tuple[bytes, str]]:
    """Changes below `path`, a folder in the upper layer, with the folders that it covers in the lower ones.

    What lies deeper than `_DEEPEST`, or has a longer path than the system takes, is told by the folder above it.
    """
    names = set()
    for entry in os.scandir(upper):
        names.add(entry.name)
        here = path + b"/" + entry.name
        try:
            now = entry.stat(follow_symlinks=False)
            before, covered = _look_up(lowers, entry.name)
            if _is_whiteout(now):
                if before is not None:
                    yield here, "D"
                continue
            inside: list[tuple[bytes, str]] = []
            if stat.S_ISDIR(now.st_mode) and here.count(b"/") < _DEEPEST:
                inside = list(_walk(here, entry.path, covered))
            if before is None or inside or _differs(before, now):
                yield here, "A" if before is None else "C"
            yield from inside
        except FileNotFoundError:
            continue  # gone while we looked: something still runs in there
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:
                raise
    if _attribute(upper, b"trusted.overlay.opaque") == b"y":
        for name in {name for lower in lowers for name in os.listdir(lower)} - names:
            if _look_up(lowers, name)[0] is not None:
                yield path + b"/" + name, "D"


def _look_up(lowers: Sequence[bytes], name: bytes) -> tuple[os.stat_result | None, list[bytes]]:
    """What the lower layers together show under a name, and, of a folder, the folders that it is merged from."""
    found: os.stat_result | None = None
    folders: list[bytes] = []
    for lower in lowers:
        path = os.path.join(lower, name)
        try:
            seen = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        if _is_whiteout(seen):
            break
        if found is None:
            found = seen
        if not stat.S_ISDIR(seen.st_mode):
            break
        folders.append(path)
        if _attribute(path, b"trusted.overlay.opaque") == b"y":
            break
    return found, folders


def _is_whiteout(seen: os.stat_result) -> bool:
    return stat.S_ISCHR(seen.st_mode) and seen.st_rdev == 0


def _differs(before: os.stat_result, now: os.stat_result) -> bool:
    """A folder's size and time are no sign of a change in itself; of anything else they are."""
    owned = (before.st_mode, before.st_uid, before.st_gid, before.st_rdev)
    if owned != (now.st_mode, now.st_uid, now.st_gid, now.st_rdev):
        return True
    if stat.S_ISDIR(now.st_mode):
        return False
    return (before.st_mtime_ns, before.st_size) != (now.st_mtime_ns, now.st_size)


def _attribute(path: bytes, name: bytes) -> bytes | None:
    """An attribute of a folder of the overlay. Raises OutOfReach for features that change what a folder means."""
    names = [os.fsencode(known) for known in os.listxattr(path, follow_symlinks=False)]
    if any(feature in names for feature in _NEEDS_THE_ENGINE):
        raise OutOfReach(f"{path!r} uses an overlay feature that is not known here")
    return os.getxattr(path, name, follow_symlinks=False) if name in names else None
