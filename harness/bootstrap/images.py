"""Settle the images of a suite: find, pull or build each, and say by which digest it is known from then on.

This is `assay suite lock`'s work and nobody else's: a run never pulls or builds.
"""

from __future__ import annotations

import tarfile
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import docker
import requests
from docker.errors import APIError, DockerException, ImageNotFound
from docker.models.images import Image
from docker.utils.build import exclude_paths

from harness.formats.lock import ImageNeed
from harness.formats.source import walk_files
from harness.records.errors import AssayError, EngineUnavailable, LoadErrors, TaskError
from harness.records.suite import ImageLock

Report = Callable[[str], None]

BUILD_REPOSITORY = "assay-build"
CONTEXT_LABEL = "org.assay.context"
BUILD_TIMEOUT_S = 1800.0
_LAST_LINES = 12


def resolve_images(client: docker.DockerClient, needs: Iterable[ImageNeed], report: Report) -> dict[str, ImageLock]:
    """The pin of every needed image by reference, pulling and building what is not there.

    `report` gets the lines of builds and pulls as they come. Raises TaskError, or LoadErrors with every image that
    could not be had, and EngineUnavailable when the engine is gone.
    """
    images: dict[str, ImageLock] = {}
    errors: list[TaskError] = []
    for need in needs:
        try:
            images[need.reference] = resolve_image(client, need, report)
        except TaskError as error:
            errors.append(error)
        except requests.RequestException as error:
            raise EngineUnavailable(f"the engine went away: {error}", remedy="see `assay doctor`") from error
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise LoadErrors(tuple(errors))
    return images


def resolve_image(client: docker.DockerClient, need: ImageNeed, report: Report) -> ImageLock:
    """The pin of one image. Raises TaskError when it can be neither found nor pulled nor built."""
    if need.build_context is not None:
        return _as_lock(build_image(client, need, report), None)
    try:
        return _as_lock(client.images.get(need.reference), need.reference)
    except ImageNotFound:
        pass
    except DockerException as error:
        raise TaskError(f"image {need.reference}: {error}", place=need.tasks[0]) from error
    report(f"pulling {need.reference}")
    try:
        for message in client.api.pull(need.reference, stream=True, decode=True):
            _raise_for(message)
            if "id" not in message and "status" in message:  # the layers' own progress is noise
                report(str(message["status"]))
        return _as_lock(client.images.get(need.reference), need.reference)
    except (DockerException, _EngineSays) as error:
        raise TaskError(
            f"image {need.reference} is not here and cannot be pulled: {error}",
            place=need.tasks[0],
            remedy="`assay setup` builds the base image; others: build or pull it, or mend [environment] docker_image",
        ) from error


def build_image(
    client: docker.DockerClient, need: ImageNeed, report: Report, timeout_s: float = BUILD_TIMEOUT_S
) -> Image:
    """The image of a task that has only a Dockerfile; one built before from the same files is used again.

    Raises TaskError with the last lines of a failed build, or of one that took longer than `timeout_s`.
    """
    if need.build_context is None:
        raise ValueError(f"{need.reference} is not built from a folder")
    context = Path(need.build_context)
    digest = need.reference.partition(":")[2]
    tag = f"{BUILD_REPOSITORY}:{digest.removeprefix('sha256:')[:32]}"
    try:
        present = client.images.get(tag)
        if present.labels.get(CONTEXT_LABEL) == digest:
            return present
    except ImageNotFound:
        pass
    report(f"building {tag} from {context}")
    last: deque[str] = deque(maxlen=_LAST_LINES)
    deadline_s = time.monotonic() + timeout_s
    try:
        with tempfile.TemporaryFile() as archive:
            _write_context(archive, context)
            for message in _build(client, archive, tag, digest):
                _raise_for(message)
                for line in str(message.get("stream", "")).splitlines():
                    if line.strip():
                        last.append(line)
                        report(line)
                if time.monotonic() > deadline_s:
                    raise _EngineSays(f"not done after {timeout_s:g} s")
        return client.images.get(tag)
    except (DockerException, _EngineSays, OSError) as error:
        # An OSError too, but the engine's matter; unlike its answer that the Dockerfile makes no sense.
        if isinstance(error, requests.RequestException) and not isinstance(error, APIError):
            raise
        log = "".join(f"\n  | {line}" for line in last)
        raise TaskError(
            f"building the image failed: {error}{log}", place=f"{context}/Dockerfile", remedy="mend the Dockerfile"
        ) from error


def _build(client: docker.DockerClient, archive: IO[bytes], tag: str, digest: str) -> Iterator[dict[str, Any]]:
    messages: Iterator[dict[str, Any]] = client.api.build(
        fileobj=archive,
        custom_context=True,
        tag=tag,
        labels={CONTEXT_LABEL: digest},
        rm=True,
        forcerm=True,
        decode=True,
    )
    return messages


def _write_context(archive: IO[bytes], context: Path) -> None:
    """The folder as a tar without times, owners or caches, less what `.dockerignore` names."""
    ignore = context / ".dockerignore"
    patterns = ignore.read_text(encoding="utf-8").splitlines() if ignore.is_file() else []
    patterns = [line.strip() for line in patterns if line.strip() and not line.startswith("#")]
    wanted = exclude_paths(str(context), patterns, dockerfile="Dockerfile") if patterns else None
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for path in sorted(walk_files(context.parent, context.name)):
            inner = path.removeprefix(f"{context.name}/")
            if wanted is not None and inner not in wanted:
                continue
            info = tar.gettarinfo(str(context / inner), arcname=inner)
            info.mtime = info.uid = info.gid = 0
            info.uname = info.gname = ""
            info.mode = 0o755 if info.mode & 0o111 else 0o644
            if info.isreg():
                with (context / inner).open("rb") as file:
                    tar.addfile(info, file)
            else:
                tar.addfile(info)
    archive.seek(0)


class _EngineSays(AssayError):
    """A failure that the engine reports within a stream of progress."""


def _raise_for(message: dict[str, Any]) -> None:
    if "error" in message:
        raise _EngineSays(str(message["error"]).strip())


def _as_lock(image: Image, reference: str | None) -> ImageLock:
    """By registry digest when the image came from the reference's repository, else by the engine's own id."""
    attrs: dict[str, Any] = image.attrs
    platform = "/".join(part for part in (attrs["Os"], attrs["Architecture"], attrs.get("Variant") or "") if part)
    if reference is not None:
        asked = reference.partition("@")[2]
        repository = _repository(reference)
        for known in attrs.get("RepoDigests") or ():
            name, _, digest = known.partition("@")
            if name == repository and asked in ("", digest):
                return ImageLock(digest=digest, repository=name, platform=platform)
    return ImageLock(digest=str(image.id), platform=platform)


def _repository(reference: str) -> str:
    """The name without tag or digest, as the engine writes it: Docker Hub's long forms are shortened."""
    name = reference.partition("@")[0]
    head, colon, tail = name.rpartition(":")
    name = head if colon and "/" not in tail else name
    return name.removeprefix("docker.io/").removeprefix("library/")
