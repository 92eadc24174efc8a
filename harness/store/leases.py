"""Who owns a run: an advisory file lock that the kernel drops when its process ends, however it ends.

The lock file is named by a digest of the run's id, never by the id itself, and is never deleted: deleting a
lock file lets two processes lock two different files of one name. Its content says who holds it, for people.
The lock lives as long as any copy of its descriptor: it is closed on exec, but a child that was only forked
would keep it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from harness.records.errors import StoreError
from harness.store.faults import explained

_PROBE_GRACE_S = 0.2  # someone who only asks whether a run is owned holds the lock for microseconds


class Leases:
    """The lock files of one store."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with explained(folder):
            folder.mkdir(parents=True, exist_ok=True)

    def path(self, run: str) -> Path:
        name = hashlib.sha256(run.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        return self.folder / f"{name}.lock"

    @contextmanager
    def own(self, run: str) -> Iterator[None]:
        """Hold the run's lock for the length of the block. Raises StoreError, naming the holder, when it is held."""
        descriptor = self.take(run)
        if descriptor is None:
            raise StoreError(
                f"run {run!r} is owned by {describe(self.holder(run) or {})}",
                place=str(self.path(run)),
                remedy="wait for it, or end that process and resume",
            )
        try:
            yield
        finally:
            os.close(descriptor)

    def take(self, run: str) -> int | None:
        """A descriptor that holds the run's lock until it and its copies are closed, or None when it is held.

        A child process that is given the descriptor holds the lock on, also when we die.
        """
        path = self.path(run)
        with explained(path):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            if not _lock(descriptor):
                os.close(descriptor)
                return None
            with explained(path):
                _write(descriptor, _me(run))
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    @staticmethod
    def adopt(run: str, descriptor: int) -> None:
        """Say that this process holds a lock that another one took and gave it. Raises StoreError."""
        with explained(Path(run)):
            _write(descriptor, _me(run))

    def owned(self, run: str) -> bool:
        """Whether some live process, this one included, owns the run now."""
        return is_locked(self.path(run))

    def holder(self, run: str) -> dict[str, object] | None:
        """What the owner wrote about itself (pid, host, started), or None when nobody owns the run."""
        if not self.owned(run):
            return None
        with explained(self.path(run)), self.path(run).open("rb") as file:
            return _holder(file.fileno())


def is_locked(path: Path) -> bool:
    """Whether a live process, this one included, holds the lock file `path`. Raises OSError where it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def describe(holder: dict[str, object]) -> str:
    """The holder in words."""
    if not holder:
        return "another process"
    return f"process {holder.get('pid')} on {holder.get('host')} since {holder.get('started')}"


def _lock(descriptor: int) -> bool:
    deadline = time.monotonic() + _PROBE_GRACE_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.01)
        else:
            return True


def _me(run: str) -> bytes:
    started = datetime.now(UTC).isoformat(timespec="seconds")
    return json.dumps({"run": run, "pid": os.getpid(), "host": socket.gethostname(), "started": started}).encode()


def _write(descriptor: int, content: bytes) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, content, 0)
    os.fsync(descriptor)


def _holder(descriptor: int) -> dict[str, object]:
    try:
        found = json.loads(os.pread(descriptor, 65_536, 0))
    except ValueError:
        return {}  # being written just now, or damaged: the lock counts, not its label
    return found if isinstance(found, dict) else {}
