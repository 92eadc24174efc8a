"""The flat export: one row per agent-task pair and attempt, readable by anything that reads CSV.

`outcome` is the word; what is unknown is blank, never 0 (CASES T10, F01). `trial` is the number of the
repeat, from 1, so that (agent, date, trial) names a run as in public outcome matrices; `trial_id` leads to the
evidence. `date` is the day on which the run was created: one date per run, also over midnight.
"""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from harness.protocols import EvidenceStore
from harness.records.grade import TrialResult
from harness.records.run import RunConfig, TrialRow
from harness.records.vocabulary import StopReason
from harness.store.blobs import sync_folder
from harness.store.faults import explained

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class FlatRow:
    """One attempt. None: unknown, or not there yet."""

    agent: str
    scaffold: str
    model: str | None
    task: str
    suite_version: str
    trial: int
    attempt: int
    outcome: str | None  # passed, failed, ungraded, invalid; None while the trial is not done
    reason: str | None
    stop: str | None
    date: str
    cost_usd: float | None
    tokens: int | None
    steps: int | None
    seconds: float | None
    run: str
    trial_id: str


COLUMNS = tuple(field.name for field in fields(FlatRow))


def flat_rows(store: EvidenceStore, run: str) -> list[FlatRow]:
    """The rows of a run, by slot and attempt. Raises StoreError."""
    row = store.run(run)
    date = "" if row.config.extra.get("undated") else row.created[:10]  # of an archive that does not say when
    return [_flat(row.config, date, trial) for trial in store.trials(row.run)]


def agent_name(config: RunConfig) -> str:
    """The name under which a run's outcomes are counted: the given one, or scaffold/model, or the scaffold."""
    if config.agent:
        return config.agent
    scaffold = config.scaffold or config.solver.name
    return f"{scaffold}/{config.model}" if config.model else scaffold


def write_csv(rows: Iterable[FlatRow], file: str | Path) -> None:
    """Write `file` (gzipped when it ends in .gz) whole or not at all. Raises StoreError."""
    path = Path(file)
    data = csv_text(rows).encode("utf-8", "surrogatepass")
    if path.suffix == ".gz":
        data = gzip.compress(data, mtime=0)
    temporary = path.with_name(f".{path.name[:200]}.{os.getpid()}.tmp")
    with explained(path):
        try:
            with temporary.open("wb") as target:
                target.write(data)
                target.flush()
                os.fsync(target.fileno())
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        sync_folder(path.parent)


def csv_text(rows: Iterable[FlatRow]) -> str:
    """The rows as CSV with a header, lines ended by a line feed."""
    lines = _Lines()
    # The writer quotes what is in its line terminator: with CRLF it protects a bare carriage return as well.
    writer = csv.writer(lines, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for row in rows:
        writer.writerow(["" if value is None else value for value in astuple(row)])
    return "".join(lines.written)


class _Lines:
    """Takes rows from a csv writer and ends them with a line feed alone."""

    def __init__(self) -> None:
        self.written: list[str] = []

    def write(self, row: str) -> None:
        self.written.append(row.removesuffix("\r\n") + "\n")


def flat_frame(rows: Iterable[FlatRow]) -> pd.DataFrame:
    """The rows as a DataFrame; unknown is missing (<NA>), also in whole-number columns."""
    import pandas as pd  # half a second that only those who ask for a frame should wait

    frame = pd.DataFrame([astuple(row) for row in rows], columns=list(COLUMNS))
    whole = dict.fromkeys(("trial", "attempt", "tokens", "steps"), "Int64")
    return frame.astype({**whole, "cost_usd": "Float64", "seconds": "Float64"})


def _flat(config: RunConfig, date: str, trial: TrialRow) -> FlatRow:
    result = trial.result
    return FlatRow(
        agent=agent_name(config),
        scaffold=config.scaffold or config.solver.name,
        model=config.model,
        task=trial.task,
        suite_version=config.suite_version,
        trial=trial.repeat + 1,
        attempt=trial.attempt,
        outcome=result.outcome.value if result else None,
        reason=result.reason.value if result and result.reason else None,
        stop=result.stop.value if result and result.stop is not StopReason.UNKNOWN else None,
        date=date,
        cost_usd=result.cost_usd if result else None,
        tokens=_tokens(result),
        steps=result.steps if result else None,
        seconds=result.seconds if result else None,
        run=trial.run,
        trial_id=trial.trial,
    )


def _tokens(result: TrialResult | None) -> int | None:
    """All tokens, where every call reported its usage; a lower bound is not a count."""
    if result is not None and result.usage is None:
        return result.tokens
    if result is None or result.usage is None or not result.usage.known or result.calls_without_usage:
        return None
    return result.usage.total
