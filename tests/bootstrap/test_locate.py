"""Which address is chosen, and what is said of one that nobody answers at (CASES U01)."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from harness.bootstrap.engine import describe_failure, ensure_engine
from harness.bootstrap.locate import (
    DEFAULT_SOCKET,
    EngineAddress,
    Failure,
    choose_address,
    classify_failure,
    probe_engine,
)
from harness.records.errors import EngineUnavailable


def write_context(folder: Path, name: str, host: str) -> None:
    meta = folder / "contexts" / "meta" / hashlib.sha256(name.encode()).hexdigest()
    meta.mkdir(parents=True)
    (meta / "meta.json").write_text(json.dumps({"Name": name, "Endpoints": {"docker": {"Host": host}}}))


def test_the_default_socket_is_nobodys_wish(tmp_path: Path) -> None:
    for environment in ({}, {"DOCKER_HOST": ""}, {"DOCKER_HOST": DEFAULT_SOCKET}, {"DOCKER_CONTEXT": "default"}):
        address = choose_address({"HOME": str(tmp_path), **environment})
        assert (address.url, address.wished) == (DEFAULT_SOCKET, False)


def test_docker_host_goes_before_a_context_and_a_named_context_before_the_configured(tmp_path: Path) -> None:
    write_context(tmp_path, "desk", "unix:///desk.sock")
    write_context(tmp_path, "farm", "tcp://farm:2375")
    (tmp_path / "config.json").write_text(json.dumps({"currentContext": "desk"}))
    environment = {"DOCKER_CONFIG": str(tmp_path)}
    assert choose_address(environment).url == "unix:///desk.sock"
    environment["DOCKER_CONTEXT"] = "farm"
    assert choose_address(environment) == EngineAddress("tcp://farm:2375", "docker context 'farm'", wished=True)
    environment["DOCKER_HOST"] = "tcp://other:1"
    assert choose_address(environment).url == "tcp://other:1"


def test_the_configuration_of_the_home_folder_is_read(tmp_path: Path) -> None:
    write_context(tmp_path / ".docker", "desk", "unix:///desk.sock")
    (tmp_path / ".docker" / "config.json").write_text(json.dumps({"currentContext": "desk", "auths": {}}))
    assert choose_address({"HOME": str(tmp_path)}).url == "unix:///desk.sock"


@pytest.mark.parametrize("text", ["{", "[]", '{"currentContext": "gone"}', '{"currentContext": 7}'])
def test_a_strange_configuration_is_ignored_or_told(tmp_path: Path, text: str) -> None:
    config = tmp_path / "config.json"
    config.write_text(text)
    environment = {"DOCKER_CONFIG": str(tmp_path)}
    if text in ("[]", '{"currentContext": 7}'):
        assert choose_address(environment).url == DEFAULT_SOCKET
        return
    with pytest.raises(EngineUnavailable) as caught:
        choose_address(environment)
    assert str(tmp_path) in caught.value.place
    assert caught.value.remedy


@contextmanager
def as_nobody() -> Iterator[None]:
    """Root may open every socket, so a test of permission gives root up for a while."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that everybody may enter, with a path short enough for a socket."""
    path = Path(tempfile.mkdtemp(prefix="assay-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_no_socket_no_permission_and_refused_are_three_messages(folder: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "shut.sock"))
        server.listen()
        (folder / "shut.sock").chmod(0)
        urls = {
            f"unix://{folder}/nope.sock": Failure.NO_SOCKET,
            f"unix://{folder}/shut.sock": Failure.NOT_PERMITTED,
            f"tcp://127.0.0.1:{closed_port()}": Failure.REFUSED,
        }
        messages = set()
        for url, failure in urls.items():
            environment = {"DOCKER_HOST": url}
            with as_nobody(), pytest.raises(EngineUnavailable) as caught:
                ensure_engine(environment, lambda line: None)
            assert caught.value.exit_code == 5
            assert "\n" not in str(caught.value)
            assert caught.value.remedy
            messages.add(caught.value.message.replace(url, ""))
            with as_nobody():
                probe = probe_engine(choose_address(environment), environment)
            assert probe.failure is failure
    assert len(messages) == 3


def test_a_socket_file_without_a_daemon_is_a_refusal(folder: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "left.sock"))
    address = EngineAddress(f"unix://{folder}/left.sock", "DOCKER_HOST", wished=True)
    assert probe_engine(address, {}).failure is Failure.REFUSED


@pytest.mark.parametrize(
    "url", ["ssh://host", "npipe:////./pipe/docker", "/var/run/docker.sock", "tcp://", "tcp://host:port", ""]
)
def test_an_unusable_address_says_what_is_usable(url: str) -> None:
    probe = probe_engine(EngineAddress(url, "DOCKER_HOST", wished=True), {})
    assert probe.failure is Failure.UNSUPPORTED
    assert "unix:///path" in describe_failure(probe).remedy


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (socket.gaierror(-2, "Name or service not known"), Failure.UNKNOWN_HOST),
        (TimeoutError("timed out"), Failure.UNREACHABLE),
        (OSError(113, "No route to host"), Failure.UNREACHABLE),
        (NotADirectoryError(20, "Not a directory"), Failure.NO_SOCKET),
    ],
)
def test_what_the_system_raises_is_kept_apart(error: OSError, failure: Failure) -> None:
    def refuse(url: str) -> None:
        raise error

    assert classify_failure(error) is failure
    assert probe_engine(EngineAddress("tcp://host:1", "DOCKER_HOST", wished=True), {}, refuse).failure is failure


class NotAnEngine(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(404)
        self.end_headers()
        self.wfile.write(b"<html>\nnot here\n</html>")

    def log_message(self, *arguments: object) -> None:
        pass


def test_a_web_server_is_not_an_engine() -> None:
    with HTTPServer(("127.0.0.1", 0), NotAnEngine) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            address = EngineAddress(f"tcp://127.0.0.1:{server.server_port}", "DOCKER_HOST", wished=True)
            probe = probe_engine(address, {})
        finally:
            server.shutdown()
            thread.join()
    assert probe.failure is Failure.NOT_AN_ENGINE
    assert "\n" not in describe_failure(probe).message


@pytest.mark.docker
def test_the_engine_here_tells_its_versions() -> None:
    probe = probe_engine(choose_address(os.environ), os.environ)
    assert probe.failure is None, probe.detail
    assert probe.version
    assert tuple(map(int, probe.api_version.split("."))) >= (1, 41)
