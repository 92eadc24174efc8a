"""`assay audit all --changed` on a suite of 5,000 tasks in which nothing changed: the whole command, from the shell.

    python -m benchmarks.audit_changed [--tasks 5000]

The suite is on disk, file by file; that it was audited is written into a store as a cycle would.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness.api.audit_request import AuditRequest
from harness.api.audit_state import instrument
from harness.audit.cycle import finish_cycle, new_cycle_id
from harness.audit.fingerprint import RACY_NS
from harness.audit.history import STARTED, owned_chain
from harness.formats.lock import LOCK_FILE, make_lock, write_lock
from harness.formats.suite import load_suite
from harness.records.audit import Cycle, Evidence, Sentinel, TableRow
from harness.records.suite import ImageLock
from harness.runner.journal import utc_now
from harness.store.sqlite import SqliteStore

ASSAY = (sys.executable, "-c", "from harness.cli import main; main()")
LIMIT_S, RUNS = 2.0, 5
TOML = '[environment]\ndocker_image = "assay-base:1"\nnetwork_mode = "no-network"\n\n[assay]\ncapabilities = []\n'


def main() -> int:
    """Build suite and store, time the command, and say how long it took. Exits 1 over the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=5000)
    count = parser.parse_args().tasks
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        suite = write_suite(root / "suite", count)
        time.sleep(RACY_NS / 1e9 + 0.5)  # files just written are read again, in case they are written once more
        audited(suite, root / "store")
        command = [*ASSAY, "audit", "all", "--changed", "--suite", str(suite), "--store", str(root / "store")]
        taken = [timed(command) for _ in range(1 + RUNS)][1:]  # the first compiles what is imported
    walls, cpus = ([run[at] for run in taken] for at in (0, 1))
    print(
        f"--changed, {count} tasks, nothing changed: wall median {statistics.median(walls):.2f} s, best"
        f" {min(walls):.2f} s (limit {LIMIT_S:g} s); cpu median {statistics.median(cpus):.2f} s"
    )
    return int(statistics.median(walls) > LIMIT_S)


def timed(command: list[str]) -> tuple[float, float]:
    """Seconds of wall time and of processor time that the command takes. Ends the benchmark if it does not work."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0 or "nothing changed" not in done.stdout:
        raise SystemExit(f"{done.stdout}{done.stderr}")
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def write_suite(folder: Path, count: int) -> Path:
    """Harbor tasks, a folder each, locked with the engine's base image."""
    for number in range(count):
        task = folder / f"t{number:05}"
        (task / "tests").mkdir(parents=True)
        (task / "solution").mkdir()
        (task / "task.toml").write_text(TOML)
        (task / "instruction.md").write_text(f"Write {number}.")
        (task / "tests" / "test.sh").write_text("echo 1 > /logs/verifier/reward.txt\n")
        (task / "solution" / "solve.sh").write_text(f"echo {number} > /app/answer\n")
    lock = ImageLock(digest=base_digest(), platform="linux/amd64")
    found = load_suite(folder, ignore_lock=True)
    write_lock(folder / LOCK_FILE, make_lock(found, {"assay-base:1": lock}))
    return folder


def base_digest() -> str:
    """The base image as the engine has it."""
    done = subprocess.run(
        ["docker", "image", "inspect", "assay-base:1", "--format", "{{.Id}}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def audited(suite: Path, store: Path) -> None:
    """Write the cycle that an audit of the suite would have written."""
    made = instrument(AuditRequest(suite=str(suite), store=str(store)))
    at = utc_now()
    with SqliteStore(store) as opened, owned_chain(opened, made.suite.name) as chain:
        cycle = Cycle(
            cycle=new_cycle_id(at),
            suite=made.suite.name,
            suite_version=made.suite.version,
            started=at,
            sentinels=tuple(Sentinel),
            scope="full",
            tasks=len(made.fingerprints),
            stamp=made.stamp,
        )
        chain.note(STARTED, cycle.plain())
        rows = []
        for task, found in made.fingerprints.items():
            seen = {
                sentinel.value: Evidence(
                    sentinel=sentinel,
                    cycle=cycle.cycle,
                    at=at,
                    fingerprint=found.digest,
                    passed=int(sentinel is Sentinel.GOLD),
                    graded=1,
                    attempts=1,
                    trials=(f"{cycle.cycle}.{task}.1",),
                )
                for sentinel in Sentinel
            }
            rows.append(TableRow.model_validate({"task": task, "family": task, "fingerprint": found, **seen}))
        finish_cycle(chain, chain.history.cycles[cycle.cycle], tuple(rows), at, {})


if __name__ == "__main__":
    sys.exit(main())
