"""The other end of a carrier, for environments of this project: serves one over standard input and output.

    python -m harness.environments.shim NAME [DATA_FOLDER]

A program in another language, or of a benchmark at some old commit, needs only the ten lines in docs/environments.md.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from harness.environments.registry import environment
from harness.environments.remote import MANY, PROTOCOL
from harness.protocols import Environment, EnvironmentSession
from harness.records.environment import Call, EnvironmentFault, Opening
from harness.records.vocabulary import Actor


class Shim:
    """Carries out requests. Sessions are kept apart by number."""

    def __init__(self, served: Environment) -> None:
        self._environment = served
        self._sessions: dict[int, tuple[EnvironmentSession, ExitStack]] = {}
        self._opened = 0

    def answer(self, line: str) -> str:
        """The answer to a request; whatever goes wrong is a fault in it."""
        number = None
        try:
            request = json.loads(line)
            number = request["id"]
            answer: dict[str, Any] = {"id": number, "ok": self._carry_out(request)}
        except EnvironmentFault as fault:
            said = {"message": fault.message, "place": fault.place, "remedy": fault.remedy}
            answer = {"id": number, "fault": said}
        except Exception as error:  # noqa: BLE001  the other end has to be told, whatever it is
            answer = {"id": number, "fault": {"message": f"{type(error).__name__}: {error}"}}
        return json.dumps(answer)

    def close(self) -> None:
        """Close all sessions."""
        while self._sessions:
            self._sessions.popitem()[1][1].close()

    def _carry_out(self, request: Mapping[str, Any]) -> dict[str, Any]:
        match request["do"]:
            case "hello":
                said = self._environment.capabilities.plain()
                return {"protocol": PROTOCOL, "sessions": MANY, "capabilities": said}
            case "open":
                stack = ExitStack()
                opening = Opening(request["mode"], request.get("data", ""), request.get("initial") or {})
                session = stack.enter_context(self._environment.open(opening))
                self._opened += 1
                self._sessions[self._opened] = (session, stack)
                return {"session": self._opened}
            case "close":
                self._sessions.pop(request["session"])[1].close()
                return {}
            case do:
                return self._in_session(do, self._sessions[request["session"]][0], request)

    def _in_session(self, do: str, session: EnvironmentSession, request: Mapping[str, Any]) -> dict[str, Any]:
        match do:
            case "call":
                call = Call(Actor(request["actor"]), request["name"], request["arguments"], request["namespace"])
                answer = session.call(call)
                return {"content": answer.content, "error": answer.error, "missing": answer.missing}
            case "digest":
                return {"digest": session.digest()}
            case "snapshot":
                return {"state": base64.b64encode(session.snapshot()).decode("ascii")}
            case "restore":
                session.restore(base64.b64decode(request["state"]))
                return {}
            case _:
                raise EnvironmentFault(f"there is no request {do!r}", place="shim")


def serve(served: Environment, requests: IO[str], answers: IO[str]) -> None:
    """Answer requests until there are no more."""
    shim = Shim(served)
    try:
        for line in requests:
            answers.write(shim.answer(line) + "\n")
            answers.flush()
    finally:
        shim.close()


def main(arguments: list[str]) -> None:
    """Serve the environment that is named. What anything prints goes to standard error: the output is for answers."""
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8") as answers:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        serve(environment(arguments[0], Path(arguments[1]) if arguments[1:] else None), sys.stdin, answers)


if __name__ == "__main__":
    main(sys.argv[1:])
