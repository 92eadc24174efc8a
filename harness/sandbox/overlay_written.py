"""Everything that a container has on top of its image as one tar, read from its overlay where that is on this machine.

The engine packs one path per call, each 10 ms and more; this is one walk. Beside the files it has the folders of the
image in which something changed, with their own mode and owner. What was deleted is not in it (`overlay_changes.py`
names that), nor sockets, nor extended attributes.
"""

from __future__ import annotations

import errno
import io
import os
import stat
import tarfile

from harness.protocols import SandboxFileError
from harness.sandbox.keeper import KEEPER_PATH
from harness.sandbox.overlay_changes import Layers, OutOfReach

_MOST_ENTRIES = 20_000
_DEEPEST = 200  # levels: an agent may nest folders without end
_LEFT_OUT = frozenset({KEEPER_PATH})


def pack_written(layers: Layers, max_bytes: int) -> bytes:
    """The tar, to be unpacked at the root. Nothing may run in the container meanwhile.

    Raises OutOfReach where the layer cannot be read here, SandboxFileError("too large").
    """
    packing = _Packing(max_bytes)
    with tarfile.open(fileobj=packing.out, mode="w", format=tarfile.PAX_FORMAT, errors="surrogateescape") as tar:
        try:
            packing.below(tar, os.fsdecode(layers.upper), "")
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.ENOENT):
                raise
            raise OutOfReach(str(error)) from error
    return packing.out.getvalue()


class _Packing:
    def __init__(self, max_bytes: int) -> None:
        self.out = io.BytesIO()
        self._max_bytes, self._entries = max_bytes, 0

    def below(self, tar: tarfile.TarFile, folder: str, path: str) -> None:
        """Add what is in a folder of the upper layer, whose path in the container is `path`."""
        if path.count("/") > _DEEPEST:
            raise OutOfReach(f"folders are nested more than {_DEEPEST} levels deep")
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
        for entry in found:
            here, seen = f"{path}/{entry.name}", entry.stat(follow_symlinks=False)
            if here in _LEFT_OUT or (stat.S_ISCHR(seen.st_mode) and seen.st_rdev == 0):  # a whiteout
                continue
            self._count(seen)
            if stat.S_ISREG(seen.st_mode):
                self._file(tar, entry.path, here)
            elif not stat.S_ISSOCK(seen.st_mode):
                tar.addfile(tar.gettarinfo(entry.path, arcname=here))
            if stat.S_ISDIR(seen.st_mode):
                self.below(tar, entry.path, here)

    def _file(self, tar: tarfile.TarFile, real: str, here: str) -> None:
        # Not followed should it have become a link: what an agent made must not lead out of its container.
        with open(os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            info = tar.gettarinfo(real, arcname=here)
            tar.addfile(info, file if info.isreg() else None)

    def _count(self, seen: os.stat_result) -> None:
        self._entries += 1
        size_bytes = seen.st_size if stat.S_ISREG(seen.st_mode) else 0
        if self._entries > _MOST_ENTRIES or self.out.tell() + size_bytes > self._max_bytes:
            raise SandboxFileError("/", "too large")
