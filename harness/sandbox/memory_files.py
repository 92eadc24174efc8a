"""The file system of the in-memory sandbox: files, folders and symbolic links by absolute path."""

from __future__ import annotations

import io
import posixpath
import tarfile
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass

from harness.protocols import SandboxFileError
from harness.records.task import FileTree

_LINKS_FOLLOWED = 40  # as Linux: more is a loop


@dataclass(frozen=True)
class Node:
    """One entry: `kind` is "file", "folder" or "link"."""

    kind: str
    content: bytes = b""
    mode: int = 0o644
    target: str = ""


class MemoryFiles(MutableMapping[str, bytes]):
    """A mapping of absolute path to content, with folders and links underneath.

    Paths are followed through symbolic links as a shell would: `files["/logs/x"]` with `/logs -> /tmp` is `/tmp/x`.
    Iteration gives regular files only, by their real path.
    """

    def __init__(self, files: dict[str, bytes] | None = None) -> None:
        self._nodes: dict[str, Node] = {"/": Node("folder", mode=0o755)}
        for path, content in (files or {}).items():
            self[path] = content

    def __getitem__(self, path: str) -> bytes:
        node = self._nodes.get(self.resolve(path))
        if node is None or node.kind != "file":
            raise KeyError(path)
        return node.content

    def __setitem__(self, path: str, content: bytes) -> None:
        self.write(path, content)

    def __delitem__(self, path: str) -> None:
        if self.node(path) is None:
            raise KeyError(path)
        self.remove(path)

    def __iter__(self) -> Iterator[str]:
        return iter([path for path, node in sorted(self._nodes.items()) if node.kind == "file"])

    def __len__(self) -> int:
        return sum(node.kind == "file" for node in self._nodes.values())

    def node(self, path: str) -> Node | None:
        """What is at `path` itself; a link at its end is not followed."""
        parent, name = posixpath.split(_absolute(path))
        return self._nodes.get(posixpath.join(self.resolve(parent), name) if name else "/")

    def resolve(self, path: str) -> str:
        """The real path with every link followed; parts that do not exist are taken as they stand."""
        parts, real, followed = _absolute(path).strip("/").split("/"), "/", 0
        while parts:
            part = parts.pop(0)
            if part in ("", "."):
                continue
            here = posixpath.dirname(real) if part == ".." else posixpath.join(real, part)
            node = self._nodes.get(here)
            if node is not None and node.kind == "link" and followed < _LINKS_FOLLOWED:
                followed += 1
                parts = node.target.split("/") + parts
                real = "/" if node.target.startswith("/") else real
            else:
                real = here
        return real

    def write(self, path: str, content: bytes, mode: int | None = None) -> None:
        """Write a regular file, with the folders above it. A folder in its place raises IsADirectoryError."""
        real = self.resolve(path)
        old = self._nodes.get(real)
        if old is not None and old.kind == "folder":
            raise IsADirectoryError(path)
        self.make_folder(posixpath.dirname(real))
        kept = old.mode if old is not None else 0o644
        self._nodes[real] = Node("file", content, kept if mode is None else mode)

    def make_folder(self, path: str, mode: int = 0o755) -> None:
        """`mkdir -p`. A file in its way raises NotADirectoryError."""
        real = "/"
        for part in [part for part in self.resolve(path).split("/") if part]:
            real = posixpath.join(real, part)
            if self._nodes.setdefault(real, Node("folder", mode=mode)).kind == "file":
                raise NotADirectoryError(path)

    def link(self, path: str, target: str) -> None:
        """Plant a symbolic link at `path`, replacing what is there."""
        self.remove(path)
        parent, name = posixpath.split(_absolute(path))
        self.make_folder(parent)
        self._nodes[posixpath.join(self.resolve(parent), name)] = Node("link", target=target, mode=0o777)

    def remove(self, path: str) -> None:
        """`rm -rf`: a link at the end is removed, not what it points to."""
        parent, name = posixpath.split(_absolute(path))
        if not name:
            raise ValueError("the root folder cannot be removed")
        gone = posixpath.join(self.resolve(parent), name)
        for entry in [entry for entry in self._nodes if entry == gone or entry.startswith(gone + "/")]:
            del self._nodes[entry]

    def below(self, path: str) -> tuple[str, ...]:
        """Relative paths of everything below the folder at `path`, sorted; a link at its end is not followed."""
        node = self.node(path)
        if node is None or node.kind != "folder":
            return ()
        prefix = self.resolve(path).rstrip("/") + "/"
        return tuple(sorted(entry[len(prefix) :] for entry in self._nodes if entry.startswith(prefix) and entry != "/"))

    def put(self, tree: FileTree, dest: str, *, replace: bool) -> None:
        """As :meth:`harness.protocols.Sandbox.put`."""
        if replace:
            self._replace_by_empty_folder(dest)
        self.make_folder(dest)
        for file in tree.files:
            path = posixpath.join(dest, file.path)
            old = self.node(path)
            if old is not None and old.kind != "file":
                self.remove(path)
            self.write(path, file.content, file.mode)

    def _replace_by_empty_folder(self, dest: str) -> None:
        parts = [part for part in _absolute(dest).split("/") if part]
        if not parts:
            raise ValueError("the root folder cannot be replaced")
        real = ""
        for index, part in enumerate(parts):
            real = f"{real}/{part}"
            node = self._nodes.get(real)
            if node is not None and (node.kind != "folder" or index == len(parts) - 1):
                self.remove(real)
            self._nodes.setdefault(real, Node("folder", mode=0o755))

    def pack(self, path: str, *, max_bytes: int) -> bytes:
        """A tar of `path` and everything below it. Raises SandboxFileError."""
        if self.node(path) is None:
            raise SandboxFileError(path, "missing")
        parent, name = posixpath.split(_absolute(path))
        real = posixpath.join(self.resolve(parent), name)
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT, errors="surrogateescape") as archive:
            for entry in [real, *(posixpath.join(real, below) for below in self.below(real))]:
                node = self._nodes[entry]
                header = tarfile.TarInfo((name + entry[len(real) :]) or ".")
                header.mode = node.mode
                header.type = {"file": tarfile.REGTYPE, "folder": tarfile.DIRTYPE, "link": tarfile.SYMTYPE}[node.kind]
                header.linkname = node.target
                header.size = len(node.content)
                archive.addfile(header, io.BytesIO(node.content))
        if buffer.tell() > max_bytes:
            raise SandboxFileError(path, "too large")
        return buffer.getvalue()

    def unpack(self, archive: bytes, parent: str) -> None:
        """Unpack a tar below `parent`; an entry replaces what is in its place, folders merge."""
        self.make_folder(parent)
        with tarfile.open(fileobj=io.BytesIO(archive), errors="surrogateescape") as members:
            for member in members:
                path = posixpath.join(parent, member.name)
                old = self.node(path)
                if old is not None and not (member.isdir() and old.kind == "folder"):
                    self.remove(path)
                if member.isdir():
                    self.make_folder(path, member.mode)
                elif member.issym():
                    self.link(path, member.linkname)
                elif (content := members.extractfile(member)) is not None:
                    self.write(path, content.read(), member.mode)

    def snapshot(self) -> dict[str, Node]:
        """All entries as they are now, by real path."""
        return dict(self._nodes)


def _absolute(path: str) -> str:
    if not path.startswith("/"):
        raise ValueError(f"{path!r} is not an absolute path")
    return posixpath.normpath(path).replace("//", "/")
