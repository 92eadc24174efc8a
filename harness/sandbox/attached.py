"""A container whose own program is spoken to over its standard input and output, as long as this process lives.

Not a sandbox: nothing is run in it but its program, and no keeper holds it. It has limits and no network. The engine
removes it when the program ends, and the program's input ends when this process does, however it ends.
"""

from __future__ import annotations

import select
import socket
import threading
import time
from contextlib import suppress
from typing import Any

import docker.errors

from harness.records.environment import EnvironmentFault
from harness.records.errors import SandboxFault
from harness.records.execution import SandboxSpec
from harness.records.vocabulary import Reason
from harness.sandbox.container_config import container_config, container_name
from harness.sandbox.engine import Connect, connector
from harness.sandbox.errors import ENGINE_FAILURES, already_gone, fault_from
from harness.sandbox.exec_stream import refuse_stdin_over_tls
from harness.sandbox.frames import STDERR, STDOUT, FrameError, FrameParser
from harness.sandbox.images import HeldImage, check_started
from harness.sandbox.ownership import this_process

_PIECE_BYTES = 256 * 1024
_STDERR_BYTES = 4096  # kept, of its end: it says why a program ended
_END_S = 2.0  # for the engine to tell how it ended
_NOTHING_CREATED = (Reason.IMAGE_MISSING, Reason.NAME_CONFLICT)


