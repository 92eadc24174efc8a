"""What can go wrong between here and a program that is an environment, each with its place and a remedy."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.api.carriers import environment
from harness.environments.channel import ProcessChannel
from harness.environments.folder import VARIABLE
from harness.environments.remote import Patience, RemoteEnvironment
from harness.environments.shim import Shim
from harness.records.environment import Call, EnvironmentFault, Opening
from harness.records.errors import ConfigError
from harness.records.vocabulary import Actor
from tests.environments.conftest import BUNDLED

CAPABILITIES = {
    "environment": "toy@1",
    "code": "toy",
    "modes": {"normal": {"agent": ["agent"]}},
    "tools": [{"name": "show"}],
    "digest": "none",
}
HELLO = {"protocol": 1, "sessions": "one", "capabilities": CAPABILITIES}
SHOW = Call(Actor.AGENT, "show", {})
OPENING = Opening("normal")


class Scripted:
    """A channel to a program that is a function from a request to what it writes; None: nothing, and it ends."""

    place = "toy program"

    def __init__(self, answer: Callable[[dict[str, Any]], bytes | None]) -> None:
        self._answer = answer
        self._pieces: list[bytes] = []
        self.closed = 0

    def send(self, data: bytes, timeout_s: float) -> None:
        assert data.endswith(b"\n")
        assert data.count(b"\n") == 1
        said = self._answer(json.loads(data))
        self._pieces = [b""] if said is None else [said[at : at + 7] for at in range(0, len(said), 7)]

    def receive(self, timeout_s: float) -> bytes:
        if not self._pieces:
            raise TimeoutError
        return self._pieces.pop(0)

    def last_words(self) -> str:
        return "it ended with code 3"

    def close(self) -> None:
        self.closed += 1


def says(request: Mapping[str, Any], **ok: Any) -> bytes:
    return json.dumps({"id": request["id"], "ok": ok}).encode() + b"\n"


def scripted(**replies: Callable[[dict[str, Any]], bytes | None]) -> tuple[RemoteEnvironment, list[Scripted]]:
    """An environment whose program answers as told, and otherwise as it should; and the channels that were opened."""

    def answer(request: dict[str, Any]) -> bytes | None:
        if request["do"] in replies:
            return replies[request["do"]](request)
        usual: dict[str, dict[str, Any]] = {
            "hello": HELLO,
            "open": {"session": "s"},
            "call": {"content": "seen"},
            "digest": {"digest": "d"},
            "snapshot": {"state": "eA=="},
        }
        return says(request, **usual.get(request["do"], {}))

    channels: list[Scripted] = []

    def connect() -> Scripted:
        channels.append(Scripted(answer))
        return channels[-1]

    return RemoteEnvironment(connect), channels


def test_answers_in_pieces_are_put_together() -> None:
    remote, channels = scripted()
    with remote.open(OPENING) as session:
        assert session.call(SHOW).content == "seen"
        assert (session.digest(), session.snapshot()) == ("d", b"x")
        session.restore(b"x")
    assert [channel.closed > 0 for channel in channels] == [True]


@pytest.mark.parametrize(
    ("reply", "what"),
    [
        (lambda request: b"loading weights...\n", "something that is no answer: 'loading weights...'"),
        (lambda request: b"\xff\xfe\n", "something that is no answer"),
        (lambda request: b"[1]\n", "does not answer request 3"),
        (lambda request: b'{"id": 2, "ok": {"content": "late"}}\n', "does not answer request 3"),
        (lambda request: json.dumps({"id": request["id"]}).encode() + b"\n", "neither ok nor fault"),
        (lambda request: says(request, content=3), "no answer to a call"),
        (lambda request: says(request, content="x", error="yes"), "no answer to a call"),
        (lambda request: says(request), "no answer to a call"),
    ],
)
def test_garbage_is_told_and_the_program_is_ended(reply: Callable[[dict[str, Any]], bytes | None], what: str) -> None:
    remote, channels = scripted(call=reply)
    with remote.open(OPENING) as session:
        with pytest.raises(EnvironmentFault, match=what) as caught:
            session.call(SHOW)
        assert caught.value.place == "toy program"
        assert "docs/environments.md" in caught.value.remedy
        assert channels[0].closed
        with pytest.raises(EnvironmentFault, match="it was ended before: "):
            session.call(SHOW)


def test_an_end_in_the_middle_of_a_call_is_told_with_its_last_words() -> None:
    remote, _ = scripted(call=lambda request: None)
    with remote.open(OPENING) as session, pytest.raises(EnvironmentFault) as caught:
        session.call(SHOW)
    assert "ended before it answered call: it ended with code 3" in str(caught.value)
    with remote.open(OPENING) as session:  # a new session is a new program
        assert session.digest() == "d"


def test_silence_is_a_fault() -> None:
    remote, channels = scripted(digest=lambda request: b"")
    with remote.open(OPENING) as session, pytest.raises(EnvironmentFault, match="no answer to digest within 60 s"):
        session.digest()
    assert channels[0].closed


def test_a_fault_of_the_environment_itself_ends_nothing() -> None:
    fault = {"message": "out of disk", "place": "toy", "remedy": "free some"}
    remote, channels = scripted(
        digest=lambda request: json.dumps({"id": request["id"], "fault": fault}).encode() + b"\n"
    )
    with remote.open(OPENING) as session:
        with pytest.raises(EnvironmentFault) as caught:
            session.digest()
        assert str(caught.value) == "toy program: toy: out of disk — free some"
        assert session.call(SHOW).content == "seen"
    assert len(channels) == 1


def test_a_request_that_is_no_json_is_refused_before_it_is_sent() -> None:
    remote, channels = scripted()
    with remote.open(OPENING) as session:
        with pytest.raises(EnvironmentFault, match="cannot be written as JSON"):
            session.call(Call(Actor.AGENT, "show", {"a": {1, 2}}))
        assert session.call(SHOW).content == "seen"
    assert len(channels) == 1


@pytest.mark.parametrize(
    ("hello", "what"),
    [
        ({**HELLO, "protocol": 2}, "speaks protocol 2, not 1"),
        ({**HELLO, "capabilities": {**CAPABILITIES, "modes": 3}}, "no list of capabilities"),
        ({"protocol": 1}, "no list of capabilities"),
        ({}, "speaks protocol None"),
    ],
)
def test_a_greeting_of_another_kind_is_refused(hello: dict[str, Any], what: str) -> None:
    remote, channels = scripted(hello=lambda request: says(request, **hello))
    with pytest.raises(EnvironmentFault, match=what):
        _ = remote.capabilities
    assert channels[0].closed


def test_a_program_that_changes_its_mind_is_refused() -> None:
    versions = iter(("toy@1", "toy@2"))

    def hello(request: dict[str, Any]) -> bytes:
        return says(request, **{**HELLO, "capabilities": {**CAPABILITIES, "environment": next(versions)}})

    remote, channels = scripted(hello=hello)
    with remote.open(OPENING):
        pass
    with pytest.raises(EnvironmentFault, match="declares something else"), remote.open(OPENING):
        pass
    assert all(channel.closed for channel in channels)


def test_a_program_for_many_sessions_is_shared_and_closed_once() -> None:
    closes: list[Any] = []

    def close(request: dict[str, Any]) -> bytes:
        closes.append(request["session"])
        return says(request)

    remote, channels = scripted(hello=lambda request: says(request, **{**HELLO, "sessions": "many"}), close=close)
    with remote:
        with remote.open(OPENING), remote.open(OPENING):
            pass
        with pytest.raises(KeyError), remote.open(OPENING):
            raise KeyError("of the caller's own")
        assert len(channels) == 1
        assert not channels[0].closed
    assert channels[0].closed
    assert closes == ["s", "s", "s"]


def test_the_code_of_a_pinned_image_stands_for_what_it_says() -> None:
    remote = RemoteEnvironment(lambda: Scripted(lambda request: says(request, **HELLO)), code="sha256:1")
    assert remote.capabilities.code == "sha256:1"


def python(text: str) -> Callable[[], ProcessChannel]:
    return lambda: ProcessChannel((sys.executable, "-c", text))


def test_a_process_that_fails_to_start_is_told_with_its_standard_error() -> None:
    text = "import sys; sys.stderr.write('no module named airline'); sys.exit(7)"
    with pytest.raises(EnvironmentFault, match="it ended with code 7; it said: no module named airline"):
        _ = RemoteEnvironment(python(text)).capabilities


def test_a_process_killed_by_a_signal_is_told_so() -> None:
    with pytest.raises(EnvironmentFault, match="it was ended by SIGKILL"):
        _ = RemoteEnvironment(python("import os; os.kill(os.getpid(), 9)")).capabilities


def test_a_command_that_is_not_there_is_told() -> None:
    with pytest.raises(EnvironmentFault, match="cannot be started"):
        ProcessChannel(("/no/such/program",))


def test_a_flood_on_standard_error_holds_nothing_up(counter: Path) -> None:
    flood = "import sys\nsys.stderr.write('x' * 5_000_000)\n" + counter.read_text()
    with RemoteEnvironment(python(flood)) as remote, remote.open(OPENING) as session:
        assert session.call(SHOW).content == "0"


def test_requests_and_answers_larger_than_a_pipe_pass(counter: Path) -> None:
    long = "import sys\n" + counter.read_text().replace("str(number)}\n", "str(ask['arguments'])}\n", 1)
    text = "ö" * 700_000
    with RemoteEnvironment(python(long)) as remote, remote.open(OPENING) as session:
        assert text in session.call(Call(Actor.AGENT, "show", {"text": text})).content


def test_a_slow_process_is_ended_with_what_it_started(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    text = (
        "import subprocess, sys, time\n"
        f"child = subprocess.Popen(['sleep', '600'])\nopen({str(mark)!r}, 'w').write(str(child.pid))\n"
        "time.sleep(600)\n"
    )
    remote = RemoteEnvironment(python(text), patience=Patience(hello_s=1.5))
    with pytest.raises(EnvironmentFault, match=r"no answer to hello within 1\.5 s"):
        _ = remote.capabilities
    child = int(mark.read_text())
    for _ in range(100):
        if not _runs(child):
            break
        time.sleep(0.02)
    assert not _runs(child)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_what_a_program_prints_does_not_get_among_the_answers(tmp_path: Path) -> None:
    chatty = tmp_path / "chatty.py"
    chatty.write_text(
        "import os\nfrom harness.environments.airline.v1 import AirlineV1\n"
        "class Chatty(AirlineV1):\n"
        "    def open(self, opening):\n"
        "        print('hello from the benchmark')\n        os.system('echo and from its child')\n"
        "        return super().open(opening)\n"
    )
    command = (sys.executable, "-m", "harness.environments.shim", f"{chatty}:Chatty", str(BUNDLED))
    with RemoteEnvironment(lambda: ProcessChannel(command)) as remote, remote.open(OPENING) as session:
        assert len(session.digest()) == 64


@pytest.mark.parametrize("line", ["", "{", "[]", '{"id": 1}', '{"id": 1, "do": "digest", "session": 4}'])
def test_the_shim_answers_whatever_it_reads(line: str, desk: Path) -> None:
    shim = Shim(environment("mock@tau2", desk))
    answer = json.loads(shim.answer(line))
    assert "fault" in answer
    assert json.loads(shim.answer('{"id": 2, "do": "hello"}'))["ok"]["capabilities"]["environment"] == "mock@tau2"


def test_a_command_is_an_environment_by_name(counter: Path, tmp_path: Path) -> None:
    named = environment(f"command:{sys.executable} '{counter}'")
    assert isinstance(named, RemoteEnvironment)
    with named, named.open(OPENING) as session:
        assert session.call(SHOW).content == "0"


def test_a_command_finds_the_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    named = environment(f"command:{sys.executable} -m harness.environments.shim airline@v1", BUNDLED)
    assert isinstance(named, RemoteEnvironment)
    with named:
        assert named.capabilities.data == ("A", "B", "C")
    assert VARIABLE not in os.environ


@pytest.mark.parametrize("name", ["command:", "command:'", "container:", "container:debian:12", "container:@sha256:0"])
def test_a_name_that_says_nothing_to_run_or_is_not_pinned(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        environment(name)
    assert caught.value.remedy


def test_other_names_are_the_registered_ones(desk: Path) -> None:
    assert environment("mock@tau2", desk).capabilities.environment == "mock@tau2"
