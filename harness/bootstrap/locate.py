"""Where the engine should be, and whether something answers there.

One address is chosen as the `docker` command chooses it: `DOCKER_HOST`, else the context (`DOCKER_CONTEXT` or the
configured one), else the default socket. The first two are somebody's wish, so that a silence there is an error; only
behind the third may an engine be installed.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit

import docker
import docker.utils
import requests
from docker.errors import DockerException

from harness.records.errors import EngineUnavailable

DEFAULT_SOCKET = "unix:///var/run/docker.sock"
_PROBE_TIMEOUT_S = 10.0
_PORTS = {"tcp": 2375, "http": 2375, "https": 2376}


@dataclass(frozen=True, slots=True)
class EngineAddress:
    """`chosen_by` is DOCKER_HOST, a context by name, or the default socket; `wished` when somebody named it."""

    url: str
    chosen_by: str
    wished: bool


class Failure(StrEnum):
    """Why nobody could be spoken to."""

    NO_SOCKET = "no_socket"
    NOT_PERMITTED = "not_permitted"
    REFUSED = "refused"
    UNKNOWN_HOST = "unknown_host"
    UNREACHABLE = "unreachable"
    NOT_AN_ENGINE = "not_an_engine"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True, slots=True)
class Probe:
    """The answer at an address: versions when an engine spoke, else a failure and its detail."""

    address: EngineAddress
    failure: Failure | None = None
    detail: str = ""
    version: str = ""
    api_version: str = ""


def choose_address(environment: Mapping[str, str]) -> EngineAddress:
    """The address the `docker` command would use under this environment.

    Raises:
        EngineUnavailable: a context is named that is not configured.
    """
    if host := environment.get("DOCKER_HOST", "").strip():
        return EngineAddress(host, "DOCKER_HOST", wished=host != DEFAULT_SOCKET)
    home = environment.get("HOME") or os.path.expanduser("~")
    folder = Path(environment.get("DOCKER_CONFIG") or Path(home, ".docker"))
    name = environment.get("DOCKER_CONTEXT") or _configured_context(folder / "config.json")
    if name in ("", "default"):
        return EngineAddress(DEFAULT_SOCKET, "the default socket", wished=False)
    return EngineAddress(_context_host(folder, name), f"docker context {name!r}", wished=True)


def _configured_context(config: Path) -> str:
    try:
        values = json.loads(config.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        raise EngineUnavailable(
            f"Docker's configuration cannot be read: {error}", place=str(config), remedy="mend it, or set DOCKER_HOST"
        ) from error
    name = values.get("currentContext", "") if isinstance(values, dict) else ""
    return name if isinstance(name, str) else ""


def _context_host(folder: Path, name: str) -> str:
    # The command keeps each context in a folder named by the sha256 of its name.
    meta = folder / "contexts" / "meta" / hashlib.sha256(name.encode()).hexdigest() / "meta.json"
    try:
        host = json.loads(meta.read_text(encoding="utf-8"))["Endpoints"]["docker"]["Host"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EngineUnavailable(
            f"docker context {name!r} is selected but not configured",
            place=str(meta),
            remedy="`docker context use default`, or set DOCKER_HOST",
        ) from error
    return str(host)


def open_socket(url: str) -> None:
    """Connect to the address and hang up. Raises OSError as the system does, ValueError for an unusable address."""
    parts = urlsplit(url)
    if parts.scheme == "unix":
        with socket.socket(socket.AF_UNIX) as stream:
            stream.settimeout(_PROBE_TIMEOUT_S)
            stream.connect(parts.netloc + parts.path)
    elif parts.scheme in _PORTS and parts.hostname:
        port = parts.port or _PORTS[parts.scheme]
        socket.create_connection((parts.hostname, port), timeout=_PROBE_TIMEOUT_S).close()
    else:
        raise ValueError(f"{parts.scheme or 'no scheme'}, where unix:// or tcp:// is needed")


def classify_failure(error: Exception) -> Failure:
    """The kind of failure behind an exception of a connection attempt."""
    kinds: tuple[tuple[type[Exception], Failure], ...] = (
        (FileNotFoundError, Failure.NO_SOCKET),
        (NotADirectoryError, Failure.NO_SOCKET),
        (PermissionError, Failure.NOT_PERMITTED),
        (ConnectionRefusedError, Failure.REFUSED),
        (socket.gaierror, Failure.UNKNOWN_HOST),
        (OSError, Failure.UNREACHABLE),
        (ValueError, Failure.UNSUPPORTED),
    )
    return next((failure for kind, failure in kinds if isinstance(error, kind)), Failure.NOT_AN_ENGINE)


def connect_engine(
    address: EngineAddress, environment: Mapping[str, str], timeout_s: float = 60.0
) -> docker.DockerClient:
    """A client of the engine at this address, with TLS as DOCKER_TLS_VERIFY and DOCKER_CERT_PATH say.

    Raises:
        DockerException: nobody speaks the Engine API there.
    """
    tls = docker.utils.kwargs_from_env(environment=dict(environment)).get("tls", False)
    return docker.DockerClient(base_url=address.url, timeout=int(timeout_s), tls=tls or False)


def probe_engine(
    address: EngineAddress,
    environment: Mapping[str, str],
    connect: Callable[[str], None] = open_socket,
) -> Probe:
    """Ask who is there. Never raises for an engine that is not: the failure is the answer.

    The socket is tried first by itself, since the client library wraps every refusal in the same exception.
    """
    try:
        connect(address.url)
    except (OSError, ValueError) as error:
        return Probe(address, classify_failure(error), str(error))
    try:
        client = connect_engine(address, environment, _PROBE_TIMEOUT_S)
        try:
            answer = client.version()
        finally:
            client.close()
    except (DockerException, requests.RequestException, OSError, ValueError) as error:
        return Probe(address, Failure.NOT_AN_ENGINE, str(error))
    return Probe(address, version=str(answer.get("Version", "")), api_version=str(answer.get("ApiVersion", "")))
