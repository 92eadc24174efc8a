"""Reading outcomes back: our own flat export, and public agent-by-task matrices with the same columns.

A run is one (agent, date, trial), and the `run` column where there is one. Ungraded, invalid and blank
outcomes, and rows whose `note` says `ungraded`, are missing: zero trials, never a zero score (CASES S09). Of
several attempts at one cell the last that was graded counts; the same attempt twice is refused, because nobody
can say which of the two is true (CASES A09).
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from operator import itemgetter
from pathlib import Path

import numpy as np

from harness.records.errors import ConfigError
from harness.store.history_table import Cells
from harness.store.history_table import History as History

_OUTCOMES: dict[str, bool | None] = {
    **{"1": True, "1.0": True, "passed": True},
    **{"0": False, "0.0": False, "failed": False},
    **{"ungraded": None, "invalid": None, "": None},
}
_AMOUNTS = ("cost_usd", "seconds")
_NEEDED = ("agent", "task", "outcome")
_MOST_NAMED = 20
_SHIFT = 32
# number, outcome, file, line, dollars, seconds
_Attempt = tuple[int, bool | None, int, int, float | None, float | None]


def read_history(*files: str | Path) -> History:
    """Read one or more CSV files (gzipped or not). Raises ConfigError with file and line, all problems at once."""
    table = _Table()
    for file in files:
        path = Path(file)
        for line, fields in _rows(path, table):
            table.add(path, line, fields)
    table.raise_problems()
    if not table.cells:
        raise ConfigError("no outcomes", place=", ".join(str(file) for file in files), remedy="the file has no rows")
    return table.history()


class _Table:
    """Rows taken in one by one; problems are gathered."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.runs: dict[tuple[str, str, str, str], int] = {}
        self.tasks: dict[str, int] = {}
        self.suite_versions: set[str] = set()
        self.files: list[Path] = []
        # (run, task), as one number each -> its attempt, or a list of them: there are millions
        self.cells: dict[int, _Attempt | list[_Attempt]] = {}

    def fault(self, place: str, what: str) -> None:
        self.problems.append(f"{place}: {what}")
        if len(self.problems) >= _MOST_NAMED:
            self.raise_problems()

    def raise_problems(self) -> None:
        if self.problems:
            first, *others = self.problems
            place, _, what = first.partition(": ")
            more = "".join(f"\n  {other}" for other in others)
            raise ConfigError(f"{what}{more}", place=place)

    def add(self, path: Path, line: int, fields: dict[str, str]) -> None:
        place = f"{path}:{line}"
        agent, task, said = fields["agent"], fields["task"], fields["outcome"].strip().lower()
        if not agent or not task:
            self.fault(place, f"the {'agent' if not agent else 'task'} is blank")
            return
        if said not in _OUTCOMES:
            self.fault(
                place, f"outcome {fields['outcome']!r} is none of 0, 1, passed, failed, ungraded, invalid, blank"
            )
            return
        day = fields.get("date", "")
        if day and not _is_iso(day):
            self.fault(place, f"date {day!r} is not ISO, such as 2026-01-31")
            return
        attempt_text = fields.get("attempt", "")
        if attempt_text and not (attempt_text.isascii() and attempt_text.isdigit()):
            self.fault(place, f"attempt {attempt_text!r} is not a whole number")
            return
        passed = None if fields.get("note", "").strip().lower() == "ungraded" else _OUTCOMES[said]
        key = (agent, fields.get("date", ""), fields.get("trial", ""), fields.get("run", ""))
        run, item = self.runs.setdefault(key, len(self.runs)), self.tasks.setdefault(task, len(self.tasks))
        cost, seconds = (self._amount(place, name, fields) for name in _AMOUNTS)
        attempt = (int(attempt_text or 1), passed, self._file(path), line, cost, seconds)
        before = self.cells.setdefault((run << _SHIFT) + item, attempt)
        if before is not attempt:
            others = before if isinstance(before, list) else [before]
            same = next((other for other in others if other[0] == attempt[0]), None)
            if same is not None:
                first = f"{self.files[same[2]]}:{same[3]}"
                self.fault(place, f"agent {agent!r}, task {task!r} stands already in {first}")
                return
            self.cells[(run << _SHIFT) + item] = [*others, attempt]
        if fields.get("suite_version"):
            self.suite_versions.add(fields["suite_version"])

    def _file(self, path: Path) -> int:
        if not self.files or self.files[-1] != path:
            self.files.append(path)
        return len(self.files) - 1

    def _amount(self, place: str, name: str, fields: dict[str, str]) -> float | None:
        said = fields.get(name, "").strip()
        if not said:
            return None
        try:
            amount = float(said)
        except ValueError:
            amount = -1.0
        if not 0.0 <= amount < float("inf"):
            self.fault(place, f"{name} {said!r} is not a number of at least 0")
            return None
        return amount

    def history(self) -> History:
        keys = tuple(self.runs)
        return History(
            run_ids=_names(keys),
            agents=tuple(key[0] for key in keys),
            dates=tuple(key[1] for key in keys),
            tasks=tuple(self.tasks),
            cells=self._graded(),
            suite_versions=tuple(sorted(self.suite_versions)),
        )

    def _graded(self) -> Cells:
        """Of every cell the last attempt that has a grade."""
        place = np.zeros(len(self.cells), dtype=np.int64)
        passes = np.zeros(len(self.cells), dtype=np.int64)
        cost, seconds = (np.full(len(self.cells), np.nan) for _ in range(2))
        count = 0
        for cell, told in sorted(self.cells.items(), key=itemgetter(0)):
            attempts = sorted(told, key=itemgetter(0)) if isinstance(told, list) else [told]
            graded = [attempt for attempt in attempts if attempt[1] is not None]
            if graded:
                _, passed, _, _, spent, took = graded[-1]
                place[count], passes[count] = cell, passed is True
                cost[count] = np.nan if spent is None else spent
                seconds[count] = np.nan if took is None else took
                count += 1
        place = place[:count]
        return Cells(
            runs=place >> _SHIFT,
            items=place & ((1 << _SHIFT) - 1),
            passes=passes[:count],
            trials=np.ones(count, dtype=np.int64),
            cost_usd=cost[:count],
            seconds=seconds[:count],
        )


