"""One place that turns what docker-py, requests and sockets raise into a SandboxFault with a reason.

The engine tells most faults apart only in prose, so its sentences are matched here and nowhere else.
"""

from __future__ import annotations

import errno

import docker.errors
import requests

from harness.records.errors import SandboxFault
from harness.records.vocabulary import Reason

ENGINE_FAILURES: tuple[type[Exception], ...] = (
    docker.errors.DockerException,
    requests.RequestException,
    OSError,
)
"""What a call to the engine may raise: catch these, and hand them to :func:`fault_from`."""

_REMEDIES = {
    Reason.ENGINE_UNREACHABLE: "see that the engine runs and that this user may use it (`assay doctor`)",
    Reason.NETWORK_POOL: "remove unused networks (`assay gc`, `docker network prune`) or widen default-address-pools",
    Reason.DISK_FULL: "free space where the engine keeps its data (`docker system df`)",
    Reason.IMAGE_MISSING: "build or pull it and lock the suite (`assay suite lock`)",
    Reason.NAME_CONFLICT: "try again: names are drawn anew for every attempt",
}

_SENTENCES = (
    ("no space left on device", Reason.DISK_FULL),
    ("disk quota exceeded", Reason.DISK_FULL),
    ("address pool", Reason.NETWORK_POOL),  # "could not find an available, non-overlapping IPv4 address pool"
    ("fully subnetted", Reason.NETWORK_POOL),
    ("no such image", Reason.IMAGE_MISSING),
    ("no such container", Reason.CONTAINER_LOST),
    ("no such exec", Reason.CONTAINER_LOST),
    ("is not running", Reason.CONTAINER_LOST),
    ("is marked for removal", Reason.CONTAINER_LOST),
    ("is already in use by container", Reason.NAME_CONFLICT),
)


def fault_from(error: Exception, doing: str, *, place: str = "") -> SandboxFault:
    """The fault for an exception raised while `doing` ("starting the container"); `place` names the container."""
    reason = _reason_of(error)
    said = " ".join(_sentence_of(error).split())
    return SandboxFault(f"{doing} failed: {said}", reason=reason.value, place=place, remedy=_REMEDIES.get(reason, ""))


def path_is_missing(error: Exception) -> bool:
    """Whether the engine means a path inside a container that is there; a ring of links leads nowhere too."""
    if isinstance(error, docker.errors.APIError) and "too many links" in _sentence_of(error).lower():
        return True
    return isinstance(error, docker.errors.NotFound) and _reason_of(error) is not Reason.CONTAINER_LOST


def path_is_no_folder(error: Exception) -> bool:
    """Whether something on the way to a path inside the container is a file."""
    return isinstance(error, docker.errors.APIError) and "not a directory" in _sentence_of(error).lower()


def already_gone(error: Exception) -> bool:
    """Whether a removal has nothing left to do."""
    if isinstance(error, docker.errors.NotFound):
        return True
    return isinstance(error, docker.errors.APIError) and "already in progress" in _sentence_of(error).lower()


def not_paused(error: Exception) -> bool:
    """Whether a container that was to be thawed runs already."""
    return isinstance(error, docker.errors.APIError) and "is not paused" in _sentence_of(error).lower()


def _reason_of(error: Exception) -> Reason:
    if isinstance(error, docker.errors.APIError):
        said = _sentence_of(error).lower()
        return next((reason for part, reason in _SENTENCES if part in said), Reason.ENGINE_ERROR)
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return Reason.DISK_FULL
    if isinstance(error, (docker.errors.DockerException, requests.ConnectionError, requests.Timeout, OSError)):
        return Reason.ENGINE_UNREACHABLE
    return Reason.ENGINE_ERROR


def _sentence_of(error: Exception) -> str:
    if isinstance(error, docker.errors.APIError):
        explanation = error.explanation
        if isinstance(explanation, bytes):
            explanation = explanation.decode("utf-8", "replace")
        return str(explanation or error)
    return str(error) or type(error).__name__
