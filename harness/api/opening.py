"""Opens a store to read it. Apart from the rest of :mod:`harness.api.stores`: a look at audits needs no arrays."""

from __future__ import annotations

from pathlib import Path

from harness.api.request import DEFAULT_STORE
from harness.records.errors import StoreError
from harness.store.sqlite import SqliteStore


def has_store(folder: str | Path) -> bool:
    """Whether there is a store in a folder."""
    return (Path(folder) / "evidence.db").exists()


def open_store(folder: str | Path = DEFAULT_STORE, *, create: bool = False) -> SqliteStore:
    """The store in a folder, to read; made if it is missing only with `create`.

    The folder is the argument (by default `.assay` in the working directory): the variable ASSAY_STORE is read by the
    command alone. Raises StoreError, also when there is no store and none is to be made.
    """
    if not create and not has_store(folder):
        raise StoreError(
            "there is no evidence store here",
            place=str(folder),
            remedy="give the folder of one (--store or ASSAY_STORE; from Python, the argument), or run something first",
        )
    return SqliteStore(folder)
