"""Versions of a database as changes to one file: what drifts between a benchmark's releases, said once.

A change names the objects it is made in by a path of keys, `*` for every key:

    {"op": "rename", "in": "users/*/address", "key": "province", "to": "state"}
    {"op": "set", "in": "reservations/Z7GOZK", "key": "destination", "value": "IAH"}
    {"op": "name", "in": "users/*", "key": "user_id"}       # each gets its own key as the first field

A folder may hold `variants.json`: `{"NAME": [change, …], …}`, the first being the default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness.environments.overlay import Database, copy_of
from harness.records.environment import EnvironmentFault

Change = Mapping[str, Any]


def apply(base: Database, changes: Sequence[Change], *, place: str = "") -> Database:
    """The database with the changes made, in order; the given one stays as it is, and unchanged records are shared.

    Raises EnvironmentFault for a change that is not understood or whose object is not there.
    """
    database = {table: dict(records) for table, records in base.items()}
    copied: set[tuple[str, str]] = set()
    for number, change in enumerate(changes):
        try:
            edit = _EDITS[change["op"]]
            table, _, rest = change["in"].partition("/")
            record_key, _, inner = rest.partition("/")
            for key in [*database[table]] if record_key == "*" else [record_key]:
                if (table, key) not in copied:
                    database[table][key] = copy_of(database[table][key])
                    copied.add((table, key))
                for name, target in _targets(database[table][key], key, inner):
                    edited = edit(target, name, change)
                    target.clear()
                    target.update(edited)
        except (KeyError, AttributeError, TypeError) as error:
            raise EnvironmentFault(
                f"change {number} ({dict(change)}) cannot be made: {error!r}",
                place=place,
                remedy="see harness/environments/variants.py for what a change may say",
            ) from error
    return database


def _targets(record: Any, name: str, path: str) -> list[tuple[str, dict[str, Any]]]:
    """The objects below a record that a path means, each with the key it stands under."""
    found = [(name, record)]
    for part in filter(None, path.split("/")):
        found = [(key, target[key]) for _, target in found for key in ([*target] if part == "*" else [part])]
    return found


def _rename(target: dict[str, Any], _name: str, change: Change) -> dict[str, Any]:
    target[change["key"]]  # a KeyError, when it is not there
    return {(change["to"] if key == change["key"] else key): value for key, value in target.items()}


def _set(target: dict[str, Any], _name: str, change: Change) -> dict[str, Any]:
    return {**target, change["key"]: copy_of(change["value"])}


def _name(target: dict[str, Any], name: str, change: Change) -> dict[str, Any]:
    return {change["key"]: name, **{key: value for key, value in target.items() if key != change["key"]}}


_EDITS: dict[str, Callable[[dict[str, Any], str, Change], dict[str, Any]]] = {
    "rename": _rename,
    "set": _set,
    "name": _name,
}
