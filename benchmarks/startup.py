"""How long `assay --help` takes, beside a bare Python and a bare `import typer` in the same run.

python -m benchmarks.startup [--runs 15]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time

COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "import typer": [sys.executable, "-c", "import typer"],
    "assay --help": [sys.executable, "-c", "from harness.cli import main; main()", "--help"],
}
TARGET_S = 0.4


def main() -> None:
    """Alternate the commands and print medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=15)
    runs = parser.parse_args().runs
    seconds: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(runs):
        for name, argv in COMMANDS.items():
            started = time.perf_counter()
            subprocess.run(argv, stdout=subprocess.DEVNULL, check=True)
            seconds[name].append(time.perf_counter() - started)
    bare = statistics.median(seconds["python -c pass"])
    for name, taken in seconds.items():
        median = statistics.median(taken)
        print(f"{name:16} {median:6.3f} s median, {min(taken):.3f} best, {median / bare:4.1f}x a bare Python")
    print(f"target for assay --help: under {TARGET_S} s")


if __name__ == "__main__":
    main()
