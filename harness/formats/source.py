"""The files of one task, wherever they come from: a folder on disk, or a family's rendering."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

from harness.formats.places import Where
from harness.records.errors import TaskError
from harness.records.task import FileTree, TreeFile

LOADED_BYTES_MAX = 64 * 1024 * 1024
_TASK_FOLDERS = ("environment", "solution", "tests")
_CHUNK_BYTES = 1 << 20


class TaskSource(Protocol):
    """Files by relative path. `where` names places in messages."""

    @property
    def where(self) -> Where: ...

    def paths(self) -> tuple[str, ...]:
        """All paths, sorted."""
        ...

    def read(self, path: str) -> TreeFile:
        """One file with its content. Raises TaskError: missing, unreadable or larger than may be loaded."""
        ...

    def digest(self, path: str) -> str:
        """`sha256:…` of a file, read in pieces; of a symbolic link, of what it points to."""
        ...


def tree_below(source: TaskSource, folder: str, *, leave_out: tuple[str, ...] = ()) -> FileTree:
    """The files below `folder/` as a tree. `leave_out`: paths, or folders with a trailing slash, within it.

    Raises TaskError when they are more than LOADED_BYTES_MAX together.
    """
    files: list[TreeFile] = []
    size_bytes = 0
    for path in source.paths():
        inner = path.removeprefix(f"{folder}/")
        if inner == path or any(inner == name or (name.endswith("/") and inner.startswith(name)) for name in leave_out):
            continue
        file = source.read(path)
        size_bytes += len(file.content)
        if size_bytes > LOADED_BYTES_MAX:
            raise _too_large(source.where.place(folder))
        files.append(file.model_copy(update={"path": inner}))
    return FileTree(files=tuple(files))


def _too_large(place: str) -> TaskError:
    limit_mb = LOADED_BYTES_MAX // (1024 * 1024)
    return TaskError(
        f"more than {limit_mb} MB of files to carry into a sandbox",
        place=place,
        remedy="bake large files into the image",
    )


def _leads_out(place: str) -> TaskError:
    return TaskError("the link leads out of the task", place=place, remedy="put what it leads to there itself")


@dataclass(frozen=True)
class FolderSource:
    """A task directory on disk. Execute bits are kept, other permissions are not: a checkout does not keep them."""

    folder: Path
    where: Where

    def paths(self) -> tuple[str, ...]:
        return self._paths

    @cached_property
    def _paths(self) -> tuple[str, ...]:
        try:
            at_root = [entry.name for entry in os.scandir(self.folder) if not entry.is_dir(follow_symlinks=False)]
            below = [path for name in _TASK_FOLDERS for path in walk_files(self.folder, name)]
        except OSError as error:
            raise TaskError(f"cannot be read: {error.strerror}", place=self.where.place()) from error
        except RuntimeError as error:  # what resolving a ring of links raises before Python 3.13
            raise TaskError("cannot be read: links in a ring", place=self.where.place()) from error
        return tuple(sorted([*at_root, *below]))

    def read(self, path: str) -> TreeFile:
        file = self.folder / path
        place = self.where.place(path)
        try:
            # A link is read as the file it leads to, which must be the task's own.
            real = file.resolve(strict=True)
            if not real.is_relative_to(self.folder.resolve()):
                raise _leads_out(place)
            facts = real.stat()
            if stat.S_ISDIR(facts.st_mode):
                remedy = "put the folder itself there, or remove the link"
                raise TaskError("a link to a folder, which is not followed", place=place, remedy=remedy)
            if not stat.S_ISREG(facts.st_mode):
                raise TaskError("not a regular file", place=place, remedy="only files and folders make a task")
            if facts.st_size > LOADED_BYTES_MAX:
                raise _too_large(place)
            return TreeFile(path=path, content=real.read_bytes(), mode=_mode(facts.st_mode))
        except OSError as error:
            raise TaskError(f"cannot be read: {error.strerror}", place=place) from error
        except RuntimeError as error:  # what resolving a ring of links raises before Python 3.13
            raise TaskError("cannot be read: links in a ring", place=place) from error

    def digest(self, path: str) -> str:
        file = self.folder / path
        digest = hashlib.sha256()
        try:
            kind = file.lstat().st_mode
            if not (stat.S_ISREG(kind) or stat.S_ISLNK(kind)):
                raise TaskError("not a regular file", place=self.where.place(path), remedy="only files make an image")
            if stat.S_ISLNK(kind):
                digest.update(b"link:" + os.fsencode(file.readlink()))
            else:
                with file.open("rb") as stream:
                    while chunk := stream.read(_CHUNK_BYTES):
                        digest.update(chunk)
        except OSError as error:
            raise TaskError(f"cannot be read: {error.strerror}", place=self.where.place(path)) from error
        return f"sha256:{digest.hexdigest()}:{'755' if os.access(file, os.X_OK) else '644'}"


@dataclass(frozen=True)
class RenderedSource:
    """Files held in memory."""

    files: Mapping[str, TreeFile]
    where: Where

    def paths(self) -> tuple[str, ...]:
        return tuple(sorted(self.files))

    def read(self, path: str) -> TreeFile:
        file = self.files.get(path)
        if file is None:
            raise TaskError("no such file", place=self.where.place(path))
        return file

    def digest(self, path: str) -> str:
        file = self.read(path)
        return f"sha256:{hashlib.sha256(file.content).hexdigest()}:{file.mode:o}"


def walk_files(folder: Path, below: str) -> Iterator[str]:
    """Paths relative to `folder`, with forward slashes, of all that is not a folder below `folder/below`.

    Links to folders count as files, so that no walk leaves the tree or goes round; `__pycache__` is passed over.
    Raises TaskError when `below` itself is a link that leads out of `folder`.
    """
    top = folder / below
    pending = [below] if top.is_dir() else []
    if top.is_symlink() and not top.resolve().is_relative_to(folder.resolve()):
        raise _leads_out(str(top))
    while pending:
        parent = pending.pop()
        with os.scandir(folder / parent) as entries:
            for entry in entries:
                path = f"{parent}/{entry.name}"
                if not entry.is_dir(follow_symlinks=False):
                    yield path
                elif entry.name != "__pycache__":
                    pending.append(path)


def _mode(st_mode: int) -> int:
    return 0o755 if st_mode & 0o111 else 0o644
