"""What sessions over a database have in common: who may call what, and the form of a snapshot."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harness.records.base import digest_of, sha256_of
from harness.records.environment import Capabilities, EnvironmentFault
from harness.records.vocabulary import Actor

AGENT, USER, REFERENCE = Actor.AGENT.value, Actor.USER.value, Actor.REFERENCE.value


class Access:
    """The tools that each actor has in a mode, looked up for every call."""

    def __init__(self, capabilities: Capabilities, mode: str) -> None:
        self._names = {
            (actor, namespace): frozenset(tool.name for tool in capabilities.tools if tool.namespace == namespace)
            for actor, namespaces in capabilities.modes[mode].items()
            for namespace in namespaces
        }

    def allows(self, actor: Actor, namespace: str, name: str) -> bool:
        return name in self._names.get((actor.value, namespace), ())


def code_of(modules: Iterable[str]) -> str:
    """The digest of the source files of imported modules, for what an environment says it is made of."""
    sources = {name: getattr(sys.modules[name], "__file__", None) for name in modules}
    return digest_of({name: sha256_of(Path(file).read_bytes()) for name, file in sorted(sources.items()) if file})


def packed(kind: str, data: str, mode: str, state: Any) -> bytes:
    """A snapshot, with what it may be restored into."""
    return json.dumps({"environment": kind, "data": data, "mode": mode, "state": state}).encode("ascii")


def unpacked(kind: str, data: str, mode: str, snapshot: bytes) -> dict[str, Any]:
    """The state in a snapshot. Raises EnvironmentFault when it is none, or of another environment, data or mode."""
    remedy = "restore what snapshot() of the same environment, data version and mode returned"
    try:
        found = json.loads(snapshot)
        made_for = (found["environment"], found["data"], found["mode"])
        state: dict[str, Any] = dict(found["state"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise EnvironmentFault(f"this is no snapshot: {error!r}", place=kind, remedy=remedy) from error
    if made_for != (kind, data, mode):
        raise EnvironmentFault(f"the snapshot is of {' '.join(map(str, made_for))}", place=kind, remedy=remedy)
    return state
