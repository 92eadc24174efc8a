"""Parquet tables as rows of text. pyarrow reads them (extra `archives`): forty megabytes that CSV does not need."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from harness.importers.container import Archive
from harness.records.archive import ArchiveError, SourceRef
from harness.records.base import canonical_json, sha256_of

if TYPE_CHECKING:
    from harness.importers.flat import Row

_ROWS = 4096


def parquet_columns(archive: Archive, name: str) -> list[str]:
    """The columns of a table. Raises ArchiveError."""
    return [str(column) for column in _table(archive, name).schema_arrow.names]


def parquet_rows(archive: Archive, name: str) -> Iterator[Row]:
    """The rows of a table, in batches. `offset` in a row's source is its number: Parquet has no bytes of one row."""
    from harness.importers.flat import Row

    archive.digest(name)
    number = 0
    for batch in _table(archive, name).iter_batches(batch_size=_ROWS):
        for values in batch.to_pylist():
            fields = {str(key): "" if value is None else _text(value) for key, value in values.items()}
            data = canonical_json(fields)
            yield Row(SourceRef(file=name, offset=number, length=len(data), sha256=sha256_of(data)), fields)
            number += 1


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    return str(value)


def _table(archive: Archive, name: str) -> Any:
    try:
        from pyarrow import ArrowInvalid, parquet
    except ImportError as error:
        raise ArchiveError(
            "a Parquet table", place=archive.place(name), remedy="install pyarrow: pip install 'assay[archives]'"
        ) from error
    if archive.is_zip:
        raise ArchiveError("a Parquet table inside a ZIP", place=archive.place(name), remedy="unpack it")
    try:
        return parquet.ParquetFile(archive.path / name if archive.is_folder else archive.path)
    except (ArrowInvalid, OSError) as error:
        raise ArchiveError(f"not readable Parquet: {error}", place=archive.place(name)) from error
