"""What `assay serve` takes while it waits: resident memory and processor time, read from the kernel.

python -m benchmarks.scheduler_idle [--seconds 60] [--jobs 20]
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

TARGET_MB, TARGET_PERCENT = 60.0, 0.5
SETTLED_S = 10.0


def main() -> None:
    """Serve jobs that are not due, with a scrape every 15 seconds, and print both figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--jobs", type=int, default=20)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "schedule.toml"
        file.write_text(_schedule(Path(folder), asked.jobs))
        argv = [sys.executable, "-c", "from harness.cli import main; main()", "serve", str(file)]
        with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as served:
            try:
                _measure(served, asked.seconds)
            finally:
                served.send_signal(signal.SIGTERM)


def _measure(served: subprocess.Popen[str], seconds: float) -> None:
    assert served.stderr is not None
    served.stderr.readline()
    metrics = served.stderr.readline().split()[-1]
    time.sleep(SETTLED_S)
    ends = time.monotonic() + seconds
    before_s, peak_mb = _cpu_s(served.pid), 0.0
    while time.monotonic() < ends:
        time.sleep(min(15.0, max(ends - time.monotonic(), 0.0)))
        with urllib.request.urlopen(metrics) as answer:
            answer.read()
        peak_mb = max(peak_mb, _resident_mb(served.pid))
    percent = 100 * (_cpu_s(served.pid) - before_s) / seconds
    print(f"resident memory {peak_mb:6.1f} MB   target: under {TARGET_MB:.0f} MB")
    print(f"processor time  {percent:6.2f} %    target: under {TARGET_PERCENT} %, a scrape every 15 s included")


def _schedule(folder: Path, jobs: int) -> str:
    entry = '[[job]]\nname = "job-{0}"\ncron = "{0} 0 29 2 *"\nkind = "gold"\nsuite = "terminal"\n'
    return f'store = "{folder}/store"\n[server]\nport = 0\n' + "".join(entry.format(number) for number in range(jobs))


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    main()