@lru_cache(maxsize=1024)
def _is_iso(text: str) -> bool:
    """Whether it is an ISO date or time, which runs are put in order by."""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _names(keys: Sequence[tuple[str, str, str, str]]) -> tuple[str, ...]:
    """A distinct readable name per run: as much of agent, date, trial and run as it takes."""
    agents = [key[0] for key in keys]
    if len(set(agents)) == len(agents):
        return tuple(agents)
    names = [" ".join(part for part in (k[0], k[1], f"#{k[2]}" if k[2] else "", k[3]) if part) for k in keys]
    return tuple(names) if len(set(names)) == len(names) else tuple(" | ".join(key) for key in keys)


def _rows(path: Path, table: _Table) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of a file as (line, fields); a row of the wrong length is a fault of the table."""
    reader = csv.reader(io.StringIO(_text(path), newline=""))
    try:
        header = [name.strip() for name in next(reader, [])]
        _check_header(path, header)
        line = reader.line_num + 1
        for row in reader:
            if row and len(row) != len(header):
                table.fault(f"{path}:{line}", f"{len(row)} fields where the header has {len(header)}")
            elif row:
                yield line, dict(zip(header, row, strict=True))
            line = reader.line_num + 1
    except csv.Error as error:
        raise ConfigError(f"not CSV: {error}", place=f"{path}:{reader.line_num}") from error


def _check_header(path: Path, header: list[str]) -> None:
    missing = [name for name in _NEEDED if name not in header]
    if missing:
        raise ConfigError(
            f"the header lacks {', '.join(missing)}",
            place=f"{path}:1",
            remedy="the columns are those of `assay export`",
        )
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise ConfigError(f"the header has {', '.join(twice)} twice", place=f"{path}:1")


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
    except (OSError, EOFError) as error:
        raise ConfigError(f"cannot be read: {error}", place=str(path)) from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError("not UTF-8", place=f"{path}:{line}", remedy="save the file as UTF-8") from error
