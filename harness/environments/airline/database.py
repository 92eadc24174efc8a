"""The airline's database in a folder of the user's, and the versions it has had.

The data of tau-bench is recognised by the digest of its content; the changes that its later versions brought are
described below. Any other folder with a `db.json` of the same shape serves too, with versions of its own
(`variants.json`) or none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from harness.environments.digests import TUPLES, DatabaseDigest
from harness.environments.folder import find, read_database, read_json
from harness.environments.overlay import Database
from harness.environments.variants import Change, apply
from harness.records.environment import EnvironmentFault

TABLES = ("flights", "reservations", "users")
_FILES, _VARIANTS = ("db.json.gz", "db.json"), "variants.json"

# The state of the published database under tau-bench's own rule, until 2025-01-15.
TAU_BENCH_STATE = "4a02dcbc0e3ace4d398988d60a33e73afad4d201deb426303159f086cadad20f"

_STATE: Change = {"op": "rename", "in": "users/*/address", "key": "province", "to": "state"}
TAU_VARIANTS: Mapping[str, tuple[Change, ...]] = {
    "A": (),  # tau-bench 6f4b718 (2024-06-06) to the parent of 404f33e
    "B": (_STATE,),  # tau-bench 404f33e (2025-01-16) and later
    "C": (  # tau2-bench, all versions, as far as recorded answers show it
        _STATE,
        {"op": "name", "in": "users/*", "key": "user_id"},
        {"op": "set", "in": "reservations/Z7GOZK", "key": "destination", "value": "IAH"},
        {"op": "set", "in": "reservations/Z7GOZK", "key": "flight_type", "value": "round_trip"},
        {
            "op": "set",
            "in": "flights/HAT018/dates",
            "key": "2024-05-11",
            # The estimated times are not known; no tool prints them.
            "value": {"status": "delayed", "estimated_departure_time_est": None, "estimated_arrival_time_est": None},
        },
    ),
}


@dataclass
class AirlineData:
    """The versions of one database file, each made when it is first asked for, then shared by all sessions.

    `declared` is what `variants.json` beside it says, None where there is none.
    """

    path: Path
    original: Database
    declared: Any = None
    _versions: dict[str, DataVersion] = field(default_factory=dict)

    @cached_property
    def variants(self) -> Mapping[str, tuple[Change, ...]]:
        """Changes by version. Raises EnvironmentFault when `variants.json` cannot be used."""
        if self.declared is not None:
            return _declared(self.declared, self.path.parent / _VARIANTS)
        unchanged = DataVersion(self.original)
        if unchanged.digest.untouched != TAU_BENCH_STATE:
            return {"A": ()}
        self._versions["A"] = unchanged
        return TAU_VARIANTS

    def version(self, name: str) -> DataVersion:
        """The database of that version. Raises EnvironmentFault when its changes cannot be made."""
        if name not in self._versions:
            self._versions[name] = DataVersion(apply(self.original, self.variants[name], place=str(self.path)))
        return self._versions[name]


class DataVersion:
    """One version of the database with what is derived from it: digests, and flights by their ends."""

    def __init__(self, tables: Database) -> None:
        self.tables = tables
        self._from: dict[Any, list[str]] = {}
        for number, flight in tables["flights"].items():
            self._from.setdefault(flight["origin"], []).append(number)

    @cached_property
    def digest(self) -> DatabaseDigest:
        """Under tau-bench's rule."""
        return DatabaseDigest(self.tables, TUPLES)

    def flights_from(self, origin: object) -> list[str]:
        """Numbers of the flights that leave there, in the order of the database: no tool adds or moves a flight."""
        return self._from.get(origin, []) if isinstance(origin, str) else []


_open: dict[Path, AirlineData] = {}


def airline_data(folder: Path) -> AirlineData:
    """The database in a folder, or in its `v1` folder as the tau-bench data has it; the same object each time.

    Raises EnvironmentFault when there is none or it has another shape.
    """
    path = find(folder, _FILES, below=("v1",)).resolve()
    database = read_database(path, TABLES)
    beside = path.parent / _VARIANTS
    declared = read_json(beside) if beside.is_file() else None
    known = _open.get(path)
    if known is None or known.original is not database or known.declared is not declared:  # new, or changed since
        known = _open[path] = AirlineData(path, database, declared)
    return known


def _declared(variants: Any, path: Path) -> Mapping[str, tuple[Change, ...]]:
    if (
        not isinstance(variants, dict)
        or not variants
        or not all(isinstance(value, list) for value in variants.values())
    ):
        raise EnvironmentFault("is not an object of lists of changes", place=str(path), remedy='write {"A": [], …}')
    return {name: tuple(changes) for name, changes in variants.items()}
