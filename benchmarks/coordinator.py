"""Memory and CPU of the coordinator with eight agents in flight on the bundled suite.

    python -m benchmarks.coordinator [--tasks 24] [--concurrency 8]

The model service is a process of its own, as a real one would be, and so is the calibration on 299 past runs, which is
over before the first task. Peaks are the kernel's own high-water marks (VmHWM), looked at ten times a second.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TARGET_MB = 120
ASSAY = [sys.executable, "-c", "from harness.cli import main; main()"]
MODEL = "sim-042"
PRICES = Path(__file__).parents[1] / "harness" / "simulation" / "prices.toml"


def main() -> None:
    """Run once and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=24)
    parser.add_argument("--concurrency", type=int, default=8)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, model_service(Path(folder)) as url:
        command = [*ASSAY, "run", "--suite", "terminal", "--solver", "agent", "--model", MODEL, "--base-url", url]
        command += ["--prices", str(PRICES), "--adaptive", "--stop", str(options.tasks), "--json"]
        command += ["--history", f"{folder}/history.csv", "--concurrency", str(options.concurrency)]
        out = Path(folder) / "summary.json"
        started = time.perf_counter()
        with out.open("wb") as stdout:
            child = subprocess.Popen([*command, "--store", f"{folder}/store"], stdout=stdout)
            peak_mb = watched_peak_mb(child)
            _, _, used = os.wait4(child.pid, 0)
        wall_s = time.perf_counter() - started
        summary = json.loads(out.read_text())
    graded = summary["outcomes"]["passed"] + summary["outcomes"]["failed"]
    cpu_s = used.ru_utime + used.ru_stime
    print(f"{graded}/{options.tasks} graded, {options.concurrency} in flight, {wall_s:.1f} s wall")
    print(f"coordinator: peak {peak_mb:.0f} MB (target under {TARGET_MB}), {cpu_s / graded:.3f} s CPU a trial")


def watched_peak_mb(child: subprocess.Popen[bytes]) -> float:
    """The high-water mark of a process itself, without its children, until it ends."""
    peak_kb = 0
    while os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        lines = Path(f"/proc/{child.pid}/status").read_text().splitlines()
        marks = [int(line.split()[1]) for line in lines if line.startswith("VmHWM")]
        peak_kb = max([peak_kb, *marks])
        time.sleep(0.1)
    return peak_kb / 1024


@contextmanager
def model_service(folder: Path) -> Iterator[str]:
    """The simulated agents on a free port; leaves their history in `folder`."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    history = ["--history", str(folder / "history.csv"), "--exclude", MODEL]
    service = subprocess.Popen([*ASSAY, "sim-model", "--suite", "terminal", "--port", str(port), *history])
    try:
        for _ in range(300):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        service.terminate()
        service.wait()


if __name__ == "__main__":
    main()
