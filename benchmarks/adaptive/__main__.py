"""The evidence for the adaptive engine, one command each:

    python -m benchmarks.adaptive study       simulated lineages: every method, regime and side experiment
    python -m benchmarks.adaptive matrices    real outcome matrices, nested protocols
    python -m benchmarks.adaptive peers       other packages in the same run (needs the venv of peers-requirements.txt)
    python -m benchmarks.adaptive speed       time and memory
    python -m benchmarks.adaptive decisions   release decisions: false alarms, missed regressions, tasks
    python -m benchmarks.adaptive bars        each bar, the measured value, met or missed: from the stored results
    python -m benchmarks.adaptive plots       figures as PNG, from the stored results

Each takes --help. Results are JSON in `benchmarks/adaptive/results`.
"""

from __future__ import annotations

import importlib
import os
import sys

COMMANDS = ("study", "matrices", "peers", "speed", "decisions", "bars", "plots")


def main() -> int:
    """Run one command with one BLAS thread."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # before numpy is imported
    if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS:
        print(__doc__)
        return 0 if sys.argv[1:] in ([], ["--help"], ["-h"]) else 2
    module = importlib.import_module(f"benchmarks.adaptive.{sys.argv[1]}")
    return int(module.main(sys.argv[2:]))


if __name__ == "__main__":
    sys.exit(main())
