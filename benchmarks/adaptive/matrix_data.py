"""The outcome matrices and their nested protocols as folds. Data below $ASSAY_DATA, by default ../shared/data."""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.adaptive.folds import Fold, rows_of
from harness.adaptive.keys import seeded_keys
from harness.adaptive.responses import Responses

DATA = Path(os.environ.get("ASSAY_DATA", Path(__file__).resolve().parents[2] / ".." / "shared" / "data")) / "matrices"
BFCL_DATES = ("2024-07-25", "2024-08-11")  # the two that are independent enough, see the data's README
BFCL_FOLDS = 10
LEAST_HISTORY, COLD_START = 10, 5  # runs before the first fold: what SOURCES S4 calls a cold start ends with 5 to 10


@dataclass(frozen=True, eq=False)
class Matrix:
    """A complete history; `agents` (R,) are the units that must be held out whole."""

    responses: Responses
    agents: tuple[str, ...]


@dataclass(frozen=True)
class Protocol:
    """A named way to cut a matrix, with the numbers of tasks to look at."""

    name: str
    about: str
    file: str
    checkpoints: tuple[int, ...]
    matrix: Callable[[Path], Matrix]
    folds: Callable[[Matrix], Iterator[Fold]]


def read_matrix(path: Path, unit: str, dates: Sequence[str] = ()) -> Matrix:
    """Runs are (agent, date, trial); `unit` is the column held out together; `dates` keeps only these."""
    cells: list[tuple[str, str, bool]] = []
    units: dict[str, str] = {}
    days: dict[str, str] = {}
    with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            if dates and row["date"] not in dates:
                continue
            run = f"{row['agent']}/{row['date']}/{row['trial']}"
            units[run], days[run] = row[unit], row["date"]
            cells.append((run, row["task"], row["outcome"] == "1"))
    responses = Responses.from_cells(cells, dates=days)
    return Matrix(responses, tuple(units[run] for run in responses.run_ids))


def leave_out(matrix: Matrix, n_folds: int = 0) -> Iterator[Fold]:
    """Every unit with all its runs held out in turn, or dealt out by name into `n_folds` groups held out in turn."""
    names = sorted(set(matrix.agents))
    keys = dict(zip(names, seeded_keys(0, "fold", names).tolist(), strict=True))
    dealt = sorted(names, key=lambda name: keys[name])
    count = n_folds or len(dealt)
    for fold in range(count):
        out = set(dealt[fold::count])
        tested = [row for row, name in enumerate(matrix.agents) if name in out]
        yield _fold(matrix, [row for row in range(len(matrix.agents)) if row not in set(tested)], tested)


def expanding(matrix: Matrix, least: int = LEAST_HISTORY) -> Iterator[Fold]:
    """Every run predicted from the runs of earlier dates alone, once there are `least` of them."""
    dates = np.array(matrix.responses.dates)
    for day in sorted(set(dates)):
        past = np.flatnonzero(dates < day)
        if len(past) >= least:
            yield _fold(matrix, past.tolist(), np.flatnonzero(dates == day).tolist())


def _fold(matrix: Matrix, history: Sequence[int], tested: Sequence[int]) -> Fold:
    responses = rows_of(matrix.responses, tested)
    return Fold(
        name=", ".join(dict.fromkeys(matrix.agents[row] for row in tested)),
        history=rows_of(matrix.responses, history),
        agents=tuple(matrix.agents[row] for row in history),
        tested=responses,
        units=tuple(matrix.agents[row] for row in tested),
        run_seeds=tuple(int(key % (1 << 31)) for key in seeded_keys(0, "run", responses.run_ids).tolist()),
    )


PROTOCOLS = (
    Protocol(
        "swe",
        "SWE-bench Verified, bash only: leave one model out (19 runs × 500 tasks)",
        "swebench_verified_bash_only.csv.gz",
        (25, 50, 100, 150, 200, 300, 400),
        lambda path: read_matrix(path, "agent"),
        leave_out,
    ),
    Protocol(
        "swe_time",
        f"SWE-bench Verified, bash only: each date predicted from the earlier ones, at least {LEAST_HISTORY} runs",
        "swebench_verified_bash_only.csv.gz",
        (25, 50, 100, 150, 200, 300, 400),
        lambda path: read_matrix(path, "agent"),
        expanding,
    ),
    Protocol(
        "swe_cold",
        f"SWE-bench Verified, bash only: each date predicted from the earlier ones, from {COLD_START} runs on",
        "swebench_verified_bash_only.csv.gz",
        (25, 50, 100, 150, 200, 300, 400),
        lambda path: read_matrix(path, "agent"),
        lambda matrix: expanding(matrix, COLD_START),
    ),
    Protocol(
        "tb",
        "Terminal-Bench core 0.1.1: leave one agent out with all its runs (50 runs of 10 agents × 80 tasks)",
        "terminal_bench_core_0_1_1.csv.gz",
        (8, 15, 31, 46, 60),
        lambda path: read_matrix(path, "agent"),
        leave_out,
    ),
    Protocol(
        "bfcl",
        f"BFCL v1, snapshots {BFCL_DATES[0]} and {BFCL_DATES[1]}: base models held out whole, in {BFCL_FOLDS} folds"
        " (1,700 items)",
        "bfcl_v1.csv.gz",
        (25, 50, 100, 150, 200, 250, 300, 400, 500),
        lambda path: read_matrix(path, "model", BFCL_DATES),
        lambda matrix: leave_out(matrix, BFCL_FOLDS),
    ),
)
