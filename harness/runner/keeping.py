"""What a container has on top of its image, kept at the seal, so that it can be graded again without the agent.

Only what is graded in the solver's own container needs it: what is graded afresh has its artifacts kept already.
Kept are whole files and new folders with modes, owners and links; the names of what was deleted; and of an existing
folder that changed itself (its mode, its owner) the entry.
Not kept are files on volumes, running processes, and, where the engine's storage cannot be read from here, the modes of
folders of the image in which something else changed.
"""

from __future__ import annotations

import io
import posixpath
import tarfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from harness.protocols import Sandbox, SandboxFileError
from harness.records.errors import SandboxFault
from harness.records.execution import Command
from harness.records.vocabulary import Reason

KEEP_BYTES = 4 << 20  # of one trial, unless the run says otherwise
MOST_PIECES = 200  # each is a call of the engine, about 50 ms
_TRAILER = bytes(2 * tarfile.BLOCKSIZE)
_REMOVE_S = 60.0
_OVERWRITTEN_BY_ENGINE = frozenset({"/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/etc/mtab", "/.dockerenv"})


@dataclass(frozen=True)
class Kept:
    """Tars by absolute path, and what was deleted. With a `problem` nothing is kept, and that is why."""

    archives: dict[str, bytes] = field(default_factory=dict)
    deleted: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True)
class Pieces:
    """What must be fetched of a list of changes: whole trees or files, folders of which only the entry counts."""

    whole: tuple[str, ...]
    deleted: tuple[str, ...]


def pieces_of(changes: Iterable[str]) -> Pieces:
    """The fewest paths that hold all changes. Pure.

    A new folder holds what is below it, and a folder of the image is told as changed for what is below it.
    """
    told = {path: kind for kind, _, path in (change.partition(" ") for change in changes)}
    parents = {parent for path in told for parent in _above(path)}
    added = {path for path, kind in told.items() if kind == "A"}
    roots = {path for path in added if not any(parent in added for parent in _above(path))}
    changed = {path for path, kind in told.items() if kind == "C" and path not in parents}
    deleted = {path for path, kind in told.items() if kind == "D"}
    return Pieces(
        tuple(sorted((roots | changed) - _OVERWRITTEN_BY_ENGINE)),
        tuple(sorted(path for path in deleted if not any(parent in deleted for parent in _above(path)))),
    )


async def keep_changes(sandbox: Sandbox, changes: Sequence[str], most_bytes: int) -> Kept:
    """Fetch what a sealed container has on top of its image, or say why it is not kept. Raises SandboxFault."""
    if most_bytes <= 0:
        return Kept(problem="the run was told to keep no containers")
    pieces = pieces_of(changes)
    try:
        whole = await sandbox.written(max_bytes=most_bytes)
    except SandboxFileError:
        return Kept(problem=f"more than {most_bytes} bytes")
    if whole is not None:
        return Kept({"/": whole}, pieces.deleted)
    if len(pieces.whole) > MOST_PIECES:
        return Kept(problem=f"{len(pieces.whole)} separate changes, of which at most {MOST_PIECES} are kept")
    told = {path: kind for kind, _, path in (change.partition(" ") for change in changes)}
    archives: dict[str, bytes] = {}
    left = most_bytes
    for path in pieces.whole:
        try:
            archive = await sandbox.fetch(path, max_bytes=left)
        except SandboxFileError as error:
            what = f"more than {most_bytes} bytes" if error.problem == "too large" else error.problem
            return Kept(problem=f"{path}: {what}")
        archives[path] = archive if told[path] == "A" else _entry_alone(archive)
        left -= len(archives[path])
        if left < 0:
            return Kept(problem=f"{path}: more than {most_bytes} bytes in all")
    return Kept(archives, pieces.deleted)


async def bring_back(sandbox: Sandbox, kept: Kept, changes: Sequence[str], changes_count: int) -> None:
    """Make a new container what the sealed one was, and see that it is. `changes` are the first of `changes_count`.

    Raises SandboxFault when it cannot be.
    """
    if kept.deleted:
        command = Command(argv=("rm", "-rf", "--", *kept.deleted), timeout_s=_REMOVE_S, user="root", workdir="/")
        result = await sandbox.exec(command)
        if result.exit_code != 0:
            said = (result.stderr.text or result.stdout.text).strip()[-300:]
            raise _not_the_same(f"what the solver deleted could not be removed: {said}")
    for path, archive in kept.archives.items():
        await sandbox.restore(archive, posixpath.dirname(path))
    found = await sandbox.changes()
    if len(found) != changes_count or tuple(found[: len(changes)]) != tuple(changes):
        odd = sorted(set(found[: len(changes)]) ^ set(changes))[:3]
        raise _not_the_same(f"it differs from the sealed container in {', '.join(odd) or f'{len(found)} changes'}")


def _not_the_same(what: str) -> SandboxFault:
    return SandboxFault(f"the sealed container could not be brought back: {what}", reason=Reason.EVIDENCE_MISSING.value)


def _above(path: str) -> Iterable[str]:
    while path not in ("", "/"):
        path = posixpath.dirname(path)
        yield path


def _entry_alone(archive: bytes) -> bytes:
    """The first entry of a tar: all of a file, and of a folder what it is itself."""
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:", errors="surrogateescape") as tar:
        first, second = tar.next(), tar.next()
        if first is None or second is None:
            return archive
        return archive[first.offset : second.offset] + _TRAILER
