"""All figures of the README, one after the other: `make bench`. Needs the engine and the locked bundled suite."""

from __future__ import annotations

import subprocess
import sys

PARTS = (
    "startup",
    "audit_changed",
    "adaptive speed",
    "bill",
    "compare_runs",
    "store_events",
    "sandbox_overhead",
    "audit_overhead",
    "environment_carrier",
    "coordinator",
    "replay",
    "scheduler_idle",
)


def main() -> int:
    """Run every part in a process of its own; returns 1 when one of them failed."""
    failed = []
    for part in PARTS:
        print(f"\n== {part}", flush=True)
        if subprocess.run([sys.executable, "-m", *f"benchmarks.{part}".split()], check=False).returncode:
            failed.append(part)
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
