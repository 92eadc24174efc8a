"""An environment in another process or container: JSON lines over its standard input and output.

One request a line, one answer a line, in order (docs/environments.md has the messages and a shim of ten lines):

    {"id": 7, "do": "call", "session": 1, "actor": "agent", "namespace": "agent", "name": …, "arguments": …}
    {"id": 7, "ok": {"content": "…", "error": false, "missing": false}}
"""

from __future__ import annotations

import base64
import binascii
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from pydantic import ValidationError

from harness.environments.channel import Channel
from harness.records.environment import Answer, Call, Capabilities, EnvironmentFault, Opening

PROTOCOL = 1
MANY = "many"  # sessions at once that a program keeps apart; anything else: one session, then a new program
_LINE_BYTES = 64 * 1024 * 1024
_EXCERPT = 200
_REMEDY = "only answers may go to standard output, one JSON object a line: docs/environments.md"


@dataclass(frozen=True, slots=True)
class Patience:
    """How long an answer may take: the first one, which waits for the program to start, and any other."""

    hello_s: float = 60.0
    answer_s: float = 60.0


class RemoteEnvironment:
    """An :class:`harness.protocols.Environment` behind a channel; `connect` starts the program anew each time.

    A program that keeps several sessions apart says so and is shared; any other serves one session and is ended, so
    that no state is shared whatever it does. `code`, where given, is what the environment is made of (the digest of an
    image); else the program says it. Close it, or use it as a context.
    """

    def __init__(self, connect: Callable[[], Channel], *, patience: Patience | None = None, code: str = "") -> None:
        self._connect, self._patience, self._code = connect, patience or Patience(), code
        self._lock = threading.Lock()
        self._spare: _Link | None = None  # greeted; shared when it takes many sessions, else unused so far
        self._capabilities: Capabilities | None = None

    @property
    def capabilities(self) -> Capabilities:
        """What the program declares; it is started for that. Raises EnvironmentFault."""
        with self._lock:
            if self._capabilities is None:
                self._spare = self._greeted()
            assert self._capabilities is not None  # a greeting sets them
            return self._capabilities

    @contextmanager
    def open(self, opening: Opening) -> Iterator[RemoteSession]:
        data = self.capabilities.data_of(opening)
        with self._lock:
            link = self._spare if self._spare is not None and not self._spare.dead else self._greeted()
            self._spare = link if link.many else None
        try:
            fields = {"mode": opening.mode, "data": data, "initial": dict(opening.initial)}
            session = link.ask("open", fields).get("session")
            try:
                yield RemoteSession(link, session)
            except BaseException:
                with suppress(EnvironmentFault):  # what ended the session matters more
                    link.ask("close", {"session": session})
                raise
            if not link.dead:
                link.ask("close", {"session": session})
        finally:
            if not link.many:
                link.close()

    def close(self) -> None:
        """End the program, if it runs."""
        with self._lock:
            if self._spare is not None:
                self._spare.close()
                self._spare = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _greeted(self) -> _Link:
        link = _Link(self._connect(), self._patience)
        try:
            link.greet()
            try:
                said = Capabilities.model_validate(link.declared)
            except ValidationError as error:
                raise EnvironmentFault(
                    f"what it declares is no list of capabilities: {error}", place=link.place, remedy=_REMEDY
                ) from error
            said = said.model_copy(update={"code": self._code}) if self._code else said
            if self._capabilities not in (None, said):
                raise EnvironmentFault(
                    "started again, it declares something else", place=link.place, remedy="let it declare constants"
                )
            self._capabilities = said
        except BaseException:
            link.close()
            raise
        return link


class RemoteSession:
    """An :class:`harness.protocols.EnvironmentSession` at the other end."""

    def __init__(self, link: _Link, session: Any) -> None:
        self._link, self._session = link, session

    def call(self, call: Call) -> Answer:
        answer = self._ask(
            "call", actor=call.actor.value, namespace=call.namespace, name=call.name, arguments=call.arguments
        )
        content, error, missing = answer.get("content"), answer.get("error", False), answer.get("missing", False)
        if not (isinstance(content, str) and isinstance(error, bool) and isinstance(missing, bool)):
            raise self._link.broken(f"this is no answer to a call: {str(answer)[:_EXCERPT]}")
        return Answer(content, error, missing)

    def digest(self) -> str:
        return self._text("digest", "digest")

    def snapshot(self) -> bytes:
        try:
            return base64.b64decode(self._text("snapshot", "state"), validate=True)
        except binascii.Error as error:
            raise self._link.broken(f"the snapshot is not base64: {error}") from error

    def restore(self, state: bytes) -> None:
        self._ask("restore", state=base64.b64encode(state).decode("ascii"))

    def _text(self, do: str, field: str) -> str:
        answer = self._ask(do)
        if not isinstance(answer.get(field), str):
            raise self._link.broken(f"the answer to {do} has no text {field!r}: {str(answer)[:_EXCERPT]}")
        return str(answer[field])

    def _ask(self, do: str, **fields: Any) -> Mapping[str, Any]:
        return self._link.ask(do, {"session": self._session, **fields})


