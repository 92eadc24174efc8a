"""Flat tables: one row per agent and task, as CSV (gzipped or not) or Parquet.

Rows of `assay export` come back under the ids of their runs and trials, so that exporting them again gives the same
file. Other tables need `agent`, `task` and `outcome` (a word, 0 or 1); a run is one agent, date and `trial`, as in
public outcome matrices. A blank is unknown.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from harness.importers.container import Archive
from harness.importers.json_stream import Reader
from harness.importers.parquet import parquet_columns, parquet_rows
from harness.importers.shape import only_file, shape
from harness.records.archive import (
    ArchiveEpisode,
    ArchiveItem,
    ArchiveRun,
    ArchiveTask,
    Basis,
    Claim,
    Finding,
    ImportOptions,
    Recognition,
    SourceRef,
)
from harness.records.base import sha256_of
from harness.records.vocabulary import Outcome, Reason, StopReason

NEEDED = ("agent", "task", "outcome")
MISSING = ("what was done and said", "evidence of grading", "token buckets")
_OWN = re.compile(r"(?P<run>.+)\.(?P<slot>[0-9]{4,})\.(?P<attempt>[0-9]+)")
_OUTCOMES = {"1": Outcome.PASSED, "1.0": Outcome.PASSED, "0": Outcome.FAILED, "0.0": Outcome.FAILED}
_OUTCOMES |= {outcome.value: outcome for outcome in Outcome}
_DIALECT = "the columns are those of `assay export`"


@dataclass(frozen=True)
class FlatImporter:
    """An :class:`harness.protocols.Importer` for flat tables."""

    name: str = "flat"

    def recognises(self, archive: Archive) -> Recognition | None:
        name = only_file(archive)
        if name is None:
            return None
        found = shape(archive, name)
        if found.kind == "parquet":
            columns: list[str] = parquet_columns(archive, name)
        elif found.kind == "text" and not found.problem:
            head = archive.head(name, 1 << 16)[:4096].decode("utf-8", "replace").lstrip("\ufeff")
            columns = next(csv.reader([head.partition("\n")[0]]), [])
        else:
            return None
        if not all(column in columns for column in NEEDED):
            return None
        table = "Parquet" if found.kind == "parquet" else "CSV"
        return Recognition(self.name, f"a flat {table} with {', '.join(columns[:5])}, …", 2, MISSING)

    def read(self, archive: Archive, options: ImportOptions) -> Iterator[ArchiveItem]:
        for name in archive.names:
            rows = parquet_rows(archive, name) if shape(archive, name).kind == "parquet" else csv_rows(archive, name)
            yield from _Table().items(rows)


@dataclass(frozen=True)
class Row:
    """A row with the line it stands on and its bytes; `problem`: it is no row of this table."""

    source: SourceRef
    fields: Mapping[str, str]
    problem: str = ""


def csv_rows(archive: Archive, name: str) -> Iterator[Row]:
    """The rows of a CSV file, read line by line."""
    with archive.open(name) as reader:
        lines = _Lines(reader)
        table = csv.reader(lines)
        header: list[str] = []
        while True:
            start = lines.offset
            lines.taken = []
            try:
                fields = next(table, None)
            except (csv.Error, UnicodeDecodeError) as error:
                yield Row(_source(name, start, lines.taken), {}, f"not CSV: {error}")
                return
            if fields is None:
                return
            source = _source(name, start, lines.taken)
            if not header:
                header = [field.strip() for field in fields]
            elif fields and len(fields) != len(header):
                yield Row(source, {}, f"{len(fields)} fields where the header has {len(header)}")
            elif fields:
                yield Row(source, dict(zip(header, fields, strict=True)))


def _source(name: str, offset: int, taken: list[bytes]) -> SourceRef:
    data = b"".join(taken)
    return SourceRef(file=name, offset=offset, length=len(data), sha256=sha256_of(data))


class _Lines:
    """Lines of text out of a stream of bytes; `taken` are the bytes given since it was last emptied."""

    def __init__(self, reader: Reader) -> None:
        self._reader, self._rest, self._ended = reader, b"", False
        self.offset, self.taken = 0, list[bytes]()

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        end = self._rest.find(b"\n") + 1
        while not end and not self._ended:
            data = self._reader.read(1 << 20)
            self._ended = not data
            end = (data.find(b"\n") + 1 + len(self._rest)) if b"\n" in data else 0
            self._rest += data
        end = end or len(self._rest)
        if not end:
            raise StopIteration
        line, self._rest = self._rest[:end], self._rest[end:]
        first = self.offset == 0
        self.offset += len(line)
        self.taken.append(line)
        return (line.removeprefix(codecs.BOM_UTF8) if first else line).decode()


class _Table:
    """Rows into runs and episodes."""

    def __init__(self) -> None:
        self._runs: dict[str, ArchiveRun] = {}
        self._slots: dict[str, dict[tuple[str, str], int]] = {}

    def items(self, rows: Iterable[Row]) -> Iterator[ArchiveItem]:
        for row in rows:
            problem = row.problem or _problem(row.fields)
            if problem:
                place = f"{row.source.file}, byte {row.source.offset}"
                yield Finding(rule="archive.unreadable", place=place, what=problem, remedy=_DIALECT, unread=True)
                continue
            run = self._run(row.fields)
            if run.key not in self._runs:
                self._runs[run.key] = run
                yield run
            yield _episode(row, run)

    @staticmethod
    def _run(fields: Mapping[str, str]) -> ArchiveRun:
        own = _own(fields)
        date, trial = fields.get("date", ""), fields.get("trial", "")
        key = (
            fields["run"] if own else " ".join(part for part in (fields["agent"], date, fields.get("run", "")) if part)
        )
        if not own and not fields.get("run") and trial:
            key += f" #{trial}"
        return ArchiveRun(
            key=key,
            suite="flat",
            agent=fields["agent"],
            scaffold=fields.get("scaffold") or None,
            model=fields.get("model") or None,
            created=date,
            suite_version=fields.get("suite_version", ""),
            run=fields["run"] if own else None,
            missing=MISSING,
        )


def _own(fields: Mapping[str, str]) -> re.Match[str] | None:
    """Whether a row is of our own export: its trial's id is made of its run's."""
    match = _OWN.fullmatch(fields.get("trial_id", ""))
    return match if match and match["run"] == fields.get("run") else None


def _problem(fields: Mapping[str, str]) -> str:
    if not fields.get("agent") or not fields.get("task"):
        return "a row needs agent and task"
    word = fields.get("outcome", "")
    if word and word not in _OUTCOMES:
        return f"outcome {word!r} is neither {', '.join(outcome.value for outcome in Outcome)}, 0 nor 1"
    for name in ("reason", "stop"):
        known: Any = Reason if name == "reason" else StopReason
        if fields.get(name) and fields[name] not in {member.value for member in known}:
            return f"{name} {fields[name]!r} is not a word of this version"
    for name in ("cost_usd", "tokens", "steps", "seconds", "trial", "attempt"):
        if fields.get(name) and _number(fields[name]) is None:
            return f"{name} {fields[name]!r} is not a finite number"
    if any((_number(fields.get(name, "")) or 1) < 1 for name in ("trial", "attempt")):
        return "trial and attempt count from 1"
    return ""


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if value - value == 0 else None


def _whole(fields: Mapping[str, str], name: str) -> int | None:
    value = _number(fields.get(name, ""))
    return None if value is None else int(value)


def _episode(row: Row, run: ArchiveRun) -> ArchiveEpisode:
    fields, own = row.fields, _own(row.fields)
    word = fields.get("outcome", "")
    outcome = _OUTCOMES.get(word, Outcome.UNGRADED)
    zero_filled = fields.get("note") == Outcome.UNGRADED.value  # boards count these as failed, and so does the table
    if zero_filled:
        outcome = Outcome.UNGRADED
    reason = Reason(fields["reason"]) if fields.get("reason") else None
    if outcome is Outcome.UNGRADED and reason is None and not own:
        reason = Reason.VERDICT_MISSING
    evidence = "note is 'ungraded'" if zero_filled else f"outcome is {word!r}"
    graded = Claim(value="yes" if outcome.graded else "no", basis=Basis.STATED, evidence=evidence)
    # In public matrices the trial names the run; in ours, and where there is a run, it counts the repeats in it.
    repeat = (_whole(fields, "trial") or 1) - 1 if own or fields.get("run") else 0
    return ArchiveEpisode(
        run=run.key,
        task=ArchiveTask(fields["task"]),
        source=row.source,
        repeat=repeat,
        attempt=_whole(fields, "attempt") or 1,
        slot=int(own["slot"]) if own else None,
        outcome=outcome,
        reason=reason,
        detail="" if word and not zero_filled else evidence,
        stop=StopReason(fields["stop"]) if fields.get("stop") else StopReason.UNKNOWN,
        grading=graded,
        termination=Claim(value=fields["stop"], basis=Basis.STATED, evidence="stop") if fields.get("stop") else Claim(),
        tokens=_whole(fields, "tokens"),
        cost_usd=_number(fields.get("cost_usd", "")),
        step_count=_whole(fields, "steps"),
        seconds=_number(fields.get("seconds", "")),
    )
