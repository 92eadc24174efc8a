"""Finds and reads an environment's data in a folder the user names. Nothing of it is part of this project.

A file is parsed once per process as long as it stays the same; sessions share the parsed tables (`overlay.py`).
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from harness.environments.overlay import Database
from harness.records.environment import EnvironmentFault

VARIABLE = "ASSAY_ENVIRONMENT_DATA"
_REMEDY = f"name the folder with --environment-data PATH or {VARIABLE}"


def needed(folder: Path | None, what: str) -> Path:
    """The folder of an environment that cannot do without. Raises EnvironmentFault when none is named."""
    if folder is None:
        raise EnvironmentFault("its data is not part of Assay, and no folder is named", place=what, remedy=_REMEDY)
    return Path(folder)


def find(folder: Path, names: Sequence[str], *, below: Sequence[str] = ()) -> Path:
    """The first of the files `names` in the folder, or in one of its folders `below`.

    Raises EnvironmentFault when there is none.
    """
    for place in (folder, *(folder / part for part in below)):
        for name in names:
            if (place / name).is_file():
                return place / name
    looked = ", ".join((*names, *(f"{part}/{names[0]}" for part in below)))
    raise EnvironmentFault(f"there is none of {looked}", place=str(folder), remedy=_REMEDY)


def read_json(path: Path) -> Any:
    """What a JSON file says, gzipped or not; the same object as long as the file does not change: do not write to it.

    Raises EnvironmentFault when it cannot be read.
    """
    try:
        stat = path.stat()
    except OSError as error:
        raise EnvironmentFault(f"cannot be read: {error.strerror}", place=str(path), remedy=_REMEDY) from error
    return _parsed(path.resolve(), stat.st_mtime_ns, stat.st_size)


def read_database(path: Path, tables: Sequence[str]) -> Database:
    """A database file with just these tables, each an object of records. Raises EnvironmentFault."""
    database = read_json(path)
    if not isinstance(database, dict) or set(database) != set(tables):
        raise EnvironmentFault(f"is not an object of {', '.join(tables)}", place=str(path), remedy=_REMEDY)
    for table, records in database.items():
        if not isinstance(records, dict):
            raise EnvironmentFault(f"{table} is not an object of records", place=str(path), remedy=_REMEDY)
    return database


@lru_cache(maxsize=8)
def _parsed(path: Path, _mtime_ns: int, _size_bytes: int) -> Any:
    try:
        data = path.read_bytes()
        return json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
    except (OSError, EOFError, ValueError) as error:  # gzip's own error is an OSError; a cut file is an EOFError
        raise EnvironmentFault(f"cannot be read: {error}", place=str(path), remedy="get the file again") from error
