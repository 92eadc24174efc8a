"""Memory and CPU of the coordinator with eight simulated agents in flight on the bundled suite.

    python -m benchmarks.coordinator [--tasks 24] [--concurrency 8]

The run happens in a child process, which also serves the simulated model; its peak resident memory is the
operating system's own figure.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TARGET_MB = 120
CONFIG = """\
suite = "terminal"
solver = "agent"
model = "sim-042"
concurrency = {concurrency}
[simulation]
agents = 300
seed = 7
[adaptive]
stop = {tasks}
"""


def main() -> None:
    """Run once and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=24)
    parser.add_argument("--concurrency", type=int, default=8)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "run.toml"
        config.write_text(CONFIG.format(tasks=options.tasks, concurrency=options.concurrency))
        command = [sys.executable, "-c", "from harness.cli import main; main()", "run", str(config), "--json"]
        started = time.perf_counter()
        done = subprocess.run(
            [*command, "--store", str(Path(folder) / "store")], stdout=subprocess.PIPE, text=True, check=False
        )
        wall_s = time.perf_counter() - started
    summary = json.loads(done.stdout)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    graded = summary["outcomes"]["passed"] + summary["outcomes"]["failed"]
    cpu_s = used.ru_utime + used.ru_stime
    print(f"{graded}/{options.tasks} graded, {options.concurrency} in flight, {wall_s:.1f} s wall")
    print(
        f"coordinator with the simulated model: peak {used.ru_maxrss / 1024:.0f} MB, {cpu_s / graded:.3f} s CPU a trial"
    )
    print(f"target: under {TARGET_MB} MB")


if __name__ == "__main__":
    main()
