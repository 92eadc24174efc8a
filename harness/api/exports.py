"""Writing a run for others: flat CSV or Parquet, ATIF trajectories, or JSON lines that hold all of it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path

from harness.api.export_atif import trajectory
from harness.api.export_lines import export_lines
from harness.api.regrades_writing import correction_lines, corrections
from harness.records.errors import ConfigError
from harness.store.blobs import sync_folder
from harness.store.faults import explained
from harness.store.flat import flat_frame, flat_rows, write_csv
from harness.store.sqlite import SqliteStore

CORRECTIONS = "corrections.jsonl"


class ExportFormat(StrEnum):
    """What a run can be written as."""

    FLAT = "flat"  # one row per attempt, CSV
    PARQUET = "parquet"  # the same table
    ATIF = "atif"  # a folder of trajectories
    JSONL = "jsonl"  # everything, to be imported again


def export_run(store: SqliteStore, run: str, to: ExportFormat, out: Path) -> int:
    """Write a run to the file or folder `out`, whole or not at all; returns how many rows, trials or lines.

    A run that was graded again has its corrections beside it: `corrections.jsonl` in a folder, `OUT.corrections.jsonl`
    beside a file. Raises StoreError, ConfigError.
    """
    count = _write_run(store, run, to, out)
    found = corrections(store, run)
    file = corrections_file(to, out)
    if found:
        write_pieces(file, correction_lines(found))
    else:
        with explained(file):
            file.unlink(missing_ok=True)  # of what stood here before: it would be taken for this run's
    return count


def corrections_file(to: ExportFormat, out: Path) -> Path:
    """Where the corrections of a run that is exported to `out` stand."""
    return out / CORRECTIONS if to is ExportFormat.ATIF else out.with_name(f"{out.name}.{CORRECTIONS}")


def _write_run(store: SqliteStore, run: str, to: ExportFormat, out: Path) -> int:
    row = store.run(run)
    if to is ExportFormat.FLAT:
        rows = flat_rows(store, row.run)
        write_csv(rows, out)
        return len(rows)
    if to is ExportFormat.PARQUET:
        return _write_parquet(store, row.run, out)
    if to is ExportFormat.JSONL:
        return write_pieces(out, export_lines(store, row.run))
    trials = store.trials(row.run)
    with explained(out):
        out.mkdir(parents=True, exist_ok=True)
    for trial in trials:
        text = json.dumps(trajectory(row, trial, store), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        write_pieces(out / f"{trial.trial}.trajectory.json", [text.encode("utf-8", "surrogatepass")])
    return len(trials)


def _write_parquet(store: SqliteStore, run: str, out: Path) -> int:
    try:
        import pyarrow  # noqa: F401  # pandas writes through it
    except ImportError as error:
        raise ConfigError(
            "Parquet needs pyarrow", place="--to parquet", remedy="pip install 'assay[archives]', or use --to flat"
        ) from error
    rows = flat_rows(store, run)
    temporary = out.with_name(f".{out.name[:200]}.{os.getpid()}.tmp")
    with explained(out):
        try:
            flat_frame(rows).to_parquet(temporary, index=False)
            os.replace(temporary, out)
        finally:
            temporary.unlink(missing_ok=True)
        sync_folder(out.parent)
    return len(rows)


def write_pieces(out: Path, pieces: Iterable[bytes]) -> int:
    """Write a file from its pieces, whole or not at all; returns how many they were. Raises StoreError."""
    temporary, count = out.with_name(f".{out.name[:200]}.{os.getpid()}.tmp"), 0
    with explained(out):
        try:
            with temporary.open("wb") as target:
                for piece in pieces:
                    target.write(piece)
                    count += 1
                target.flush()
                os.fsync(target.fileno())
            os.replace(temporary, out)
        finally:
            temporary.unlink(missing_ok=True)
        sync_folder(out.parent)
    return count
