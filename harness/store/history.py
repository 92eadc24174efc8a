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
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from harness.records.errors import ConfigError

Counts = NDArray[np.int64]
Amounts = NDArray[np.float64]
_OUTCOMES: dict[str, bool | None] = {
    **{"1": True, "1.0": True, "passed": True},
    **{"0": False, "0.0": False, "failed": False},
    **{"ungraded": None, "invalid": None, "": None},
}
_AMOUNTS = ("cost_usd", "seconds")
_NEEDED = ("agent", "task", "outcome")
_MOST_NAMED = 20


@dataclass(frozen=True, eq=False)
class History:
    """Outcomes of R runs on N tasks: `trials[r, i]` graded trials, of which `passes[r, i]` passed; both (R, N).

    `run_ids` are distinct; `agents` and `dates` ("" where unknown) belong to the runs. `suite_versions` are all
    that the rows named: more than one means that equal task names may be different tasks. `cost_usd` and `seconds`
    (R, N) are what the attempt that counts took, NaN where unknown; None where the files know none at all.
    """

    run_ids: tuple[str, ...]
    agents: tuple[str, ...]
    dates: tuple[str, ...]
    tasks: tuple[str, ...]
    passes: Counts
    trials: Counts
    suite_versions: tuple[str, ...] = ()
    cost_usd: Amounts | None = None
    seconds: Amounts | None = None

    def by_agent(self) -> History:
        """The same counts with one row per agent: its runs added up, dated by the latest; without amounts."""
        names = tuple(dict.fromkeys(self.agents))
        row_of = {name: number for number, name in enumerate(names)}
        rows = np.array([row_of[agent] for agent in self.agents], dtype=np.int64)
        passes, trials = (np.zeros((len(names), len(self.tasks)), dtype=np.int64) for _ in range(2))
        np.add.at(passes, rows, self.passes)
        np.add.at(trials, rows, self.trials)
        dates = tuple(max(d for a, d in zip(self.agents, self.dates, strict=True) if a == name) for name in names)
        return History(names, names, dates, self.tasks, passes, trials, self.suite_versions)

    def only(self, rows: Sequence[int]) -> History:
        """The runs at these positions, in this order; every task stays."""
        at = list(rows)
        runs, agents, dates = ([names[row] for row in at] for names in (self.run_ids, self.agents, self.dates))
        return replace(
            self,
            run_ids=tuple(runs),
            agents=tuple(agents),
            dates=tuple(dates),
            passes=self.passes[at],
            trials=self.trials[at],
            cost_usd=None if self.cost_usd is None else self.cost_usd[at],
            seconds=None if self.seconds is None else self.seconds[at],
        )

    @property
    def coverage(self) -> float:
        """The share of cells with at least one graded trial."""
        return float((self.trials > 0).mean()) if self.trials.size else 0.0


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
        # (run, task) -> what each attempt said, where it stands, and the amounts known of it
        self.cells: dict[tuple[int, int], dict[int, tuple[bool | None, str, tuple[float | None, ...]]]] = {}

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
        attempt_text = fields.get("attempt", "")
        if attempt_text and not (attempt_text.isascii() and attempt_text.isdigit()):
            self.fault(place, f"attempt {attempt_text!r} is not a whole number")
            return
        passed = None if fields.get("note", "").strip().lower() == "ungraded" else _OUTCOMES[said]
        key = (agent, fields.get("date", ""), fields.get("trial", ""), fields.get("run", ""))
        cell = (self.runs.setdefault(key, len(self.runs)), self.tasks.setdefault(task, len(self.tasks)))
        attempts = self.cells.setdefault(cell, {})
        attempt = int(attempt_text or 1)
        if attempt in attempts:
            self.fault(place, f"agent {agent!r}, task {task!r} stands already in {attempts[attempt][1]}")
            return
        attempts[attempt] = (passed, place, tuple(self._amount(place, name, fields) for name in _AMOUNTS))
        if fields.get("suite_version"):
            self.suite_versions.add(fields["suite_version"])

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
        passes, trials = (np.zeros((len(self.runs), len(self.tasks)), dtype=np.int64) for _ in range(2))
        counting: dict[tuple[int, int], tuple[float | None, ...]] = {}
        for cell, attempts in self.cells.items():
            graded = [attempts[number] for number in sorted(attempts) if attempts[number][0] is not None]
            if graded:
                passed, _, counting[cell] = graded[-1]
                trials[cell] = 1
                passes[cell] = int(passed is True)
        cost_usd, seconds = (_table(trials.shape, {c: known[at] for c, known in counting.items()}) for at in range(2))
        keys = tuple(self.runs)
        return History(
            run_ids=_names(keys),
            agents=tuple(key[0] for key in keys),
            dates=tuple(key[1] for key in keys),
            tasks=tuple(self.tasks),
            passes=passes,
            trials=trials,
            suite_versions=tuple(sorted(self.suite_versions)),
            cost_usd=cost_usd,
            seconds=seconds,
        )


def _table(shape: tuple[int, int], amounts: dict[tuple[int, int], float | None]) -> Amounts | None:
    """The amounts in their cells, NaN elsewhere; None if none is known."""
    table: Amounts | None = None
    for cell, amount in amounts.items():
        if amount is not None:
            table = np.full(shape, np.nan) if table is None else table
            table[cell] = amount
    return table


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
