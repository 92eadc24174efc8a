"""Calibrates a bank on a history, in a process of its own.

Reading a long history and fitting it take memory that a coordinator would keep for the length of the run, and an
optimiser that it needs for nothing else. One BLAS thread: on a busy machine several only wait for each other.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Literal

from pydantic import Field

from harness.adaptive.bank import Bank
from harness.adaptive.bank_file import load_bank
from harness.records.base import Record
from harness.records.errors import ConfigError

CHILD = "harness.api.banks"
UNUSABLE = 2  # the exit code of a child that was given something it cannot use


class CalibrationRequest(Record):
    """What to calibrate on, and how. `history` are flat CSV files; `start` is the bank to go on from, a file.

    `prior` are standard deviations by name (`Priors`), for the method that does not learn them.
    """

    history: tuple[str, ...] = Field(min_length=1)
    dims: int | Literal["auto", "rasch"] = "auto"
    seed: int = 0
    method: Literal["variational", "map"] = "variational"
    prior: dict[str, float] = {}
    window_days: float | None = Field(default=None, gt=0)  # only runs this close to the last one
    half_life_days: float | None = Field(default=None, gt=0)  # a run this much older weighs half
    drift: float | Literal["auto"] = 0.0  # how far items move: logits (sd) in 30 days, or as far as the history says
    start: str | None = None
    backtest: bool = False  # which policy, model and random share would have done best on past agents


def calibrated_bank(request: CalibrationRequest) -> Bank:
    """The bank of a history. Raises ConfigError with what is wrong with a file, by line."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "bank.npz"
        root = str(Path(__file__).parents[2])
        paths = os.pathsep.join(path for path in (root, os.environ.get("PYTHONPATH")) if path)
        one_thread = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
        done = subprocess.run(
            [sys.executable, "-m", CHILD, request.model_dump_json(), str(out)],
            env={**os.environ, **one_thread},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == UNUSABLE:
            raise ConfigError(done.stderr.strip().removeprefix("error: "))
        if done.returncode != 0:
            raise ConfigError(f"calibration failed: {done.stderr.strip()[-2000:]}", place=", ".join(request.history))
        return load_bank(out)