class AttachedContainer:
    """A started container, as a channel (`harness.environments.channel.Channel`). Not for several threads at once.

    `spec.image` must be pinned by digest; `command` empty runs what the image says. Raises SandboxFault when it cannot
    be started, and then leaves nothing behind; later EnvironmentFault.
    """

    def __init__(self, spec: SandboxSpec, command: tuple[str, ...] = (), *, connect: Connect | None = None) -> None:
        if spec.image.locator is None:
            raise SandboxFault(
                "the image is not pinned by digest",
                reason=Reason.IMAGE_MISSING,
                place=spec.image.reference,
                remedy="write IMAGE@sha256:…, or sha256:… for an image that was built here",
            )
        self._name = container_name(spec)
        self.place = f"container {self._name}"
        self._memory_mb = spec.limits.memory_mb
        self._removable: str | None = None
        self._stdout, self._stderr = bytearray(), b""
        self._frames = FrameParser({STDOUT: self._stdout.extend, STDERR: self._keep_stderr})
        self._code: int | None = None
        self._connection: Any = None
        self._doing = "reaching the engine"
        self._client: Any = None
        try:
            self._client = (connect or connector(None))()
            self._start(self._client, spec, command)
        except ENGINE_FAILURES as error:
            fault = fault_from(error, self._doing, place=self.place)
            if self._removable == self._name and fault.reason in _NOTHING_CREATED:
                self._removable = None
            self.close()
            raise fault from error
        except BaseException:
            self.close()
            raise

    def send(self, data: bytes, timeout_s: float) -> None:
        """Write all of it. Raises TimeoutError, and EnvironmentFault when nobody reads any more."""
        left, deadline = memoryview(data), time.monotonic() + timeout_s
        while left:
            readable, writable = self._wait(deadline, write=True)
            if readable and not self._read():  # or a program that answers at length and reads later would stop
                break
            if writable:
                try:
                    left = left[self._socket.send(left[:_PIECE_BYTES]) :]
                except BlockingIOError:
                    continue
                except OSError:
                    break
        if left:
            raise EnvironmentFault(
                f"it reads no more: {self.last_words()}", place=self.place, remedy="see why it ended"
            )

    def receive(self, timeout_s: float) -> bytes:
        """The next bytes of its standard output, none at the end. Raises TimeoutError."""
        deadline = time.monotonic() + timeout_s
        while not self._stdout:
            self._wait(deadline, write=False)
            if not self._read():
                break
        piece = bytes(self._stdout)
        self._stdout.clear()
        return piece

    def last_words(self) -> str:
        """How the program ended, and the end of what it wrote to its standard error."""
        self._waiter.join(_END_S)
        how = "it ended" if self._code is None else f"it ended with code {self._code}"
        if self._code == 137:
            how += f" (killed; its memory limit is {self._memory_mb} MiB)"
        said = self._stderr.decode("utf-8", "replace").strip()
        return f"{how}; it said: {said}" if said else how

    def close(self) -> None:
        """Remove the container. Raises SandboxFault when the engine does not; may be called again."""
        client, self._client = self._client, None
        if client is None:
            return
        try:
            self._let_go()
            if self._removable is not None:
                client.remove_container(self._removable, force=True, v=True)
        except ENGINE_FAILURES as error:
            if not already_gone(error):
                raise fault_from(error, "removing the container", place=self.place) from error
        finally:
            client.close()

    def _start(self, client: Any, spec: SandboxSpec, command: tuple[str, ...]) -> None:
        locator = str(spec.image.locator)
        self._doing = "inspecting the image"
        image = HeldImage.of(client.inspect_image(locator))
        self._doing = "creating the container"
        self._removable = self._name
        self._removable = client.create_container_from_config(_config(spec, image, command), self._name)["Id"]
        self._doing = "attaching to the container"
        parameters = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
        self._connection = client.attach_socket(self._removable, params=parameters)
        refuse_stdin_over_tls(self._connection, self.place)
        self._socket: socket.socket = getattr(self._connection, "_sock", self._connection)
        self._socket.setblocking(False)
        self._waiter = threading.Thread(target=self._learn_code, args=(client, self._removable), daemon=True)
        self._waiter.start()
        self._doing = "starting the container"
        client.start(self._removable)
        self._doing = "inspecting the container"
        with suppress(docker.errors.NotFound):  # it has ended and is gone; its last words will say why
            check_started(spec.image, image, client.inspect_container(self._removable))

    def _learn_code(self, client: Any, container: str) -> None:
        """Wait for the end, which the engine tells once: it then removes the container."""
        try:
            self._code = client.wait(container, condition="next-exit")["StatusCode"]
        except ENGINE_FAILURES:
            self._code = None  # closed meanwhile, or the engine went away: nobody knows

    def _wait(self, deadline: float, *, write: bool) -> tuple[bool, bool]:
        left_s = deadline - time.monotonic()
        ready, able, _ = select.select([self._socket], [self._socket] if write else [], [], max(left_s, 0.0))
        if not ready and not able:
            raise TimeoutError
        return bool(ready), bool(able)

    def _read(self) -> bool:
        """Take in what has come; False at the end. Raises EnvironmentFault when it is not what an engine sends."""
        try:
            piece = self._socket.recv(_PIECE_BYTES)
            self._frames.feed(piece)
        except BlockingIOError:
            return True
        except ConnectionResetError:
            return False
        except (OSError, FrameError) as error:
            raise EnvironmentFault(
                f"its output cannot be read: {error}", place=self.place, remedy="see that the engine runs"
            ) from error
        return bool(piece)

    def _keep_stderr(self, piece: memoryview) -> None:
        self._stderr = (self._stderr + bytes(piece))[-_STDERR_BYTES:]

    def _let_go(self) -> None:
        """Close the connection, which ends the program's input."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        response = getattr(connection, "_response", None)
        if response is not None:
            response.close()  # closes the connection too, and must come first
        connection.close()


def _config(spec: SandboxSpec, image: HeldImage, command: tuple[str, ...]) -> dict[str, Any]:
    """A sandbox's configuration, without the keeper: its program is the first process, attached to."""
    config = container_config(spec, str(spec.image.locator), owner=this_process().label, network="none", quota=False)
    del config["Entrypoint"], config["Cmd"]
    if command:
        config |= {"Entrypoint": [command[0]], "Cmd": list(command[1:])}
    config["HostConfig"] |= {"AutoRemove": True}
    return config | {
        "User": spec.user or image.user,
        "OpenStdin": True,
        "StdinOnce": True,
        "AttachStdin": True,
        "AttachStdout": True,
        "AttachStderr": True,
        "Tty": False,
    }