class _Link:
    """Requests and answers over one channel. What breaks the order of them ends the program, and it stays ended."""

    def __init__(self, channel: Channel, patience: Patience) -> None:
        self._channel, self._patience = channel, patience
        self._lock = threading.Lock()
        self._number = 0
        self._read = bytearray()
        self.place = channel.place
        self.dead = ""  # why, once it is
        self.many = False
        self.declared: Any = None

    def greet(self) -> None:
        """Ask the program who it is. Raises EnvironmentFault."""
        said = self.ask("hello", {"protocol": PROTOCOL}, timeout_s=self._patience.hello_s)
        if said.get("protocol") != PROTOCOL:
            raise self.broken(f"it speaks protocol {said.get('protocol')!r}, not {PROTOCOL}")
        self.many = said.get("sessions") == MANY
        self.declared = said.get("capabilities")

    def ask(self, do: str, fields: Mapping[str, Any], *, timeout_s: float | None = None) -> Mapping[str, Any]:
        """The answer. Raises EnvironmentFault: the environment's own, after which it goes on, or the carrier's."""
        with self._lock:
            if self.dead:
                raise EnvironmentFault(f"it was ended before: {self.dead}", place=self.place, remedy="open it anew")
            self._number += 1
            wait_s = timeout_s if timeout_s is not None else self._patience.answer_s
            return self._read_answer(self._exchange(do, fields, wait_s))

    def _read_answer(self, line: bytes) -> Mapping[str, Any]:
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise self.broken(f"it wrote something that is no answer: {_shown(line)}") from error
        if not isinstance(answer, dict) or answer.get("id") != self._number:
            raise self.broken(f"this does not answer request {self._number}: {_shown(line)}")
        if isinstance(fault := answer.get("fault"), dict):
            where = str(fault.get("place") or "")
            raise EnvironmentFault(
                str(fault.get("message")),
                place=f"{self.place}: {where}" if where else self.place,
                remedy=str(fault.get("remedy") or ""),
            )
        if not isinstance(answer.get("ok"), dict):
            raise self.broken(f"the answer has neither ok nor fault: {_shown(line)}")
        return dict(answer["ok"])

    def broken(self, why: str, remedy: str = _REMEDY) -> EnvironmentFault:
        """The fault to raise for a program that cannot be understood; the program is ended."""
        self.close(why)
        return EnvironmentFault(why, place=self.place, remedy=remedy)

    def close(self, why: str = "closed") -> None:
        self.dead = self.dead or why
        self._channel.close()

    def _exchange(self, do: str, fields: Mapping[str, Any], wait_s: float) -> bytes:
        try:
            text = json.dumps({"id": self._number, "do": do, **fields}, separators=(",", ":"))
        except (TypeError, ValueError, RecursionError) as error:
            raise EnvironmentFault(
                f"the request cannot be written as JSON: {error}", place=self.place, remedy="see what is passed"
            ) from error
        request = text.encode("ascii") + b"\n"
        deadline = time.monotonic() + wait_s
        try:
            self._channel.send(request, wait_s)
            return self._line(do, deadline)
        except TimeoutError as error:
            raise self.broken(f"no answer to {do} within {wait_s:g} s", "see what it does; wait longer") from error
        except EnvironmentFault as fault:
            self.close(fault.message)
            raise

    def _line(self, do: str, deadline: float) -> bytes:
        searched = 0
        while (end := self._read.find(b"\n", searched)) < 0:
            searched = len(self._read)
            if searched > _LINE_BYTES:
                raise EnvironmentFault(f"it wrote a line of more than {_LINE_BYTES} bytes", place=self.place)
            piece = self._channel.receive(max(deadline - time.monotonic(), 0.0))
            if not piece:
                raise EnvironmentFault(
                    f"it ended before it answered {do}: {self._channel.last_words()}",
                    place=self.place,
                    remedy="mend the program; nothing that it was asked is known to have happened",
                )
            self._read += piece
        line = bytes(self._read[:end])
        del self._read[: end + 1]
        return line


def _shown(line: bytes) -> str:
    text = line.decode("utf-8", "replace")
    return repr(text if len(text) <= _EXCERPT else text[:_EXCERPT] + "…")
