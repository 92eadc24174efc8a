"""Calibrates a bank on a history, in a process of its own.

Reading a long history and fitting it take memory that a coordinator would keep for the length of the run, and an
optimiser that it needs for nothing else. One BLAS thread: on a busy machine several only wait for each other.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from harness.adaptive.bank import Bank
from harness.adaptive.bank_file import load_bank, save_bank
from harness.adaptive.errors import AdaptiveError
from harness.records.errors import AssayError, ConfigError

UNUSABLE = 2


def calibrated_bank(history: str, dims: int | None, seed: int) -> Bank:
    """The bank of a history file. Raises ConfigError with what is wrong with the file, by line."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "bank.npz"
        command = [sys.executable, "-m", __name__, history, str(out), "--seed", str(seed)]
        if dims is not None:
            command += ["--dims", str(dims)]
        root = str(Path(__file__).parents[2])
        paths = os.pathsep.join(path for path in (root, os.environ.get("PYTHONPATH")) if path)
        one_thread = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
        done = subprocess.run(
            command,
            env={**os.environ, **one_thread},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == UNUSABLE:
            raise ConfigError(done.stderr.strip().removeprefix("error: "))
        if done.returncode != 0:
            raise ConfigError(f"calibration failed: {done.stderr.strip()[-2000:]}", place=history)
        return load_bank(out)


def main() -> int:
    """The child: history in, bank out; a fault of the input is one message and exit code 2."""
    # The parent imports this module too, and must not pay for what only the child needs.
    from harness.adaptive.calibration import CalibrationSettings, calibrate
    from harness.adaptive.responses import Responses
    from harness.store.history import read_history

    parser = argparse.ArgumentParser(prog=f"python -m {__spec__.name}", description=__doc__)
    parser.add_argument("history", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--dims", type=int)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    try:
        found = read_history(options.history)
        responses = Responses(
            run_ids=found.run_ids,
            item_ids=found.tasks,
            passes=found.passes.astype(float),
            trials=found.trials.astype(float),
            dates=found.dates,
        )
        settings = CalibrationSettings(dims=options.dims or "auto", seed=options.seed)
        save_bank(calibrate(responses, settings).bank, options.out)
    except (AssayError, AdaptiveError) as error:
        print(f"error: {error}", file=sys.stderr)
        return UNUSABLE
    return 0


if __name__ == "__main__":
    sys.exit(main())
