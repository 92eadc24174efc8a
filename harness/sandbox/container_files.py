"""Files in a container, through the archive API alone: nothing inside runs, and nothing inside is trusted."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import anyio.to_thread
import structlog
from docker import APIClient
from docker.utils import decode_json_header

from harness.protocols import SandboxFileError
from harness.records.errors import SandboxFault
from harness.records.task import FileTree
from harness.records.vocabulary import Reason
from harness.sandbox.archive import (
    BrokenArchive,
    PathStat,
    pack_folders,
    pack_replacement,
    pack_tree,
    parents_of,
    read_all,
    read_names,
    read_one_file,
)
from harness.sandbox.engine import Engine
from harness.sandbox.errors import path_is_missing, path_is_no_folder
from harness.sandbox.keeper import KEEPER_PATH
from harness.sandbox.overlay_changes import Layers, OutOfReach
from harness.sandbox.overlay_written import pack_written

log = structlog.get_logger(__name__)

T = TypeVar("T")

_READ_ATTEMPTS = 3  # a file that grows while it is packed breaks the tar
_KINDS = {0: "C", 1: "A", 2: "D"}


@dataclass(frozen=True)
class ContainerFiles:
    """Reads and writes below the root of one container, whether it runs or not."""

    engine: Engine
    id: str
    name: str
    layers: Layers | None = None

    async def put(self, tree: FileTree, dest: str, *, replace: bool) -> None:
        """As :meth:`harness.protocols.Sandbox.put`. One call of the engine, unless `dest` lies deep or is empty."""
        dest = _absolute(dest)
        if replace:
            if dest == "/":
                raise ValueError("the root folder cannot be replaced")
            await self._unpack(pack_replacement(tree, dest, await self._new_folders(parents_of(dest))), "/")
        elif tree:
            await self._unpack(pack_tree(tree, dest), "/")
        else:
            await self._make_folder(dest)

    async def read(self, path: str, *, max_bytes: int) -> bytes:
        """As :meth:`harness.protocols.Sandbox.read`."""

        def take(stat: PathStat, chunks: Iterable[bytes]) -> bytes:
            if stat.kind != "file":
                raise SandboxFileError(path, "not a file")
            if stat.size_bytes > max_bytes:
                raise SandboxFileError(path, "too large")
            return read_one_file(chunks, path, max_bytes)

        def pick(stat: PathStat, chunks: Iterable[bytes]) -> bytes:
            return read_one_file(chunks, path, max_bytes, posixpath.join(posixpath.basename(parent), name))

        if _is_text(path):
            return await self._get(path, take)
        parent, name = posixpath.split(_absolute(path))
        return await self._get(parent, pick)

    async def list(self, path: str) -> tuple[str, ...]:
        """As :meth:`harness.protocols.Sandbox.list`. The engine sends contents too, so a big folder takes its time."""

        def take(stat: PathStat, chunks: Iterable[bytes]) -> tuple[str, ...]:
            return read_names(chunks) if stat.kind == "folder" else ()

        try:
            if _is_text(path):
                return await self._get(path, take)
            parent, name = posixpath.split(_absolute(path))
            return tuple(
                below.removeprefix(name + "/") for below in await self.list(parent) if below.startswith(name + "/")
            )
        except SandboxFileError:
            return ()

    async def fetch(self, path: str, *, max_bytes: int) -> bytes:
        """As :meth:`harness.protocols.Sandbox.fetch`."""
        if not _is_text(path):
            raise SandboxFileError(path, "not named in UTF-8: fetch the folder above it")
        return await self._get(path, lambda stat, chunks: read_all(chunks, path, max_bytes))

    async def restore(self, archive: bytes, parent: str) -> None:
        """As :meth:`harness.protocols.Sandbox.restore`; `parent` and the folders above it are made where missing."""
        parent = _absolute(parent)
        try:
            await self._unpack(archive, parent)
        except SandboxFileError as error:
            if error.problem != "missing":
                raise
            await self._make_folder(parent)
            await self._unpack(archive, parent)

    async def changes(self) -> tuple[str, ...]:
        """As :meth:`harness.protocols.Sandbox.changes`, without the keeper."""
        if self.layers is not None:
            try:
                return await anyio.to_thread.run_sync(self.layers.changes)
            except OutOfReach as why:
                log.info("sandbox.changes_by_engine", container=self.name, why=str(why))
        return await self.engine_changes()

    async def written(self, *, max_bytes: int) -> bytes | None:
        """As :meth:`harness.protocols.Sandbox.written`."""
        if self.layers is None:
            return None
        try:
            return await anyio.to_thread.run_sync(pack_written, self.layers, max_bytes)
        except OutOfReach as why:
            log.info("sandbox.written_by_engine", container=self.name, why=str(why))
            return None

    async def engine_changes(self) -> tuple[str, ...]:
        """The same from the engine, which reads the whole image for it."""
        found = await self.engine.call("listing changes", lambda client: client.diff(self.id), place=self.name)
        return tuple(f"{_KINDS[item['Kind']]} {item['Path']}" for item in found or () if item["Path"] != KEEPER_PATH)

    async def stat(self, path: str) -> PathStat | None:
        """What is at a path, its last part not followed; None when nothing is."""

        def ask(client: APIClient) -> PathStat | None:
            url = f"{client.base_url}/v{client.api_version}/containers/{self.id}/archive"
            answer = client.head(url, params={"path": os.fsencode(path)}, timeout=client.timeout)
            if answer.status_code == 404:
                return None
            answer.raise_for_status()
            return PathStat.of(decode_json_header(answer.headers["X-Docker-Container-Path-Stat"]))

        return await self.engine.call(f"looking at {path!a}", ask, place=self.name)

    async def _make_folder(self, path: str) -> None:
        folders = await self._new_folders((*parents_of(path), path), follow=True)
        if folders:
            await self._unpack(pack_folders(folders), "/")

    async def _new_folders(self, paths: Iterable[str], *, follow: bool = False) -> tuple[str, ...]:
        """Those of a path's folders that must be made, from the top: the first that is not a real folder, and below.

        With `follow`, a link counts as what it points to.
        """
        paths = tuple(paths)
        for count, path in enumerate(paths):
            stat = await self.stat(f"{path}/." if follow else path)
            if stat is None or stat.kind != "folder":
                return paths[count:]
        return ()

    async def _unpack(self, archive: bytes, parent: str) -> None:
        def send(client: APIClient) -> None:
            client.put_archive(self.id, parent, archive)

        try:
            await self.engine.call(f"writing below {parent!a}", send, place=self.name)
        except SandboxFault as fault:
            cause = fault.__cause__
            if isinstance(cause, Exception) and path_is_missing(cause):
                raise SandboxFileError(parent, "missing") from cause
            if isinstance(cause, Exception) and path_is_no_folder(cause):
                raise SandboxFileError(parent, "not a folder") from cause
            raise

    async def _get(self, path: str, take: Callable[[PathStat, Iterable[bytes]], T]) -> T:
        def receive(client: APIClient) -> T:
            # Bytes go through as they are; a str would be refused where the name is not UTF-8.
            chunks, stat = client.get_archive(self.id, cast(str, os.fsencode(_absolute(path))))
            try:
                return take(PathStat.of(cast("dict[str, Any]", stat)), chunks)
            finally:
                chunks.close()

        for _ in range(_READ_ATTEMPTS):
            try:
                return await self.engine.call(f"reading {path!a}", receive, place=self.name)
            except BrokenArchive:
                continue
            except SandboxFault as fault:
                cause = fault.__cause__
                if isinstance(cause, Exception) and (path_is_missing(cause) or path_is_no_folder(cause)):
                    raise SandboxFileError(path, "missing") from cause
                raise
        raise SandboxFault(
            f"reading {path!a} failed {_READ_ATTEMPTS} times: it changes while it is read",
            reason=Reason.ENGINE_ERROR,
            place=self.name,
            remedy="end the processes that write to it first",
        )


def _is_text(path: str) -> bool:
    """Whether the last part of a path is UTF-8: the engine loses a path that is asked for by another name."""
    try:
        posixpath.basename(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def _absolute(path: str) -> str:
    if not path.startswith("/"):
        raise ValueError(f"{path!r} is not an absolute path")
    return "/" + posixpath.normpath(path).lstrip("/")
